package app

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tandem/credential"
	"tandem/fault"
	"tandem/outbound"
)

// credentialSamples has data that is complete, for every type.
func credentialSamples() map[string][]string {
	return map[string][]string{
		"slack_bot":    {`{"token":"xoxb-1"}`, `{"token":"xoxb-1","signing_secret":"abc","base_url":"http://127.0.0.1:9000"}`},
		"discord_bot":  {`{"token":"t","public_key":"k"}`},
		"telegram_bot": {`{"token":"t","webhook_secret":"8WkzPqLr3mNvT6yB"}`},
		"teams_bot":    {`{"app_id":"a","app_secret":"s","tenant_id":"t"}`, `{"webhook_url":"https://example.com/hook/1"}`},
		"smtp":         {`{"host":"mail"}`, `{"host":"mail","port":587,"security":"starttls","username":"u","password":"p","base_url":"smtp://127.0.0.1:2525"}`},
		"imap":         {`{"host":"mail","username":"u","password":"p","port":993,"security":"tls"}`},
		"github_token": {`{"token":"t"}`, `{"webhook_secret":"8WkzPqLr3mNvT6yB"}`, `{"token":"t","webhook_secret":"8WkzPqLr3mNvT6yB","base_url":"https://git.example.com/api/v3"}`}, "gitlab_token": {`{"token":"t","base_url":"https://git.example.com"}`},
		"jira":                {`{"token":"t","email":"a@example.com","base_url":"https://a.example.com"}`},
		"google_oauth":        {`{"client_id":"i","client_secret":"s","refresh_token":"r","token_url":"https://example.com/t"}`, `{"token":"t"}`},
		"microsoft_oauth":     {`{"client_id":"i","client_secret":"s","refresh_token":"r"}`},
		"oauth2":              {`{"client_id":"i","client_secret":"s","authorize_url":"https://example.com/a","token_url":"https://example.com/t","scopes":["a"],"refresh_token":"r","expires":"1"}`, `{"token":"t","allowed_hosts":["a.example.com"]}`},
		"trello":              {`{"key":"k","token":"t"}`},
		"notion":              {`{"token":"t","notion_version":"2022-06-28"}`},
		"caldav":              {`{"url":"https://example.com/cal","username":"u","password":"p"}`},
		"airtable":            {`{"token":"t"}`},
		"aws_keys":            {`{"access_key_id":"i","secret_access_key":"s","session_token":"t","region":"eu-1"}`},
		"gcp_service_account": {`{"key":{"private_key":"pem"},"token_uri":"https://example.com/t"}`, `{"key":"{\"private_key\":\"pem\"}"}`},
		"azure":               {`{"tenant_id":"t","client_id":"i","client_secret":"s"}`, `{"account_key":"k","account_name":"n"}`, `{"sas":"s"}`, `{"connection_string":"c"}`, `{"function_key":"f"}`},
		"openai":              {`{"api_key":"k"}`}, "anthropic": {`{"api_key":"k"}`}, "gemini": {`{"api_key":"k","base_url":null}`},
		"sql": {`{"driver":"postgres","dsn":"postgres://u:p@h/d"}`},
		"http_auth": {
			`{"scheme":"bearer","token":"t","allowed_hosts":["a.example.com"]}`, `{"scheme":"basic","username":"u","password":"p"}`,
			`{"scheme":"header","name":"X-Key","value":"v"}`, `{"scheme":"query","name":"key","value":"v"}`,
			`{"scheme":"oauth2_client","client_id":"i","client_secret":"s","token_url":"https://example.com/t","scopes":["a"]}`,
		},
		"mcp_oauth":      {`{}`, `{"client_id":"i","client_secret":"s","client_auth":"basic","issuer":"https://example.com","client_expires":"1"}`, `{"token":"t","refresh_token":"r","token_url":"https://example.com/t","expires":"1","scopes":["a"],"pending":{"state":"s","verifier":"v"}}`},
		"webhook_secret": {`{"secret":"8WkzPqLr3mNvT6yB","header":"X-Secret","parameter":"secret"}`},
		"service":        {`{"openapi":{"openapi":"3.1.0"}}`, `{"endpoints":[{"path":"/a"}],"auth":{"scheme":"bearer","token":"t"}}`},
		"search":         {`{"provider":"brave","api_key":"k"}`, `{"provider":"searxng","base_url":"https://example.com"}`, `{"provider":"json"}`},
	}
}

