package credential_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"tandem/credential"
)

// long makes a part of a secret, so that no scanner of sources takes this file for a leak.
func long(n int) string { return strings.Repeat("aB3dE5gH7jK9mN1pQ2sT4vW6xY8z", 10)[:n] }

func TestFindInline(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ field, value, want string }{
		"Bearer":        {"Authorization", "Bearer " + long(24), "certain"},
		"ShortBearer":   {"authorization", "Bearer abc12345", "certain"},
		"Basic":         {"Authorization", "Basic dXNlcjpwYXNzd29yZA==", "certain"},
		"OpenAI":        {"prompt", "use " + "sk-" + "proj-" + long(30) + " please", "certain"},
		"GitHub":        {"code", "x = '" + "ghp" + "_" + long(36) + "'", "certain"},
		"GitLab":        {"url", "https://x.example/?t=" + "glpat" + "-" + long(20), "certain"},
		"Slack":         {"body", "xoxb" + "-1234567890-" + long(24), "certain"},
		"SlackHook":     {"url", "https://hooks.slack.com/services/T0001/B0001/" + long(24), "certain"},
		"AWS":           {"key", "AKIA" + "IOSFODNN7Q2WERTY", "certain"},
		"Google":        {"x", "AIza" + long(35), "certain"},
		"Stripe":        {"x", "sk" + "_live_" + long(24), "certain"},
		"Own":           {"x", "tdm" + "_" + long(43), "certain"},
		"JWT":           {"x", "eyJ" + long(20) + "." + "eyJ" + long(30) + "." + long(40), "certain"},
		"PrivateKey":    {"code", "-----BEGIN RSA " + "PRIVATE KEY-----\n" + long(60), "certain"},
		"KeyEscaped":    {"code", `"-----BEGIN ` + `PRIVATE KEY-----\n` + long(60) + `"`, "certain"},
		"URLPassword":   {"url", "https://bob:hunter2@service.test/x", "certain"},
		"DSN":           {"dsn", "postgres://u:p4ss@db/x", "certain"},
		"DSNPairs":      {"x", "host=db user=u password=p4ss dbname=x", "certain"},
		"DSNSemicolons": {"x", "Server=db;Uid=u;Pwd=p4ss;", "certain"},
		"MySQL":         {"x", "u:p4ss@tcp(db:3306)/x", "certain"},
		"QueryKey":      {"url", "https://maps.test/geo?api_key=" + long(24) + "&q=x", "certain"},
		"APIKeyHeader":  {"X-API-Key", long(24), "certain"},
		"Camel":         {"clientSecret", long(24), "certain"},
		"Suffix":        {"github_token", long(24), "certain"},
		"Partly":        {"Authorization", "Bearer {{user}}" + long(24), "certain"},
		"EmbeddedURL":   {"code", "connect(\"postgres://u:p4ssw0rd@db/x\")\nreturn 1", "likely"},
		"ShortPassword": {"password", "hunter2", "likely"},
		"ShortQuery":    {"url", "https://maps.test/geo?token=abc123", "likely"},

		"Placeholder":    {"Authorization", "Bearer {{nodes.login.token}}", ""},
		"Variable":       {"Authorization", "Bearer ${TOKEN}", ""},
		"ShellVariable":  {"Authorization", "Bearer $TOKEN", ""},
		"Angle":          {"api_key", "<your key here>", ""},
		"Example":        {"x", "AKIA" + "IOSFODNN7EXAMPLE", ""},
		"Dots":           {"prompt", "keys look like sk-... or ghp_...", ""},
		"Xs":             {"token", "sk-" + strings.Repeat("x", 30), ""},
		"Word":           {"token", "required", ""},
		"Words":          {"password", "the password of the user", ""},
		"TokenField":     {"token_field", long(24), ""},
		"PageToken":      {"page_token", "{{next}}", ""},
		"Credential":     {"credential_id", long(24), ""},
		"Hash":           {"sha256", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", ""},
		"Prose":          {"description", "Send the Authorization header with a Bearer token, and password=… in the form", ""},
		"PlainURL":       {"url", "https://service.test/a?token_type=bearer&page=2", ""},
		"URLPlaceholder": {"url", "postgres://u:{{password}}@db/x", ""},
		"URLUser":        {"url", "ssh://git@host.test/x", ""},
		"URLStandIn":     {"url", "https://user:password@host.test/", ""},
		"Time":           {"x", "between 10:30@noon and 11:00", ""},
		"Mail":           {"x", "mailto:someone@example.com", ""},
		"Key":            {"key", "reports/2026/summary-0123456789abcdef.json", ""},
		"BeginOnly":      {"prompt", "a file that begins with -----BEGIN PRIVATE KEY----- is a key", ""},
		"Skewer":         {"prompt", "a task-oriented risk-averse-approach-to-sk-things", ""},
	} {
		document, err := json.Marshal(map[string]any{"nodes": []any{map[string]any{"headers": map[string]any{c.field: c.value}}}})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		found := credential.FindInline(document)
		if len(found) > 0 {
			got = map[bool]string{true: "certain", false: "likely"}[found[0].Certain]
			if want := "nodes[0].headers." + c.field; found[0].Path != want || strings.Contains(found[0].What.String(), c.value) {
				t.Errorf("%s: %+v", name, found[0])
			}
		}
		if got != c.want || len(found) > 1 {
			t.Errorf("%s: %s %q is %q, want %q: %+v", name, c.field, c.value, got, c.want, found)
		}
	}
	if found := credential.FindInline(json.RawMessage(`{"token": 7, "password": null, "secret": {"a": true}, "max_tokens": 100000}`)); found != nil {
		t.Errorf("%+v", found)
	}
	if found := credential.FindInline(json.RawMessage(`{"a": [` + strings.Repeat(`{"password": "hunter22"},`, 1000) + `0]}`)); len(found) != 100 {
		t.Errorf("%d are told", len(found))
	}
	if found := credential.FindInline(json.RawMessage(`{"tokens": ["a"], "api key": "` + long(24) + `"}`)); len(found) != 1 || found[0].Path != `["api key"]` {
		t.Errorf("%+v", found)
	}
}

