package gcp

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"tandem/credential"
	"tandem/fault"
	"tandem/objectstore"
	"tandem/objectstore/objectstoretest"
	"tandem/outbound"
)

// testKey is made once; it takes a while.
var testKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func pemOf(t testing.TB, key *rsa.PrivateKey) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// rig is a service with its server for tokens.
type rig struct {
	*objectstoretest.Rig
	fake   *fakeStorage
	tokens *fakeTokens
}

func credentialFor(t testing.TB, base, tokenURI, private string, asText bool) credential.Opened {
	t.Helper()
	var key any = map[string]string{
		"type": "service_account", "project_id": "p", "private_key_id": "kid-1", "private_key": private, "client_email": "robot@p.iam.gserviceaccount.com",
		"token_uri": "https://oauth2.googleapis.com/token",
	}
	if asText {
		raw, err := json.Marshal(key)
		if err != nil {
			t.Fatal(err)
		}
		key = string(raw)
	}
	raw, err := json.Marshal(map[string]any{"key": key, "token_uri": tokenURI, "base_url": base})
	if err != nil {
		t.Fatal(err)
	}
	return credential.Opened{ID: "cred_1", Type: credentialType, Data: raw}
}

func setup(r *rig) objectstoretest.Setup {
	return func(t testing.TB, client *outbound.Client, base string) objectstoretest.Service {
		tokens := &fakeTokens{key: &testKey().PublicKey, email: "robot@p.iam.gserviceaccount.com", life: 3600}
		server := httptest.NewServer(tokens)
		t.Cleanup(server.Close)
		tokens.url = server.URL + "/token"
		fake := &fakeStorage{bucket: "bucket-1", tokens: tokens, base: base, objects: map[string]objectstoretest.Stored{}, sessions: map[string]*fakeSession{}, revoked: map[string]bool{}}
		private := pemOf(t, testKey())
		if r != nil {
			r.fake, r.tokens = fake, tokens
		}
		return objectstoretest.Service{
			Store: Storage(client), Credential: credentialFor(t, base, tokens.url, private, false), Handler: fake, Bucket: fake.bucket, Meta: "X-Goog-Meta-",
			Header: http.Header{"X-Goog-Storage-Class": {"NEARLINE"}},
			Object: func(key string) (objectstoretest.Stored, bool) {
				fake.mu.Lock()
				defer fake.mu.Unlock()
				o, ok := fake.objects[key]
				return o, ok
			},
			Refuse: func(w http.ResponseWriter, _ *http.Request, how string) {
				switch how {
				case "denied":
					fake.refuse(w, http.StatusForbidden, "forbidden", "robot does not have storage.objects.create access")
				case "busy":
					fake.refuse(w, http.StatusServiceUnavailable, "backendError", "Backend Error")
				case "broken":
					fake.refuse(w, http.StatusInternalServerError, "backendError", "Backend Error")
				case "damaged":
					fake.refuse(w, http.StatusBadRequest, "invalid", "Provided MD5 hash does not match")
				}
			},
			Secrets: func() []string { return []string{"token-canary", "session-canary", strings.Split(private, "\n")[1]} },
		}
	}
}

func TestStorage(t *testing.T) {
	t.Parallel()
	objectstoretest.Run(t, setup(nil))
}

func newRig(t testing.TB) *rig {
	t.Helper()
	r := &rig{}
	r.Rig = objectstoretest.New(t, setup(r))
	return r
}

// TestStorage_Continues: the service keeps only some of what it is sent, and the rest follows.
func TestStorage_Continues(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.fake.keep = 6 << 20
	p := &objectstoretest.Pattern{Size: 20<<20 + 3}
	got := r.Put(r.Object("k", p), p)
	if r.Requests() != 5 {
		t.Errorf("%d requests, not one to begin and four to send", r.Requests())
	}
	if !strings.Contains(string(got.Response), `"generation":"1"`) {
		t.Errorf("response %s", got.Response)
	}
}

// TestStorage_Stuck: a session that keeps nothing, or says nonsense, does not become an endless loop.
func TestStorage_Stuck(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, kept := range []string{"", "bytes=0-99999999", "bytes=5-9", "bytes=0-x"} {
		seen := 0
		r.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
			if q.Method != http.MethodPut {
				return false
			}
			if seen++; seen > 3 {
				t.Error("asked again and again")
			}
			w.Header().Set("Range", kept)
			w.WriteHeader(http.StatusPermanentRedirect)
			return true
		})
		if f := r.Refused(t.Context(), r.Object("k", &objectstoretest.Pattern{Size: 9 << 20}), fault.NetworkError, ""); !f.Retryable {
			t.Errorf("%v may be repeated", f)
		}
	}
}