// builtInCredentials are the types of credentials of all extensions of this program.
func builtInCredentials(t testing.TB) credential.Types {
	t.Helper()
	return builtIn(outbound.Options{}, kindDeps{}).Credentials
}

// knownCredentials are the same, made once for all who only read them. read-only
var knownCredentials = sync.OnceValue(func() credential.Types { return builtIn(outbound.Options{}, kindDeps{}).Credentials })

func validCredential(t testing.TB, name string, data json.RawMessage) error {
	t.Helper()
	known, err := knownCredentials().Find(name)
	if err != nil {
		return err
	}
	return known.Validate(data)
}

func credentialSecrets(t testing.TB, name string, data json.RawMessage) ([]string, error) {
	t.Helper()
	known, err := knownCredentials().Find(name)
	if err != nil {
		return nil, err
	}
	return known.Secrets(data)
}

func TestCredentialTypes(t *testing.T) {
	t.Parallel()
	types, data := builtInCredentials(t), credentialSamples()
	var names []string
	for _, typ := range types {
		names = append(names, typ.Name)
		if typ.Label.Words("zh") == "" || typ.Label.Words("en") == "" {
			t.Errorf("%s has no label in zh or en", typ.Name)
		}
		fields, secret := map[string]bool{}, false
		for _, f := range typ.Fields {
			if fields[f.Name] {
				t.Errorf("%s has %s twice", typ.Name, f.Name)
			}
			fields[f.Name] = true
			secret = secret || f.Secret
			if f.Label.Words("zh") == "" || f.Label.Words("en") == "" || f.Format == "" {
				t.Errorf("%s.%s lacks a label or format", typ.Name, f.Name)
			}
			if (f.Format == credential.FormatChoice) != (len(f.Choices) > 0) || f.Default != "" && !slices.Contains(f.Choices, f.Default) {
				t.Errorf("%s.%s: choices %v, default %q", typ.Name, f.Name, f.Choices, f.Default)
			}
		}
		if !fields["base_url"] || !secret {
			t.Errorf("%s has no base_url or no secret", typ.Name)
		}
		if typ.Selector != "" && !fields[typ.Selector] {
			t.Errorf("%s selects by %q, which it has not", typ.Name, typ.Selector)
		}
		for _, a := range typ.Alternatives {
			for _, name := range a.Requires {
				if !fields[name] {
					t.Errorf("%s has an alternative with the unknown field %q", typ.Name, name)
				}
			}
		}
		if len(data[typ.Name]) == 0 {
			t.Errorf("%s has no sample", typ.Name)
		}
	}
	if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) || len(names) != len(data) {
		t.Errorf("types are not sorted, unique and all sampled: %v", names)
	}
	types[0].Fields[0].Name = "changed"
	if builtInCredentials(t)[0].Fields[0].Name == "changed" {
		t.Error("a caller can change the table")
	}
	if _, err := types.Find("slack"); fault.CodeOf(err) != fault.Invalid {
		t.Error("found a type that does not exist")
	}
}

func TestCredentialTypes_ValidateAcceptsSamples(t *testing.T) {
	t.Parallel()
	for name, list := range credentialSamples() {
		for _, data := range list {
			if err := validCredential(t, name, json.RawMessage(data)); err != nil {
				t.Errorf("%s %s: %v", name, data, err)
			}
		}
	}
}

