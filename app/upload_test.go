package app

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"tandem/engine"
	"tandem/outbound"
	"tandem/store"
	"tandem/store/sqlite/sqlitetest"
)

// TestInstance_ObjectStores puts a file into each object store through the whole engine: the credential is opened, the service
// asks to come again once, and the repeat brings the file. That the protocols are right is tested where they are spoken.
func TestInstance_ObjectStores(t *testing.T) {
	t.Parallel()
	const content = "the content of the file"
	var mu sync.Mutex
	tries, stored := map[string]int{}, map[string]bool{}
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/token" {
			_, _ = io.WriteString(w, `{"access_token": "c4nary-token-value", "expires_in": 3600}`)
			return
		}
		body, err := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		target := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")[0]
		if tries[target]++; tries[target] == 1 {
			w.Header().Set("Retry-After", "0.05")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		stored[target] = err == nil && bytes.Contains(body, []byte(content)) && r.Header.Get("Authorization") != ""
		w.Header().Set("ETag", `"e1"`)
		if target == "azure_blob" {
			w.WriteHeader(http.StatusCreated)
			return
		}
		_, _ = io.WriteString(w, `{"etag": "e1", "echo": "`+r.Header.Get("Authorization")+`"}`)
	}))
	t.Cleanup(service.Close)
	allow, err := outbound.ParseAllow("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	dir := sqlitetest.Dir(t)
	i, err := Open(t.Context(), Options{Dir: dir, HTTPAllow: allow})
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, i)
	workspace := filepath.Join(dir, "files", user.Workspace)
	if err := os.MkdirAll(workspace, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(workspace, "a.txt"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	ring, err := i.Keyring()
	if err != nil {
		t.Fatal(err)
	}
	for target, c := range objectStoreCredentials(t, service.URL) {
		raw, err := json.Marshal(c.data)
		if err != nil {
			t.Fatal(err)
		}
		id := "cred_" + target
		sealed, err := sealedFor(t, ring, id, c.kind, raw)
		if err != nil {
			t.Fatal(err)
		}
		if err := i.stores.Credentials.Create(t.Context(), user, store.Credential{ID: id, Name: id, Type: c.kind, Sealed: sealed}); err != nil {
			t.Fatal(err)
		}
		i.saveText(t, `
metadata: {id: `+target+`, name: `+target+`, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: put, description: d, type: ACTION, subtype: FILE_UPLOAD, configurations: {target: `+target+`, bucket: my-bucket, key: "in/{{start.outputs.name}}",
      credential_id: cred_`+target+`, file: a.txt}}
connections:
  - {from_node: start, to_node: put}
`)
		execution := i.startText(t, target, `{"name": "b c.txt"}`)
		i.ends(t, execution, engine.StatusSuccess)
		outputs, err := i.Outputs(t.Context(), user, execution)
		if err != nil {
			t.Fatal(err)
		}
		got := string(outputs["put"])
		if !strings.Contains(got, `/my-bucket/in/b%20c.txt"`) || !strings.Contains(got, `"size":23`) {
			t.Errorf("%s: got %s", target, got)
		}
		if strings.Contains(got, "c4nary") {
			t.Errorf("%s: a secret is in the output: %s", target, got)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for _, target := range []string{"s3", "gcs", "azure_blob"} {
		if tries[target] != 2 || !stored[target] {
			t.Errorf("%s: stored %v after %d tries", target, stored[target], tries[target])
		}
	}
}

// objectStoreCredential is a credential of a type.
type objectStoreCredential struct {
	kind string
	data map[string]any
}

// objectStoreCredentials are credentials for a loopback service, by the target they are for.
func objectStoreCredentials(t *testing.T, base string) map[string]objectStoreCredential {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	private := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	return map[string]objectStoreCredential{
		"s3": {"aws_keys", map[string]any{"access_key_id": "AKID", "secret_access_key": "c4nary-s3cret-value", "base_url": base + "/s3"}},
		"gcs": {"gcp_service_account", map[string]any{
			"key": map[string]string{"client_email": "robot@example.com", "private_key": private, "private_key_id": "k1"}, "token_uri": base + "/token", "base_url": base + "/gcs",
		}},
		"azure_blob": {"azure", map[string]any{"account_name": "acct", "account_key": "YzRuYXJ5LXMzY3JldC12YWx1ZQ==", "base_url": base + "/azure_blob"}},
	}
}
