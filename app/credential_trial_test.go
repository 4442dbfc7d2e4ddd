package app

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"tandem/api"
)

const trialSecret = "canary-good-77"

// trialServices are the services that credentials are for, as far as their checks ask them. They take the good secret.
func trialServices(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		form, _ := url.ParseQuery(string(body)) // what is not a form has no secret
		good := strings.Contains(fmt.Sprint(r.Header, r.URL.Path, form), trialSecret)
		if _, secret, ok := r.BasicAuth(); ok {
			good = secret == trialSecret
		}
		say := func(status int, text string) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprint(w, text)
		}
		name := r.Method + " " + strings.ReplaceAll(r.URL.Path, trialSecret, "SECRET")
		switch {
		case name == "POST /slack/auth.test" && !good:
			say(200, `{"ok":false,"error":"invalid_auth"}`)
		case strings.HasPrefix(name, "POST /gcp/token"):
			if r.URL.Path != "/gcp/token/"+trialSecret { // the key itself is checked by Google
				say(400, `{"error":"invalid_grant"}`)
				return
			}
			say(200, `{"access_token":"canary-token","expires_in":3600,"token_type":"Bearer"}`)
		case !good:
			say(401, `{"error":"invalid_client"}`)
		case name == "POST /slack/auth.test":
			say(200, `{"ok":true,"user":"tandem","team":"Acme"}`)
		case name == "POST /telegram/bot1:SECRET/getMe":
			say(200, `{"ok":true,"result":{"username":"tandem_bot"}}`)
		case name == "GET /discord/users/@me":
			say(200, `{"id":"1","username":"tandem"}`)
		case name == "POST /teams/t/oauth2/v2.0/token", name == "POST /azure/token", name == "POST /auth/token":
			say(200, `{"access_token":"canary-token","refresh_token":"canary-next","expires_in":3600,"token_type":"Bearer"}`)
		case name == "GET /openai/models", name == "GET /anthropic/v1/models":
			say(200, `{"data":[{},{}]}`)
		case name == "GET /gemini/v1beta/models":
			say(200, `{"models":[{},{}]}`)
		case name == "GET /github/user", name == "GET /gitlab/api/v4/user", name == "GET /jira/rest/api/2/myself", name == "GET /trello/1/members/me", name == "GET /notion/v1/users/me":
			say(200, `{"login":"ann","username":"ann","displayName":"ann","name":"ann"}`)
		case name == "PROPFIND /cal" && r.Header.Get("Depth") == "0":
			say(207, `<multistatus xmlns="DAV:"/>`)
		case name == "GET /airtable/v0/meta/whoami":
			say(200, `{"id":"usr1","email":"ann@example.com"}`)
		case name == "GET /search/search", name == "GET /search/res/v1/web/search":
			say(200, `{"results":[]}`)
		case name == "GET /aws/":
			say(200, `<ListAllMyBucketsResult/>`)
		default:
			t.Errorf("asked for %s", name)
			say(500, `{}`)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// Every type of credentials is tried at its service, by a call that changes nothing, or says why it cannot be. What the service does not
// take is told with what to do, and no answer holds a secret.
func TestCredentialTest(t *testing.T) {
	t.Parallel()
	x, s := openMail(t), trialServices(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	private := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	type data = map[string]any
	mailbox := func(kind string) func(string) data {
		return func(secret string) data {
			port := x.office
			if kind == "imap" {
				port = x.mailbox
			}
			password := mailPassword
			if secret != trialSecret {
				password = secret
			}
			return data{"host": "127.0.0.1", "port": port, "security": "none", "username": mailUser, "password": password}
		}
	}
	// One entry for each type: the data with a secret; nil: it cannot be tried.
	types := map[string]func(secret string) data{
		"slack_bot":    func(c string) data { return data{"token": c, "base_url": s.URL + "/slack"} },
		"telegram_bot": func(c string) data { return data{"token": "1:" + c, "base_url": s.URL + "/telegram"} },
		"discord_bot":  func(c string) data { return data{"token": c, "base_url": s.URL + "/discord"} },
		"teams_bot": func(c string) data {
			return data{"app_id": "a", "app_secret": c, "tenant_id": "t", "base_url": s.URL + "/teams"}
		},
		"smtp": mailbox("smtp"), "imap": mailbox("imap"),
		"openai":       func(c string) data { return data{"api_key": c, "base_url": s.URL + "/openai"} },
		"anthropic":    func(c string) data { return data{"api_key": c, "base_url": s.URL + "/anthropic/v1"} },
		"gemini":       func(c string) data { return data{"api_key": c, "base_url": s.URL + "/gemini"} },
		"github_token": func(c string) data { return data{"token": c, "base_url": s.URL + "/github"} },
		"gitlab_token": func(c string) data { return data{"token": c, "base_url": s.URL + "/gitlab"} },
		"jira":         func(c string) data { return data{"token": c, "email": "a@example.com", "base_url": s.URL + "/jira"} },
		"trello":       func(c string) data { return data{"key": "k", "token": c, "base_url": s.URL + "/trello"} },
		"notion":       func(c string) data { return data{"token": c, "base_url": s.URL + "/notion"} },
		"airtable":     func(c string) data { return data{"token": c, "base_url": s.URL + "/airtable"} },
		"caldav":       func(c string) data { return data{"url": s.URL + "/cal", "username": "u", "password": c} },
		"aws_keys": func(c string) data {
			return data{"access_key_id": c, "secret_access_key": "canary-secret-key", "base_url": s.URL + "/aws"}
		},
		"azure": func(c string) data {
			return data{"tenant_id": "t", "client_id": "i", "client_secret": c, "account_name": "store", "token_url": s.URL + "/azure/token"}
		},
		"gcp_service_account": func(c string) data {
			return data{"key": data{"client_email": "bot@example.com", "private_key": private, "private_key_id": "k"}, "token_uri": s.URL + "/gcp/token/" + c}
		},
		"http_auth": func(c string) data {
			return data{"scheme": "oauth2_client", "client_id": "i", "client_secret": c, "token_url": s.URL + "/auth/token"}
		},
		"oauth2": func(c string) data {
			return data{"client_id": "i", "client_secret": "canary-client", "refresh_token": c, "token": "canary-old", "expires": "4102444800000", "authorize_url": s.URL + "/a", "token_url": s.URL + "/auth/token"}
		},
		"search":         func(c string) data { return data{"provider": "brave", "api_key": c, "base_url": s.URL + "/search"} },
		"webhook_secret": nil, "service": nil, "mcp_oauth": nil,
		// Their servers are those of the vendors; what can be seen here is that they are not authorized.
		"google_oauth": nil, "microsoft_oauth": nil,
		"sql": nil, // see TestCredential_Check in package database
	}
	keep := func(t *testing.T, kind, name string, fields data) string {
		t.Helper()
		return want[api.Credential](t, x.call(t, "admin", "POST", "/credentials", map[string]any{"name": name, "type": kind, "data": fields}), http.StatusCreated).ID
	}
	try := func(t *testing.T, name string) api.CredentialTest {
		t.Helper()
		a := x.call(t, "editor", "POST", "/credentials/"+name+"/test", nil)
		if strings.Contains(string(a.body), "canary") || strings.Contains(string(a.body), "PRIVATE KEY") {
			t.Errorf("a secret is told: %s", a.body)
		}
		got := want[api.CredentialTest](t, a, http.StatusOK)
		if got.Detail == "" || got.CheckedTime == 0 {
			t.Errorf("it says %+v", got)
		}
		return got
	}
	for _, known := range builtInCredentials(t) {
		make, listed := types[known.Name]
		if !listed {
			t.Errorf("the type %q is not tried here", known.Name)
		}
		if known.Check == nil && (known.Untried.Words("en") == "" || known.Untried.Words("zh") == "") {
			t.Errorf("the type %q cannot be tried, and does not say why in both languages", known.Name)
		}
		if make == nil {
			continue
		}
		t.Run(known.Name, func(t *testing.T) {
			t.Parallel()
			keep(t, known.Name, "good-"+known.Name, make(trialSecret))
			if got := try(t, "good-"+known.Name); !got.OK || !got.Testable || got.ErrorCode != "" {
				t.Errorf("a good one: %+v", got)
			}
			keep(t, known.Name, "bad-"+known.Name, make("canary-wrong-1"))
			if got := try(t, "bad-"+known.Name); got.OK || !got.Testable || got.ErrorCode != "credential_invalid" {
				t.Errorf("a wrong one: %+v", got)
			}
		})
	}
	t.Run("Untried", func(t *testing.T) {
		t.Parallel()
		for kind, fields := range map[string]data{
			"webhook_secret": {"secret": "canary-8WkzPqLr3mNvT6yB"}, "service": {"openapi": data{"openapi": "3.1.0"}}, "mcp_oauth": {}, "teams_bot": {"webhook_url": "https://example.com/canary"},
			"http_auth": {"scheme": "bearer", "token": "canary"}, "sql": {"driver": "sqlite", "dsn": "canary.db"}, "oauth2": {"token": "canary"}, "search": {"provider": "json"},
		} {
			keep(t, kind, "untried-"+kind, fields)
			if got := try(t, "untried-"+kind); got.OK || got.Testable || got.ErrorCode != "unsupported" {
				t.Errorf("%s: %+v", kind, got)
			}
		}
	})
	t.Run("Unreachable", func(t *testing.T) {
		t.Parallel()
		gone := httptest.NewServer(nil)
		gone.Close()
		address, err := url.Parse(gone.URL)
		if err != nil {
			t.Fatal(err)
		}
		for kind, fields := range map[string]data{
			"openai": {"api_key": "canary", "base_url": gone.URL}, "slack_bot": {"token": "canary", "base_url": gone.URL}, "sql": {"driver": "postgres", "dsn": "postgres://u:canary@" + address.Host + "/d?sslmode=disable"},
			"smtp": {"host": "127.0.0.1", "port": json.Number(address.Port()), "security": "none", "username": "u", "password": "canary"},
		} {
			keep(t, kind, "gone-"+kind, fields)
			if got := try(t, "gone-"+kind); got.OK || !got.Testable || got.ErrorCode != "network_error" || !strings.Contains(got.Detail, "whether this server can reach it") {
				t.Errorf("%s: %+v", kind, got)
			}
		}
	})
	t.Run("NotAuthorized", func(t *testing.T) {
		t.Parallel()
		for _, kind := range []string{"google_oauth", "microsoft_oauth", "oauth2"} {
			fields := data{"client_id": "i", "client_secret": "canary", "email": "ann@example.com"}
			if kind == "oauth2" {
				fields = data{"client_id": "i", "client_secret": "canary", "authorize_url": s.URL, "token_url": s.URL}
			}
			keep(t, kind, "new-"+kind, fields)
			if got := try(t, "new-"+kind); got.OK || got.ErrorCode != "credential_invalid" || !strings.Contains(got.Detail, "authorize") {
				t.Errorf("%s: %+v", kind, got)
			}
		}
	})
	t.Run("Entered", func(t *testing.T) {
		t.Parallel()
		id := keep(t, "github_token", "entered", data{"token": trialSecret, "base_url": s.URL + "/github"})
		try(t, "entered")
		if e := x.audited(t, "credential.test", id); e.User != "editor" || !strings.Contains(string(e.Detail), `"ok":true`) {
			t.Errorf("the log says %+v %s", e, e.Detail)
		}
		refused(t, x.call(t, "operator", "POST", "/credentials/entered/test", nil), http.StatusForbidden, "forbidden")
		refused(t, x.call(t, "stranger", "POST", "/credentials/entered/test", nil), http.StatusNotFound, "not_found")
	})
}
