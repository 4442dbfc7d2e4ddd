package server

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"

	"tandem/api"
	"tandem/login"
	"tandem/route"
)

// TestOIDC_Provider logs in at an OpenID provider that others wrote, which keeps its id_token small as many do: the mail address and the
// name have to be asked for.
func TestOIDC_Provider(t *testing.T) {
	t.Parallel()
	outer := httptest.NewUnstartedServer(nil)
	outer.Start()
	t.Cleanup(outer.Close)
	there := httptest.NewUnstartedServer(nil)
	there.Start()
	t.Cleanup(there.Close)
	storage.RegisterClients(storage.WebClient("tandem", clientSecret, outer.URL+login.ReturnPath)) // the one test that has clients there
	there.Config.Handler = exampleop.SetupServer(there.URL, storage.NewStorage(storage.NewUserStore(there.URL)), slog.New(slog.DiscardHandler), true)

	w := setup(t, func(o *Options) {
		o.PublicURL, o.Workspace, o.Login = outer.URL, "a", login.Provider{Issuer: there.URL, ClientID: "tandem", ClientSecret: clientSecret}
	})
	outer.Config.Handler = w.server.Handler()
	w.http.Close()
	w.http = outer

	// visit goes to the provider, gives the name and the password to its page, and comes back.
	visit := func() (int, string, []*http.Cookie) {
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		c := &http.Client{Jar: jar}
		send := func(method, address, body string) (*http.Response, string) {
			t.Helper()
			r, err := http.NewRequestWithContext(t.Context(), method, address, bytes.NewBufferString(body))
			if err != nil {
				t.Fatal(err)
			}
			if body != "" {
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			}
			res, err := c.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			text, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			return res, string(text)
		}
		page, _ := send("GET", outer.URL+login.ProviderPath, "")
		asked := page.Request.URL
		if !strings.HasPrefix(asked.String(), there.URL+"/login/username?authRequestID=") {
			t.Fatalf("the browser was led to %s (%d)", asked, page.StatusCode)
		}
		form := url.Values{"username": {"test-user2"}, "password": {"verysecure"}, "id": {asked.Query().Get("authRequestID")}}
		res, body := send("POST", there.URL+"/login/username", form.Encode())
		here, err := url.Parse(outer.URL)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, body, jar.Cookies(here)
	}

	if status, body, _ := visit(); status != http.StatusForbidden || !strings.Contains(body, "test-user2@zitadel.ch") {
		t.Errorf("somebody whom nobody has invited: %d %s", status, body)
	}
	w.admin("POST", route.Prefix+"/invitations", `{"email":"test-user2@zitadel.ch","roles":["operator"]}`).want(t, 201)
	for range 2 { // the second time without an invitation
		status, body, cookies := visit()
		at := slices.IndexFunc(cookies, func(c *http.Cookie) bool { return c.Name == "tandem_session" })
		if status != http.StatusOK || at < 0 {
			t.Fatalf("%d %s", status, body)
		}
		me := read[api.User](t, w.with(cookies[at], "GET", "/users/me", "").want(t, 200))
		if me.Email != "test-user2@zitadel.ch" || me.Name != "Test User2" || !slices.Equal(me.Roles, []string{"operator"}) {
			t.Errorf("who came: %+v", me)
		}
	}
}
