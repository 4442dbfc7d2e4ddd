package azure

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"tandem/credential"
	"tandem/fault"
	"tandem/objectstore"
	"tandem/objectstore/objectstoretest"
	"tandem/outbound"
)

const (
	testAccount = "tandemtest"
	testSAS     = "sv=2024-11-04&sr=c&sp=cw&se=2040-01-01T00%3A00%3A00Z&sig=canary%2Bsignature%3D"
)

func testKey() string {
	return base64.StdEncoding.EncodeToString([]byte("account-key-canary-0123456789"))
}

// fakeLogin gives tokens to a client.
type fakeLogin struct {
	mu      sync.Mutex
	given   []string
	revoked []string
}

func (f *fakeLogin) knows(token string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Contains(f.given, token) && !slices.Contains(f.revoked, token)
}

// scopes are those that the client may have.
func (f *fakeLogin) scopes() []string {
	return []string{storageScope, "https://servicebus.azure.net/.default", "api://app/.default"}
}

func (f *fakeLogin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.PostFormValue("grant_type") != "client_credentials" || r.PostFormValue("client_id") != "app" || r.PostFormValue("client_secret") != "client-secret-canary" || !slices.Contains(f.scopes(), r.PostFormValue("scope")) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprint(w, `{"error": "invalid_client", "error_description": "AADSTS7000215"}`)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	token := fmt.Sprintf("eyJ.token-canary-%d", len(f.given)+1)
	f.given = append(f.given, token)
	_, _ = fmt.Fprintf(w, `{"access_token": %q, "expires_in": 3599, "token_type": "Bearer"}`, token)
}

type rig struct {
	*objectstoretest.Rig
	fake  *fakeBlobs
	login *fakeLogin
}

// credentials are the ways into the account, by name.
func credentials(base, tokenURL string) map[string]map[string]string {
	return map[string]map[string]string{
		"Key": {"account_name": testAccount, "account_key": testKey(), "base_url": base + "/" + testAccount},
		"SAS": {"sas": "?" + testSAS, "base_url": base + "/" + testAccount},
		"Client": {
			"tenant_id": "t-1", "client_id": "app", "client_secret": "client-secret-canary", "token_url": tokenURL, "base_url": base + "/" + testAccount,
		},
		"ConnectionString": {"connection_string": "DefaultEndpointsProtocol=http;AccountName=" + testAccount + ";AccountKey=" + testKey() + ";BlobEndpoint=" + base + "/" + testAccount + ";"},
		"ConnectionSAS":    {"connection_string": "BlobEndpoint=" + base + "/" + testAccount + "/;SharedAccessSignature=" + testSAS},
	}
}

func credentialOf(t testing.TB, fields map[string]string) credential.Opened {
	t.Helper()
	raw, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return credential.Opened{ID: "cred_1", Type: credentialType, Data: raw}
}

func setup(r *rig, way string) objectstoretest.Setup {
	return func(t testing.TB, client *outbound.Client, base string) objectstoretest.Service {
		key, err := base64.StdEncoding.DecodeString(testKey())
		if err != nil {
			t.Fatal(err)
		}
		sas, err := url.ParseQuery(testSAS)
		if err != nil {
			t.Fatal(err)
		}
		login := &fakeLogin{}
		server := httptest.NewServer(login)
		t.Cleanup(server.Close)
		fake := &fakeBlobs{
			account: testAccount, container: "box-1", key: key, sas: sas, bearers: login.knows,
			objects: map[string]objectstoretest.Stored{}, blocks: map[string]map[string][]byte{}, auth: map[string]int{},
		}
		if r != nil {
			r.fake, r.login = fake, login
		}
		return objectstoretest.Service{
			Store: Blobs(client), Credential: credentialOf(t, credentials(base, server.URL+"/t-1/token")[way]), Handler: fake, Bucket: fake.container, Meta: "X-Ms-Meta-",
			Header: http.Header{"X-Ms-Access-Tier": {"Cool"}},
			Object: func(key string) (objectstoretest.Stored, bool) {
				fake.mu.Lock()
				defer fake.mu.Unlock()
				o, ok := fake.objects[key]
				return o, ok
			},
			Refuse: func(w http.ResponseWriter, _ *http.Request, how string) {
				switch how {
				case "denied":
					fake.refuse(w, http.StatusForbidden, "AuthorizationPermissionMismatch", "This request is not authorized to perform this operation using this permission.")
				case "busy":
					fake.refuse(w, http.StatusServiceUnavailable, "ServerBusy", "The server is busy.")
				case "broken":
					fake.refuse(w, http.StatusInternalServerError, "InternalError", "The server encountered an internal error. Please retry the request.")
				case "damaged":
					fake.refuse(w, http.StatusBadRequest, "Md5Mismatch", "The MD5 value specified did not match.")
				}
			},
			Secrets: func() []string {
				return []string{testKey(), "account-key-canary", "canary%2Bsignature", "canary+signature", "client-secret-canary", "token-canary", "SharedKey"}
			},
		}
	}
}

func newRig(t testing.TB, way string) *rig {
	t.Helper()
	r := &rig{}
	r.Rig = objectstoretest.New(t, setup(r, way))
	return r
}

func TestBlobs(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"Key", "SAS"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			objectstoretest.Run(t, setup(nil, way))
		})
	}
}

