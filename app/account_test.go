package app

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"tandem/api"
	"tandem/credential"
	"tandem/engine"
	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/vault"
)

// authority is an authorization server (RFC 6749, 7636) with the service that its tokens are for. Codes and refresh tokens are good once:
// bringing one a second time ends the whole family of tokens that came from it, as RFC 9700 wants it.
type authority struct {
	*httptest.Server
	mu sync.Mutex
	// lifetime is how long tokens live, in seconds.
	lifetime int
	// codes are those that were not used, by code; access and refresh are the families of tokens, live the families that were not ended.
	codes           map[string]url.Values
	access, refresh map[string]string
	used            map[string]bool
	live            map[string]bool
	renewals        int
	problems        []string
	// called is told of each call of the service, with its token.
	called func(token string)
}

func newAuthority(t *testing.T) *authority {
	a := &authority{lifetime: 3600, codes: map[string]url.Values{}, access: map[string]string{}, refresh: map[string]string{}, used: map[string]bool{}, live: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /authorize", a.authorize)
	mux.HandleFunc("POST /token", a.token)
	mux.HandleFunc("GET /service", func(w http.ResponseWriter, r *http.Request) {
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		a.mu.Lock()
		good, called := a.live[a.access[token]], a.called
		a.mu.Unlock()
		if !good {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if called != nil {
			called(token)
		}
	})
	a.Server = httptest.NewServer(mux)
	t.Cleanup(a.Close)
	return a
}

// authorize agrees to whatever is asked as it should be.
func (a *authority) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	a.mu.Lock()
	defer a.mu.Unlock()
	if q.Get("response_type") != "code" || q.Get("client_id") != "client" || q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43 || q.Get("scope") != "read write" || q.Get("state") == "" {
		a.problems = append(a.problems, "asked with "+r.URL.RawQuery)
	}
	code := rand.Text()
	a.codes[code] = q
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
}

func (a *authority) token(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	refuse := func(code string) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"error":%q}`, code)
	}
	if r.FormValue("client_id") != "client" || r.FormValue("client_secret") != "canary-client-secret" {
		refuse("invalid_client")
		return
	}
	family := ""
	switch r.FormValue("grant_type") {
	case "authorization_code":
		asked, ok := a.codes[r.FormValue("code")]
		delete(a.codes, r.FormValue("code"))
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		if !ok || asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) || asked.Get("redirect_uri") != r.FormValue("redirect_uri") {
			refuse("invalid_grant")
			return
		}
		family = rand.Text()
		a.live[family] = true
	case "refresh_token":
		a.renewals++
		old := r.FormValue("refresh_token")
		family = a.refresh[old]
		if a.used[old] {
			a.live[family] = false // it was stolen, or used twice
		}
		if !a.live[family] {
			refuse("invalid_grant")
			return
		}
		a.used[old] = true
	default:
		refuse("unsupported_grant_type")
		return
	}
	access, refresh := "canary-access-"+rand.Text(), "canary-refresh-"+rand.Text()
	a.access[access], a.refresh[refresh] = family, family
	_, _ = fmt.Fprintf(w, `{"access_token":%q,"refresh_token":%q,"token_type":"Bearer","expires_in":%d}`, access, refresh, a.lifetime)
}

// do changes the authority.
func (a *authority) do(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
}

func (a *authority) renewed() (n int) {
	a.do(func() { n = a.renewals })
	return n
}

// visit opens an address with a browser, which follows where it is led.
func visit(t *testing.T, browser *http.Client, address string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", address, nil)
	works(t, err)
	w, err := browser.Do(r)
	works(t, err)
	defer w.Body.Close()
	body, err := io.ReadAll(w.Body)
	works(t, err)
	return w.StatusCode, string(body)
}

func newBrowser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	works(t, err)
	return &http.Client{Jar: jar}
}

// openAccount is a site with a credential of an account that has not been authorized.
func openAccount(t *testing.T) (*site, *authority, string) {
	t.Helper()
	a := newAuthority(t)
	x := openSiteAs(t, func(o *Options, url string) { o.PublicURL = url })
	id := x.keep(t, "shop account", "oauth2", `{"client_id":"client","client_secret":"canary-client-secret","scopes":["read","write"],"authorize_url":"`+a.URL+`/authorize","token_url":"`+a.URL+`/token"}`)
	return x, a, id
}

// begin begins an authorization and returns the address to open.
func (x *site) begin(t *testing.T, user, id string) string {
	t.Helper()
	address := want[api.MCPAuthorization](t, x.call(t, user, "POST", "/credentials/"+id+"/authorize", nil), http.StatusOK).URL
	x.audited(t, "credential.authorize", id)
	return address
}

// tokenOf is the token that is kept in a credential now, as somebody who reads the database finds it.
func (x *site) tokenOf(t testing.TB, id string) string {
	c, err := x.stores.Credentials.Get(context.Background(), identity.System("default"), id)
	if err != nil {
		t.Error(err)
		return ""
	}
	ring, err := x.Keyring()
	if err != nil {
		t.Error(err)
		return ""
	}
	raw, err := ring.Open(c.Sealed, credential.Context("default", id, c.Type))
	var data struct{ Token string }
	if err != nil || json.Unmarshal(raw, &data) != nil {
		t.Errorf("the credential cannot be read: %v", err)
	}
	return data.Token
}

// A person authorizes a credential with a browser; its tokens are used, renewed and kept.
func TestAccounts_Authorize(t *testing.T) {
	t.Parallel()
	x, a, id := openAccount(t)
	open := x.vault.Opener(identity.System("default"))
	if _, err := open(t.Context(), id); fault.CodeOf(err) != fault.CredentialInvalid || !strings.Contains(err.Error(), "tandem credentials authorize "+id) {
		t.Errorf("a credential without a token: %v", err)
	}
	refused(t, x.call(t, "editor", "POST", "/credentials/"+id+"/authorize", nil), http.StatusForbidden, "forbidden")
	other := x.keep(t, "key", "openai", `{"api_key":"0123456789abcdef"}`)
	refused(t, x.call(t, "admin", "POST", "/credentials/"+other+"/authorize", nil), http.StatusUnprocessableEntity, "invalid")

	// The first browser that opens the address is the one that comes back; a second one gets nowhere, with the address or with what the
	// first was given.
	ann, eve := newBrowser(t), newBrowser(t)
	address := x.begin(t, "admin", id)
	ann.CheckRedirect = func(r *http.Request, _ []*http.Request) error { return http.ErrUseLastResponse }
	r, err := ann.Get(address)
	works(t, err)
	works(t, r.Body.Close())
	if cookie := r.Header.Get("Set-Cookie"); !strings.Contains(cookie, "HttpOnly") || !strings.Contains(cookie, "SameSite=Lax") {
		t.Errorf("the cookie is %q", cookie)
	}
	for _, stolen := range []string{address, r.Header.Get("Location")} {
		if status, page := visit(t, eve, stolen); status < 400 {
			t.Errorf("another browser came back with %d %s", status, page)
		}
	}
	ann.CheckRedirect = nil
	if status, page := visit(t, ann, r.Header.Get("Location")); status != http.StatusOK || !strings.Contains(page, "shop account") {
		t.Fatalf("came back to %d %s", status, page)
	}
	if e := x.audited(t, "credential.authorized", id); e.User != "admin" || e.Address != "127.0.0.1" {
		t.Errorf("that it was authorized was entered as %+v", e)
	}
	if status, _ := visit(t, ann, address); status < 400 {
		t.Error("the address was good twice")
	}
	// A node uses the token, which is kept before it is used.
	a.do(func() {
		a.called = func(token string) {
			if kept := x.tokenOf(t, id); kept != token {
				t.Errorf("%q is used and %q is kept", token, kept)
			}
		}
	})
	x.save(t, keyedCall("shop", a.URL+"/service", "shop account"))
	runs := func() {
		t.Helper()
		x.reaches(t, x.execute(t, "shop", api.ExecuteRequest{}), engine.StatusSuccess)
	}
	runs()
	if n := a.renewed(); n != 0 {
		t.Errorf("a fresh token was renewed %d times", n)
	}
	// The service ends the token early: the node is given a new one.
	a.do(func() { delete(a.access, x.tokenOf(t, id)) })
	runs()
	if n := a.renewed(); n != 1 {
		t.Errorf("it was renewed %d times", n)
	}
	// One that ends soon is renewed before it is used.
	a.do(func() { a.lifetime = 30; delete(a.access, x.tokenOf(t, id)) })
	runs()
	a.do(func() { a.lifetime = 3600 })
	runs()
	runs()
	if n := a.renewed(); n != 3 {
		t.Errorf("it was renewed %d times", n)
	}
	// Who has begun an authorization must still be allowed to when it is finished.
	x.addUser(t, "default", "leaver", identity.Admin)
	address = x.begin(t, "leaver", id)
	works(t, x.stores.Users.Delete(t.Context(), identity.System("default"), "leaver"))
	if status, page := visit(t, newBrowser(t), address); status != http.StatusForbidden || !strings.Contains(page, "no longer an admin") {
		t.Errorf("came back to %d %s", status, page)
	}
	if len(a.problems) > 0 {
		t.Error(a.problems)
	}
}

// Many who want a token at once, in two processes on one database, renew it once; what the authorization server refuses for good is marked.
func TestAccounts_Renewal(t *testing.T) {
	t.Parallel()
	x, a, id := openAccount(t)
	a.do(func() { a.lifetime = 30 })
	if status, page := visit(t, newBrowser(t), x.begin(t, "admin", id)); status != http.StatusOK {
		t.Fatalf("came back to %d %s", status, page)
	}
	a.do(func() { a.lifetime = 3600 })
	second := x.another(x.stores.Credentials)
	var wg sync.WaitGroup
	for n := range 16 {
		v := []*vault.Vault{x.vault, second}[n%2]
		wg.Go(func() {
			c, err := v.Opener(identity.System("default"))(t.Context(), "shop account", "oauth2")
			if err != nil {
				t.Error(err)
			}
			c.Release()
		})
	}
	wg.Wait()
	if n := a.renewed(); n != 1 {
		t.Errorf("it was renewed %d times", n)
	}
	// The family of tokens is ended: somebody else has used the refresh token.
	held := must(second.Opener(identity.System("default"))(t.Context(), id))
	a.do(func() { clear(a.live) })
	_, err := held.Renew(t.Context(), x.tokenOf(t, id))
	held.Release()
	if fault.CodeOf(err) != fault.CredentialInvalid || !strings.Contains(err.Error(), "has to be authorized again") || !strings.Contains(err.Error(), "invalid_grant") {
		t.Errorf("got %v", err)
	}
	// From then on it says so wherever it is used, and nobody is asked in vain.
	n := a.renewed()
	for _, v := range []*vault.Vault{x.vault, second} {
		if _, err := v.Opener(identity.System("default"))(t.Context(), id); fault.CodeOf(err) != fault.CredentialInvalid || !strings.Contains(err.Error(), "has to be authorized again") {
			t.Errorf("got %v", err)
		}
	}
	x.save(t, keyedCall("shop", a.URL+"/service", id))
	failed := x.execute(t, "shop", api.ExecuteRequest{})
	x.reaches(t, failed, engine.StatusError)
	if e := x.read(t, failed).Error; e == nil || e.ErrorCode != string(fault.CredentialInvalid) || !strings.Contains(e.ErrorMessage, "has to be authorized again") {
		t.Errorf("%+v", e)
	}
	if c := want[api.Credential](t, x.call(t, "editor", "GET", "/credentials/"+id, nil), http.StatusOK); !strings.Contains(c.Problem, "invalid_grant") {
		t.Errorf("%+v", c)
	}
	if after := a.renewed(); after != n {
		t.Errorf("it was asked %d times in vain", after-n)
	}
	if status, page := visit(t, newBrowser(t), x.begin(t, "admin", id)); status != http.StatusOK {
		t.Fatalf("came back to %d %s", status, page)
	}
	x.reaches(t, x.execute(t, "shop", api.ExecuteRequest{}), engine.StatusSuccess)
	if c := want[api.Credential](t, x.call(t, "editor", "GET", "/credentials/"+id, nil), http.StatusOK); c.Problem != "" {
		t.Errorf("%+v", c)
	}
}

// another is the vault of another process on the same database.
func (x *site) another(credentials store.Credentials) *vault.Vault {
	o := x.vault.Options
	o.Credentials = credentials
	v := vault.New(o)
	v.Know(x.parts.Credentials)
	return v
}

// leased are the credentials as the process sees them that has their lease.
type leased struct{ store.Credentials }

func (leased) Lease(context.Context, identity.Principal, string, string, int64, int64) (bool, error) {
	return true, nil
}

// Another process that renews is waited for, and its token is used.
func TestAccounts_WaitsForLease(t *testing.T) {
	t.Parallel()
	x, a, id := openAccount(t)
	a.do(func() { a.lifetime = 30 })
	if status, page := visit(t, newBrowser(t), x.begin(t, "admin", id)); status != http.StatusOK {
		t.Fatalf("came back to %d %s", status, page)
	}
	p := identity.System("default")
	if held := must(x.stores.Credentials.Lease(t.Context(), p, id, "another process", 0, 1<<60)); !held {
		t.Fatal("there was a lease")
	}
	opened := make(chan error)
	go func() {
		c, err := x.vault.Opener(p)(t.Context(), id)
		c.Release()
		opened <- err
	}()
	a.do(func() { a.lifetime = 3600 })
	c, err := x.another(leased{x.stores.Credentials}).Opener(p)(t.Context(), id)
	works(t, err)
	c.Release()
	other := must(x.stores.Credentials.Get(t.Context(), p, id))
	_, err = x.stores.Credentials.Lease(t.Context(), p, id, "another process", 0, 0)
	works(t, err)
	works(t, <-opened)
	if n, c := a.renewed(), must(x.stores.Credentials.Get(t.Context(), p, id)); n != 1 || string(c.Sealed) != string(other.Sealed) {
		t.Errorf("it was renewed %d times", n)
	}
}

// must is a value that a test cannot go on without.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