func TestCredentialTypes_ValidateReportsEverything(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, data string
		want       []credential.Problem
	}{
		{"webhook_secret", `{"secret":"hunter2"}`, []credential.Problem{{Field: "secret", Message: `"secret" is shorter than 16 characters, so it can be guessed and calls forged; make one with: openssl rand -hex 32`}}},
		{"telegram_bot", `{"token":"t","webhook_secret":"password-password-1"}`, []credential.Problem{
			{Field: "webhook_secret", Message: `"webhook_secret" is made of words that are tried first, so it can be guessed and calls forged; make one with: openssl rand -hex 32`},
		}},
		{"openai", `{}`, []credential.Problem{{Field: "api_key", Message: `"api_key" is missing`}}},
		{"openai", `{"api_key":""}`, []credential.Problem{{Field: "api_key", Message: `"api_key" is missing`}}},
		{"openai", `{"apikey":"canary","base_url":"nowhere"}`, []credential.Problem{
			{Field: "api_key", Message: `"api_key" is missing`},
			{Field: "base_url", Message: `"base_url" must be an absolute address such as https://host/path`},
			{Field: "apikey", Message: `"apikey" is not a field of "openai"; did you mean "api_key"?`},
		}},
		{"openai", `{"api_key":"canary\n"}`, []credential.Problem{{Field: "api_key", Message: `"api_key" begins or ends with space or a line break; paste it without`}}},
		{"openai", `{"api_key":"can\nary"}`, []credential.Problem{{Field: "api_key", Message: `"api_key" has a line break or another control character in it; paste it as one line`}}},
		{"openai", `{"api_key":["canary"]}`, []credential.Problem{{Field: "api_key", Message: `"api_key" must be text`}}},
		{"openai", `{"api_key":"k","base_url":"https://u:canary@example.com"}`, []credential.Problem{
			{Field: "base_url", Message: `"base_url" must not hold a user name or password; they have fields of their own`},
		}},
		{"openai", `{"api_key":"k","base_url":"ftp://canary"}`, []credential.Problem{{Field: "base_url", Message: `"base_url" must begin with one of http://, https://`}}},
		{"teams_bot", `{}`, []credential.Problem{{Field: "", Message: `a teams_bot needs "app_id" and "app_secret" and "tenant_id", or "webhook_url"`}}},
		{"teams_bot", `{"app_id":"a"}`, []credential.Problem{
			{Field: "app_secret", Message: `"app_secret" and "tenant_id" are missing (a teams_bot needs "app_id" and "app_secret" and "tenant_id", or "webhook_url")`},
		}},
		{"smtp", `{"host":"h","username":"u","port":70000,"security":"startls"}`, []credential.Problem{
			{Field: "port", Message: `"port" must be a whole number from 1 to 65535`},
			{Field: "security", Message: `"security" must be one of starttls, tls, none; did you mean "starttls"?`},
			{Field: "password", Message: `"password" is missing`},
		}},
		{"http_auth", `{"scheme":"basic","username":"u","allowed_hosts":"canary"}`, []credential.Problem{
			{Field: "allowed_hosts", Message: `"allowed_hosts" must be a list of texts`}, {Field: "password", Message: `"password" is missing`},
		}},
		{"http_auth", `{"scheme":"bearer","password":"canary"}`, []credential.Problem{{Field: "scheme", Message: `scheme "bearer" needs "token"`}}},
		{"http_auth", `{"token":"canary"}`, []credential.Problem{{Field: "scheme", Message: `"scheme" is missing`}}},
		{"service", `{"openapi":"canary","auth":{"scheme":"header","name":"X","valu":"canary","base_url":"x"}}`, []credential.Problem{
			{Field: "openapi", Message: `"openapi" must be a JSON object, or one as text in JSON or YAML`},
			{Field: "auth.base_url", Message: `"auth.base_url" is not a field of "http_auth"`},
			{Field: "auth.valu", Message: `"auth.valu" is not a field of "http_auth"; did you mean "value"?`},
			{Field: "auth.value", Message: `"auth.value" is missing`},
		}},
		{"service", `{"endpoints":[null],"auth":"canary"}`, []credential.Problem{
			{Field: "endpoints", Message: `"endpoints" must be a list of objects with at least one`},
			{Field: "auth", Message: `"auth" must be an object with the fields of http_auth`},
		}},
	} {
		err := validCredential(t, c.name, json.RawMessage(c.data))
		e, ok := errors.AsType[*fault.Error](err)
		if !ok || e.Code != fault.Invalid {
			t.Errorf("%s %s: %v", c.name, c.data, err)
			continue
		}
		if diff := cmp.Diff(c.want, e.Details["problems"], cmpopts.IgnoreFields(credential.Problem{}, "Words")); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", c.name, c.data, diff)
		}
		for _, p := range c.want {
			if !strings.Contains(e.Message, p.Message) {
				t.Errorf("the message %q lacks %q", e.Message, p.Message)
			}
		}
		if strings.Contains(e.Error(), "canary") {
			t.Errorf("the message repeats a value: %v", e)
		}
	}
}

