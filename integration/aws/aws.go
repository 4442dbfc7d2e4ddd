// Package aws is everything of Amazon Web Services: what signs calls, the object store S3, and the kind that works in S3, SQS, SNS, Lambda
// and DynamoDB.
//
// It speaks to the services, and to what speaks like S3 (MinIO, R2, Ceph), through the guarded client; there is no library of the vendor in
// between. The kind makes nine calls, each of which is a request and an answer in JSON or XML. The vendor's library would make the program
// 8.6 MB larger for them (107.1 MB instead of 98.5 MB, stripped), tries again on its own, and does not say of a call whether the service
// can have taken it. With the base_url of a credential all services are at that one address, with buckets in the path. The program that
// puts kinds and vendors together imports the package; nothing else does.
package aws

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strings"

	"tandem/credential"
	"tandem/fault"
)

// keys are the fields of a credential.
type keys struct {
	AccessKeyID     string `json:"access_key_id"`
	SecretAccessKey string `json:"secret_access_key"`
	SessionToken    string `json:"session_token"`
	Region          string `json:"region"`
	BaseURL         string `json:"base_url"`
}

// defaultRegion is what services that have no regions are signed for.
const defaultRegion = "us-east-1"

// regionName keeps a region from being more than a part of a host's name.
var regionName = regexp.MustCompile(`^[a-z0-9-]{1,40}$`)

func openKeys(c credential.Opened) (keys, *url.URL, error) {
	var k keys
	wrong := func(text string) (keys, *url.URL, error) {
		return keys{}, nil, fault.Newf(fault.CredentialInvalid, "credential %q %s", c.ID, text)
	}
	if json.Unmarshal(c.Data, &k) != nil {
		return wrong("cannot be read; save it again")
	}
	if k.Region == "" {
		k.Region = defaultRegion
	}
	if k.AccessKeyID == "" || k.SecretAccessKey == "" {
		return wrong("lacks access_key_id or secret_access_key")
	}
	if !regionName.MatchString(k.Region) {
		return wrong(`has a region that cannot be one; write it like "eu-central-1"`)
	}
	if k.BaseURL == "" {
		return k, nil, nil
	}
	base, err := url.Parse(strings.TrimRight(k.BaseURL, "/"))
	if err != nil || base.Host == "" || base.RawQuery != "" {
		return wrong("has a base_url that cannot be used; write it like https://host:port")
	}
	return k, base, nil
}
