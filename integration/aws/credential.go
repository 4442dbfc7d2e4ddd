package aws

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"time"

	"tandem/credential"
	"tandem/fault"
	"tandem/text"
)

// credentialType is the type of the credentials that requests are signed with.
const credentialType = "aws_keys"

func keysCredential(client *http.Client) credential.Type {
	return credential.Type{Name: credentialType, Label: text.Beside("AWS access keys", "AWS 访问密钥"), Fields: []credential.Field{
		credential.Text("access_key_id", "Access key ID", "访问密钥 ID").Needed(),
		credential.Secret("secret_access_key", "Secret access key", "秘密访问密钥").Needed(),
		credential.Secret("session_token", "Session token", "会话令牌"), credential.Text("region", "Region", "区域"),
	}, Check: func(ctx context.Context, c credential.Opened, _ credential.Outside) (string, error) {
		return check(ctx, client, c)
	}}
}

// check asks AWS whose keys they are. A store at an address of its own is asked to list its buckets.
func check(ctx context.Context, client *http.Client, c credential.Opened) (string, error) {
	k, base, err := openKeys(c)
	if err != nil {
		return "", err
	}
	service, name, address := "sts", "AWS", "https://sts."+k.Region+".amazonaws.com/?Action=GetCallerIdentity&Version=2011-06-15"
	if base != nil {
		service, name, address = "s3", "the object store", base.String()+"/"
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", fault.Newf(fault.CredentialInvalid, "credential %q has a base_url that cannot be used; write it like https://host:port", c.ID)
	}
	sum := sha256.Sum256(nil)
	maps.Copy(r.Header, signer{k, service}.sign(r.Method, r.URL, http.Header{}, hex.EncodeToString(sum[:]), time.Now()))
	err = credential.Ask(ctx, client, name, "access key", r, nil)
	if fault.CodeOf(err) == fault.CredentialInvalid {
		return "", fault.Newf(fault.CredentialInvalid, "%s does not take the access key: access_key_id, secret_access_key or session_token is wrong or has expired, or they are those of another region or store", name)
	}
	return fmt.Sprintf("%s takes the access key %s", name, k.AccessKeyID), err
}