// TestStorage_SessionLost: a session that the service forgot is not taken for a missing bucket.
func TestStorage_SessionLost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
		if q.Method != http.MethodPut {
			return false
		}
		r.fake.refuse(w, http.StatusGone, "notFound", "gone")
		return true
	})
	if f := r.Refused(t.Context(), r.Object("k", &objectstoretest.Pattern{Size: 9 << 20}), fault.RemoteError, "begins anew"); !f.Retryable {
		t.Errorf("%v may be repeated", f)
	}
}

func TestStorage_Tokens(t *testing.T) {
	t.Parallel()
	t.Run("Shared", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		for _, size := range []int64{1, 2, 9 << 20} {
			p := &objectstoretest.Pattern{Size: size}
			r.Put(r.Object("k", p), p)
		}
		if n := r.tokens.count(); n != 1 {
			t.Errorf("%d tokens were fetched", n)
		}
	})
	t.Run("Renewed", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		p := &objectstoretest.Pattern{Size: 5}
		r.Put(r.Object("k", p), p)
		r.fake.mu.Lock()
		r.fake.revoked["ya29.token-canary-1"] = true
		r.fake.mu.Unlock()
		r.Put(r.Object("k", p), p)
		if n := r.tokens.count(); n != 2 {
			t.Errorf("%d tokens were fetched", n)
		}
	})
	t.Run("Expired", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		p := &objectstoretest.Pattern{Size: 5}
		o := r.Object("k", p)
		r.Put(o, p)
		o.Clock = func() time.Time { return time.Now().Add(59*time.Minute + 30*time.Second) }
		r.Refused(t.Context(), o, fault.CredentialInvalid, "invalid_grant") // the next one is dated ahead, which the server does not take
	})
	t.Run("RefusedTwice", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.fake.revoked["ya29.token-canary-1"], r.fake.revoked["ya29.token-canary-2"] = true, true
		r.Refused(t.Context(), r.Object("k", &objectstoretest.Pattern{Size: 5}), fault.CredentialInvalid, "Invalid Credentials")
		if n := r.tokens.count(); n != 1 {
			t.Errorf("%d tokens were fetched; a fresh one that is refused is final", n)
		}
	})
	t.Run("NotGiven", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.tokens.mu.Lock()
		r.tokens.refuse = http.StatusServiceUnavailable
		r.tokens.mu.Unlock()
		if f := r.Refused(t.Context(), r.Object("k", &objectstoretest.Pattern{Size: 5}), fault.RemoteError, "no token"); !f.Retryable {
			t.Errorf("%v may be repeated", f)
		}
		if r.Requests() != 0 {
			t.Error("something was sent")
		}
	})
	t.Run("WrongKey", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		other, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			t.Fatal(err)
		}
		r.Credential = credentialFor(t, r.URL, r.tokens.url, pemOf(t, other), true)
		r.Refused(t.Context(), r.Object("k", &objectstoretest.Pattern{Size: 5}), fault.CredentialInvalid, "invalid_grant")
	})
	t.Run("AsText", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.Credential = credentialFor(t, r.URL, r.tokens.url, pemOf(t, testKey()), true)
		p := &objectstoretest.Pattern{Size: 5}
		r.Put(r.Object("k", p), p)
	})
	t.Run("Unreadable", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		for _, data := range []string{`{}`, `{"key": "nothing"}`, `{"key": {"client_email": "a", "private_key": "-----BEGIN"}}`, `[]`} {
			r.Credential = credential.Opened{ID: "cred_1", Data: json.RawMessage(data)}
			r.Refused(t.Context(), r.Object("k", &objectstoretest.Pattern{Size: 5}), fault.CredentialInvalid, `"cred_1"`)
		}
	})
}

func BenchmarkStorage(b *testing.B) {
	r := newRig(b)
	const size = 100 << 20
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Store.Put(b.Context(), r.Credential, objectstore.Object{
			Bucket: r.fake.bucket, Key: "k", Content: (&objectstoretest.Pattern{Size: size}).Content(), Timeout: time.Minute, Clock: time.Now,
		}); err != nil {
			b.Fatal(err)
		}
	}
}