// A query carries secrets under names that say little. What looks like a secret there is one, and a word, a date, a file or an id of a
// record is none.
func TestFindInline_Query(t *testing.T) {
	t.Parallel()
	hex := "9f86d081884c7d659a2feaa0c55ad015"
	base64 := "k7Jq2/x0Ps+Yb9dT4mWcR1uVh5LzQe8N=="
	for _, c := range []struct{ name, value, want string }{
		{"key", long(24), "certain"}, {"key", long(18), "likely"}, {"key", hex, "certain"}, {"sig", base64, "certain"}, {"signature", hex, "certain"}, {"sign", strings.ToUpper(hex), "certain"}, {"hmac", hex, "certain"},
		{"auth", long(24), "certain"}, {"apikey", long(24), "certain"}, {"app_key", long(24), "certain"}, {"X-Amz-Signature", hex + hex, "certain"}, {"code", long(30), "certain"}, {"sid", hex, "certain"}, {"appKey", hex, "certain"},
		{"key", "f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "likely"}, {"key", "{{tenant}}" + long(24), "certain"},

		{"key", "name", ""}, {"key", "user-profile-2024-main-page", ""}, {"key", "CustomerID2024Key", ""}, {"key", "reports/2026/summary-0123456789abcdef.json", ""}, {"key", "exports/" + hex + ".csv", ""}, {"key", "12345678901234567890", ""},
		{"key", "{{nodes.login.key}}", ""}, {"key", "your-api-key-here-please-1234", ""}, {"sign", "negative", ""}, {"sign", "capricorn", ""}, {"signature", "With kind regards, the team of 2026", ""}, {"code", "US-CA", ""}, {"code", "SUMMER2026SALE", ""},
		{"sort_key", "created_at:desc,updated_at:asc", ""}, {"session", "2026-01-31T12:30:00Z", ""}, {"page", hex, ""}, {"hash", hex, ""}, {"id", hex, ""}, {"sid", "station-number-12", ""},
	} {
		for where, document := range map[string]any{
			"query_params": map[string]any{"query_params": map[string]any{c.name: c.value}},
			"list":         map[string]any{"query_params": map[string]any{c.name: []string{c.value}}},
			"url":          map[string]any{"url": "https://service.test/x?page=2&" + c.name + "=" + strings.NewReplacer("+", "%2B", "/", "%2F", "=", "%3D", " ", "%20").Replace(c.value)},
		} {
			raw, err := json.Marshal(document)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			found := credential.FindInline(raw)
			if len(found) > 0 {
				got = map[bool]string{true: "certain", false: "likely"}[found[0].Certain]
			}
			if got != c.want || len(found) > 1 {
				t.Errorf("%s: %s=%s is %q, want %q: %+v", where, c.name, c.value, got, c.want, found)
			}
		}
	}
	// Outside of queries such names say nothing.
	for _, name := range []string{"key", "sign", "signature", "code"} {
		if found := credential.FindInline(json.RawMessage(`{"body": {"` + name + `": "` + hex + `"}}`)); len(found) > 0 {
			t.Errorf("%s in a body: %+v", name, found)
		}
	}
}

// Secrets are found where a text is a document of its own, and where name and value stand beside each other.
func TestFindInline_Inside(t *testing.T) {
	t.Parallel()
	made := "q7Zt2" + "Xw9Lp4Vb6Nc8Mk3Jh5Gf1D"
	for name, c := range map[string]struct{ document, path string }{
		"JSON as text":             {`{"body":"{\"password\":\"` + made + `\"}"}`, "body"},
		"JSON as text in a field":  {`{"body":{"payload":"[{\"api_key\": \"` + made + `\", \"n\": {{count}}}]"}}`, "body.payload"},
		"a form as text":           {`{"body":"grant_type=x&client_secret=` + made + `"}`, "body"},
		"one field as text":        {`{"body":"client_secret=` + made + `"}`, "body"},
		"name and value":           {`{"body":[{"name":"password","value":"` + made + `"}]}`, "body[0].value"},
		"key and value":            {`{"headers":[{"key":"X-Api-Key","value":"` + made + `"}]}`, "headers[0].value"},
		"a list of name and value": {`{"body":[["password","` + made + `"]]}`, "body[0][1]"},
		"a bot of Telegram":        {`{"url":"https://api.telegram.org/bot6123456789:AAE` + made + `Xw9Lp` + `/sendMessage"}`, "url"},
		"a fragment":               {`{"url":"https://example.org/#access_token=` + made + `"}`, "url"},
		"no secret: a placeholder": {`{"body":"{\"password\":\"{{secret.value}}\",\"n\":{{n}}}"}`, ""},
		"no secret: other fields":  {`{"body":"grant_type=client_credentials&scope=all"}`, ""},
		"no secret: other pairs":   {`{"body":[{"name":"color","value":"` + made + `"}]}`, ""},
		"no secret: an assignment": {`{"code":"token = load('a')\nx=1"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := credential.FindInline([]byte(c.document))
			switch {
			case c.path == "" && len(found) > 0:
				t.Errorf("found %+v", found)
			case c.path != "" && (len(found) != 1 || found[0].Path != c.path || !found[0].Certain || strings.Contains(found[0].What.String(), made)):
				t.Errorf("found %+v, want one at %s", found, c.path)
			}
		})
	}
}

// What was found is told in the language of the reader, also where one name holds another.
func TestFindInline_Languages(t *testing.T) {
	t.Parallel()
	for name, document := range map[string]string{
		"Known":     `{"x": "ghp_` + strings.Repeat("aB3dE5gH7j", 4) + `"}`,
		"Address":   `{"x": "postgres://me:s3cr3tW0rd9@host/db"}`,
		"Source":    `{"x": "me:s3cr3tW0rd9@tcp(host)/db"}`,
		"Parameter": `{"x": "https://host/?token=9fK2mQ7vX1zB4nL8"}`,
		"Query":     `{"query": {"sig": "9fK2mQ7vX1zB4nL8pR5t"}}`,
		"Form":      `{"x": "a=b&password=9fK2mQ7vX1zB4nL8"}`,
		"Field":     `{"password": "9fK2mQ7vX1zB4nL8"}`,
		"Inside":    `{"x": "{\"password\": \"9fK2mQ7vX1zB4nL8\"}"}`,
	} {
		found := credential.FindInline(json.RawMessage(document))
		if len(found) != 1 {
			t.Errorf("%s: %v", name, found)
			continue
		}
		chinese := found[0].What.In("zh")
		if chinese == found[0].What.String() || !strings.ContainsFunc(chinese, func(r rune) bool { return unicode.Is(unicode.Han, r) }) || strings.Contains(chinese, " a ") || strings.Contains(chinese, "what") {
			t.Errorf("%s: %q", name, chinese)
		}
	}
}