func TestCredentialTypes_ValidateRefusesShapes(t *testing.T) {
	t.Parallel()
	for _, data := range []string{``, `null`, `[]`, `"canary"`, `{"api_key":"canary"`, `{"api_key":"canary"} {}`, `{"api_key":"k"} x`} {
		if err := validCredential(t, "openai", json.RawMessage(data)); fault.CodeOf(err) != fault.Invalid || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", data, err)
		}
	}
	err := validCredential(t, "opena", json.RawMessage(`{}`))
	if fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), `did you mean "openai"?`) {
		t.Errorf("unknown type: %v", err)
	}
	long := `{"api_key":"` + strings.Repeat("k", credential.MaxSize) + `"}`
	if err := validCredential(t, "openai", json.RawMessage(long)); fault.CodeOf(err) != fault.TooLarge {
		t.Errorf("too long: %v", err)
	}
	odd := `{"` + strings.Repeat("长", 500) + `":1,"api_key":"k"}`
	if err := validCredential(t, "openai", json.RawMessage(odd)); fault.CodeOf(err) != fault.Invalid || len(err.Error()) > 300 {
		t.Errorf("a long name: %v", err)
	}
}

func TestCredentialTypes_Secrets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, data string
		want       []string
	}{
		{"openai", `{"api_key":"k","base_url":"https://example.com"}`, []string{"k"}},
		{"jira", `{"token":"t","email":"a@example.com"}`, []string{"t"}},
		{"sql", `{"driver":"postgres","dsn":"postgres://u:p%40ss@h/d?sslmode=off"}`, []string{"postgres://u:p%40ss@h/d?sslmode=off", "p@ss"}},
		{"sql", `{"driver":"mysql","dsn":"u:pa:ss@tcp(h)/d"}`, []string{"u:pa:ss@tcp(h)/d", "pa:ss"}},
		{"sql", `{"driver":"postgres","dsn":"host=h password = 'p \\'w' user=u"}`, []string{`host=h password = 'p \'w' user=u`, "p 'w"}},
		{"azure", `{"sas":"?sv=1&sig=a%2Bb"}`, []string{"?sv=1&sig=a%2Bb", "a%2Bb", "a+b"}},
		{"azure", `{"connection_string":"AccountName=n;AccountKey=abc==;X=1"}`, []string{"AccountName=n;AccountKey=abc==;X=1", "abc=="}},
		{"teams_bot", `{"webhook_url":"https://example.com/hook/1?a=b"}`, []string{"https://example.com/hook/1?a=b", "/hook/1?a=b"}},
		{"gcp_service_account", `{"key":{"private_key":"pem","client_email":"a@example.com"}}`, []string{"pem"}},
		{"gcp_service_account", `{"key":"{\"private_key\":\"pem\",\"private_key_id\":\"id\"}"}`, []string{"pem", "id"}},
		{"service", `{"auth":{"scheme":"basic","username":"u","password":"p"}}`, []string{"p"}},
		{"http_auth", `{"scheme":"header","name":"X","value":"v"}`, []string{"v"}},
	} {
		got, err := credentialSecrets(t, c.name, json.RawMessage(c.data))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", c.name, c.data, diff)
		}
	}
	if _, err := credentialSecrets(t, "none", json.RawMessage(`{}`)); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("unknown type: %v", err)
	}
	if _, err := credentialSecrets(t, "openai", json.RawMessage(`[]`)); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("no object: %v", err)
	}
}

// sealedFor is the data of a credential of the default workspace as it is stored.
func sealedFor(t testing.TB, ring *credential.Keyring, id, name string, data json.RawMessage) ([]byte, error) {
	t.Helper()
	known, err := knownCredentials().Find(name)
	if err != nil {
		return nil, err
	}
	return ring.SealData(known, "default", id, data)
}
