package httpcall

import (
	"context"
	"fmt"
	"net/url"

	"tandem/credential"
	"tandem/fault"
	"tandem/outbound"
)

// checkAuth fetches a token where the credential says who gives one. What else it holds is for a service that it does not name.
func checkAuth(client *outbound.Client) credential.Check {
	return func(ctx context.Context, c credential.Opened, _ credential.Outside) (string, error) {
		var data authData
		if err := c.Read(&data); err != nil {
			return "", err
		}
		if data.Scheme != "oauth2_client" {
			return "", fault.New(fault.Unsupported, "the credential does not say which call of the service could be made without changing anything; run a node that uses it")
		}
		_, life, err := (&Tokens{Client: client}).fetch(ctx, data)
		if err != nil {
			return "", err
		}
		host := ""
		if u, err := url.Parse(data.TokenURL); err == nil {
			host = u.Host
		}
		return fmt.Sprintf("%s gives tokens that are good for %s", host, life), nil
	}
}

// checkAccount renews the token of an account that a person has authorized, as it is renewed in use.
func checkAccount(ctx context.Context, c credential.Opened, _ credential.Outside) (string, error) {
	var data struct {
		Token   string `json:"token"`
		Refresh string `json:"refresh_token"`
	}
	if err := c.Read(&data); err != nil {
		return "", err
	}
	switch {
	case data.Token == "" && data.Refresh == "":
		return "", fault.Newf(fault.CredentialInvalid, "nobody has authorized the account yet; run: tandem credentials authorize %s", c.ID)
	case c.Renew == nil || data.Refresh == "": // to ask for a new one would mark the credential as one that has ended
		return "", fault.New(fault.Unsupported, "it has a token that cannot be renewed, and does not say which call of the service could be made without changing anything; run a node that uses it")
	}
	again, err := c.Renew(ctx, data.Token)
	if err != nil {
		return "", err
	}
	again.Release()
	return "the authorization server has renewed the token", nil
}