func TestBlobs_Ways(t *testing.T) {
	t.Parallel()
	for way, want := range map[string]string{"Key": "key", "SAS": "sas", "Client": "token", "ConnectionString": "key", "ConnectionSAS": "sas"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, way)
			for _, size := range []int64{5, 9 << 20} {
				p := &objectstoretest.Pattern{Size: size}
				r.Put(r.Object("a b/ü", p), p)
			}
			// One call, then two blocks and their list.
			if r.fake.auth[want] != 4 || len(r.fake.auth) != 1 {
				t.Errorf("calls came in by %v, want 4 by %s", r.fake.auth, want)
			}
		})
	}
}

func TestBlobs_Tokens(t *testing.T) {
	t.Parallel()
	r := newRig(t, "Client")
	p := &objectstoretest.Pattern{Size: 9 << 20}
	r.Put(r.Object("k", p), p)
	if len(r.login.given) != 1 {
		t.Fatalf("%d tokens", len(r.login.given))
	}
	r.login.mu.Lock()
	r.login.revoked = append(r.login.revoked, r.login.given...)
	r.login.mu.Unlock()
	r.Put(r.Object("k", p), p)
	if len(r.login.given) != 2 {
		t.Fatalf("%d tokens", len(r.login.given))
	}
	// What stays refused with a new token is final, also when it is refused late.
	var blocks int
	r.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
		if q.URL.Query().Get("comp") == "blocklist" {
			blocks++
			r.fake.refuse(w, http.StatusForbidden, "AuthorizationFailure", "no "+q.Header.Get("Authorization"))
			return true
		}
		return false
	})
	r.Refused(t.Context(), r.Object("k", p), fault.CredentialInvalid, "AuthorizationFailure")
	if blocks != 2 || len(r.login.given) != 3 {
		t.Errorf("tried %d times with %d tokens", blocks, len(r.login.given))
	}
	fields := credentials(r.URL, "http://127.0.0.1:1/token")["Client"]
	r.Credential = credentialOf(t, fields)
	r.Refused(t.Context(), r.Object("k", p), fault.NetworkError, "refused the connection")
}

func TestBlobs_Credentials(t *testing.T) {
	t.Parallel()
	r := newRig(t, "Key")
	base := r.URL + "/" + testAccount
	for _, c := range []struct {
		fields map[string]string
		part   string
	}{
		{map[string]string{"account_key": testKey()}, "account_name"},
		{map[string]string{"account_name": "evil.example.com/", "account_key": testKey()}, "account_name"},
		{map[string]string{"account_name": testAccount, "account_key": "no base64!", "base_url": base}, "base64"},
		{map[string]string{"account_name": testAccount, "account_key": "AAAA", "base_url": base}, "AuthenticationFailed"},
		{map[string]string{"account_name": testAccount, "base_url": base}, "lets nobody in"},
		{map[string]string{"sas": "sv=1&sig=wrong", "base_url": base}, "AuthenticationFailed"},
		{map[string]string{"sas": testSAS, "base_url": "http://127.0.0.1?x=1"}, "address"},
		{map[string]string{"tenant_id": "a/b", "client_id": "app", "client_secret": "s", "base_url": base}, "tenant_id"},
	} {
		r.Credential = credentialOf(t, c.fields)
		if f := r.Refused(t.Context(), r.Object("k", &objectstoretest.Pattern{Size: 5}), fault.CredentialInvalid, c.part); f.Retryable {
			t.Errorf("%v may not be repeated", f)
		}
	}
}

func TestOpenAccount_Endpoint(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fields map[string]string
		want   string
	}{
		{map[string]string{"account_name": "acct", "account_key": "AAAA"}, "https://acct.blob.core.windows.net"},
		{map[string]string{"connection_string": "DefaultEndpointsProtocol=https;AccountName=acct;AccountKey=AAAA;EndpointSuffix=core.chinacloudapi.cn"}, "https://acct.blob.core.chinacloudapi.cn"},
		{map[string]string{"connection_string": "AccountName=acct;AccountKey=AAA="}, "https://acct.blob.core.windows.net"},
	} {
		a, err := openAccount(credentialOf(t, c.fields))
		if err != nil {
			t.Fatal(err)
		}
		if a.endpoint.String() != c.want {
			t.Errorf("got %s, want %s", a.endpoint, c.want)
		}
	}
}

func TestBlobs_Metadata(t *testing.T) {
	t.Parallel()
	r := newRig(t, "Key")
	o := r.Object("k", &objectstoretest.Pattern{Size: 5})
	o.Header = http.Header{"X-Ms-Meta-With-Dash": {"1"}}
	r.Refused(t.Context(), o, fault.InvalidConfig, "underscores")
}

func BenchmarkBlobs(b *testing.B) {
	r := newRig(b, "Key")
	r.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
		if _, _, ok := r.fake.body(w, q, nil); ok {
			w.Header().Set("ETag", `"e"`)
			w.WriteHeader(http.StatusCreated)
		}
		return true
	})
	const size = 100 << 20
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Store.Put(b.Context(), r.Credential, objectstore.Object{
			Bucket: r.fake.container, Key: "k", Content: (&objectstoretest.Pattern{Size: size}).Content(), Timeout: time.Minute, Clock: time.Now,
		}); err != nil {
			b.Fatal(err)
		}
	}
}
