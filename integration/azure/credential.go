package azure

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"tandem/credential"
	"tandem/fault"
	"tandem/outbound"
	"tandem/text"
)

// credentialType is the type of the credentials that requests are signed with, or tokens fetched.
const credentialType = "azure"

func accountCredential(client *outbound.Client) credential.Type {
	return credential.Type{Name: credentialType, Label: text.Beside("Azure", "Azure"), Fields: []credential.Field{
		credential.Text("tenant_id", "Tenant ID", "租户 ID"), credential.Text("client_id", "Client ID", "客户端 ID"),
		credential.Secret("client_secret", "Client secret", "客户端密钥"), credential.Text("account_name", "Storage account", "存储账号"),
		credential.Secret("account_key", "Account key", "账号密钥"), credential.Secret("sas", "Shared access signature", "共享访问签名"),
		credential.Secret("connection_string", "Connection string", "连接字符串"), credential.Address("token_url", "Token URL", "令牌地址"),
		credential.Secret("function_key", "Function key", "函数密钥"),
	}, Alternatives: []credential.Alternative{
		{Requires: []string{"tenant_id", "client_id", "client_secret"}}, {Requires: []string{"account_key"}},
		{Requires: []string{"sas"}}, {Requires: []string{"connection_string"}}, {Requires: []string{"function_key"}},
	}, Check: func(ctx context.Context, c credential.Opened, _ credential.Outside) (string, error) {
		return check(ctx, client, c)
	}}
}

// check gets a token or, with a key or a signature, asks the storage account for the name of one container.
func check(ctx context.Context, out *outbound.Client, c credential.Opened) (string, error) {
	f, err := readFields(c)
	if err != nil {
		return "", err
	}
	if parts := connection(f.ConnectionString); f.FunctionKey != "" && f.ClientID == "" && f.AccountKey == "" && f.SAS == "" &&
		f.ConnectionString == "" || parts["sharedaccesskeyname"] != "" {
		return "only the function or the queue itself shows whether the key is taken, which is not called to find out", nil
	}
	a, err := openAccount(c)
	if err != nil {
		return "", err
	}
	if a.client != nil {
		if _, _, err := a.client.token(ctx, out, time.Now()); err != nil {
			return "", err
		}
		return "Microsoft gives tokens for the client " + a.client.id, nil
	}
	options := &service.ClientOptions{ClientOptions: azcore.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1},
		Telemetry: policy.TelemetryOptions{Disabled: true}, Transport: out.HTTPClient()}}
	var account *service.Client
	if a.key != "" {
		var key *service.SharedKeyCredential
		if key, err = service.NewSharedKeyCredential(a.name, a.key); err == nil {
			account, err = service.NewClientWithSharedKeyCredential(a.endpoint.String(), key, options)
		}
	} else {
		account, err = service.NewClientWithNoCredential(a.endpoint.String()+"?"+a.sas, options)
	}
	if err != nil {
		return "", fault.Newf(fault.CredentialInvalid, "credential %q cannot be used; copy account_key or sas as it is shown", c.ID)
	}
	one := int32(1)
	_, err = account.NewListContainersPager(&service.ListContainersOptions{MaxResults: &one}).NextPage(ctx)
	if refused, ok := errors.AsType[*azcore.ResponseError](err); ok {
		switch {
		case strings.HasPrefix(refused.ErrorCode, "AuthorizationPermission"), strings.HasPrefix(refused.ErrorCode, "AuthorizationResource"),
			strings.HasPrefix(refused.ErrorCode, "AuthorizationService"):
			return fmt.Sprintf("the storage account %s knows the signature, which may do some things and not list containers", a.endpoint.Host), nil
		case refused.StatusCode == http.StatusForbidden || refused.StatusCode == http.StatusUnauthorized:
			return "", fault.Newf(fault.CredentialInvalid, "the storage account %s does not take the key or signature (%s): it is wrong, was replaced or has expired; enter a new one", a.endpoint.Host, refused.ErrorCode)
		}
		return "", fault.Newf(fault.RemoteRejected, "the storage account %s answered %d (%s); check account_name and base_url", a.endpoint.Host, refused.StatusCode, refused.ErrorCode)
	}
	if known, ok := errors.AsType[*fault.Error](err); ok {
		return "", known
	}
	if err != nil {
		return "", fault.Newf(fault.NetworkError, "the storage account %s cannot be reached", a.endpoint.Host)
	}
	return "the storage account " + a.endpoint.Host + " lets the credential in", nil
}
