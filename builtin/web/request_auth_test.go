package web_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"tandem/credential"
	"tandem/fault"
	"tandem/node/nodetest"
)

func TestHTTPRequest_Credentials(t *testing.T) {
	t.Parallel()
	seen := make(chan *http.Request, 1)
	r := newHTTPRig(t, func(_ http.ResponseWriter, r *http.Request) { seen <- r })
	r.creds = map[string]string{
		"bearer": `{"scheme": "bearer", "token": "` + nodetest.Canary + `"}`,
		"basic":  `{"scheme": "basic", "username": "ann", "password": "` + nodetest.Canary + `"}`,
		"header": `{"scheme": "header", "name": "x-api-key", "value": "` + nodetest.Canary + `"}`,
		"query":  `{"scheme": "query", "name": "key", "value": "` + nodetest.Canary + `"}`,
		"base":   `{"scheme": "bearer", "token": "` + nodetest.Canary + `", "base_url": "$URL/v1/"}`,
		"hosts":  `{"scheme": "bearer", "token": "` + nodetest.Canary + `", "allowed_hosts": ["api.example"]}`,
		"odd":    `{"scheme": "digest"}`,
	}
	for id, check := range map[string]func(*http.Request) string{
		"bearer": func(r *http.Request) string { return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") },
		"basic":  func(r *http.Request) string { _, p, _ := r.BasicAuth(); return p },
		"header": func(r *http.Request) string { return r.Header.Get("X-Api-Key") },
		"query":  func(r *http.Request) string { return r.URL.Query().Get("key") },
	} {
		got := r.want(`{"url": "$URL/?a=1&key=mine", "headers": {"Authorization": "mine"}, "credential_id": "`+id+`"}`, `{"dynamic_headers": {"x-api-key": "mine"}}`, `{"status_code": 200}`)
		if request := <-seen; check(request) != nodetest.Canary {
			t.Errorf("%s: the service got %v %v", id, request.URL, request.Header)
		}
		if all := nodetest.Text(got) + nodetest.Text(r.details); strings.Contains(all, nodetest.Canary) {
			t.Errorf("%s: the secret is shown: %s", id, all)
		}
	}
	r.want(`{"url": "/users", "credential_id": "base"}`, ``, `{"url": "$URL/v1/users"}`)
	<-seen
	_, err := r.call(`{"url": "$URL", "credential_id": "hosts"}`, ``)
	nodetest.WantError(t, err, fault.CredentialInvalid, "allowed_hosts")
	_, err = r.call(`{"url": "$URL", "credential_id": "odd"}`, ``)
	nodetest.WantError(t, err, fault.CredentialInvalid, "digest")
	if len(seen) != 0 {
		t.Error("a credential was sent where it must not go")
	}
}

// A file that is kept is not a payload that the runtime cleans: the kind itself takes the secret out.
func TestHTTPRequest_FilesHoldNoSecrets(t *testing.T) {
	t.Parallel()
	const fetched = "f3tched-t0ken-value"
	binary := make([]byte, 200_000)
	for i := range binary {
		binary[i] = byte(i * i >> 3)
	}
	r := newHTTPRig(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/token":
			_, _ = io.WriteString(w, `{"access_token": "`+fetched+`", "token_type": "bearer"}`) // the client may be gone
		case "/plain":
			_, _ = w.Write(binary)
		default:
			_, _ = fmt.Fprintf(w, "%s you sent %s %s %s", strings.Repeat("x", 40_000), r.Header.Get("Authorization"), r.Header.Get("X-Api-Key"), r.URL)
		}
	})
	r.creds = map[string]string{
		"bearer": `{"scheme": "bearer", "token": "` + nodetest.Canary + `"}`,
		"basic":  `{"scheme": "basic", "username": "ann", "password": "` + nodetest.Canary + `"}`,
		"header": `{"scheme": "header", "name": "x-api-key", "value": "` + nodetest.Canary + `"}`,
		"query":  `{"scheme": "query", "name": "key", "value": "` + nodetest.Canary + `"}`,
		"oauth":  `{"scheme": "oauth2_client", "client_id": "c", "client_secret": "` + nodetest.Canary + `", "token_url": "$URL/token"}`,
	}
	kept := func(path, id string) string {
		t.Helper()
		got := r.want(`{"url": "$URL`+path+`", "response_type": "file", "credential_id": "`+id+`"}`, ``, `{"status_code": 200}`)
		content, _ := r.files.Content(got["file"].(map[string]any)["blob"].(string))
		return string(content)
	}
	encoded := base64.StdEncoding.EncodeToString([]byte("ann:" + nodetest.Canary))
	for id := range r.creds {
		file := kept("/echo", id)
		if !strings.Contains(file, "you sent") || !strings.Contains(file, credential.Mark) {
			t.Errorf("%s: the file is not what was sent: %.60q", id, file[min(len(file), 40_000):])
		}
		for _, secret := range []string{nodetest.Canary, fetched, encoded} {
			if strings.Contains(file, secret) {
				t.Errorf("%s: the file holds the secret %q", id, secret)
			}
		}
		if kept("/plain", id) != string(binary) {
			t.Errorf("%s: a file without secrets was changed", id)
		}
	}
}

func TestHTTPRequest_OAuth(t *testing.T) {
	t.Parallel()
	var issued, refused atomic.Int32
	var inBody, broken atomic.Bool
	serve := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/token" {
			if broken.Load() {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			user, password, basic := r.BasicAuth()
			if inBody.Load() {
				user, password, basic = r.PostFormValue("client_id"), r.PostFormValue("client_secret"), r.PostFormValue("client_id") != ""
			}
			if !basic || user != "me" || password != nodetest.Canary+"%21" && password != nodetest.Canary+"!" || r.PostFormValue("grant_type") != "client_credentials" || r.PostFormValue("scope") != "a b" {
				w.WriteHeader(http.StatusUnauthorized)
				_, _ = io.WriteString(w, `{"error": "invalid_client"}`)
				return
			}
			_, _ = fmt.Fprintf(w, `{"access_token": "fetched-token-%d", "token_type": "Bearer", "expires_in": "3600"}`, issued.Add(1))
			return
		}
		token := r.Header.Get("Authorization")
		if refused.Load() > 0 && token != fmt.Sprintf("Bearer fetched-token-%d", refused.Load()+1) {
			w.WriteHeader(http.StatusUnauthorized)
		}
		w.Header().Set("X-Echo", token)
		_, _ = io.WriteString(w, "you sent "+token) // a careless service
	}
	r := newHTTPRig(t, serve)
	r.creds["o"] = `{"scheme": "oauth2_client", "client_id": "me", "client_secret": "` + nodetest.Canary + `!", "token_url": "$URL/token", "scopes": ["a", "b"]}`
	r.creds["wrong"] = `{"scheme": "oauth2_client", "client_id": "you", "client_secret": "` + nodetest.Canary + `!", "token_url": "$URL/token", "scopes": ["a", "b"]}`
	const config = `{"url": "$URL/data", "method": "POST", "credential_id": "o"}`
	var wg sync.WaitGroup
	for range 5 { // at the same time, one token
		wg.Go(func() {
			got := r.want(config, ``, `{"status_code": 200, "body": "you sent Bearer [redacted]"}`)
			if strings.Contains(nodetest.Text(got), "fetched-token") {
				t.Errorf("the token is shown: %s", nodetest.Text(got))
			}
		})
	}
	wg.Wait()
	if issued.Load() != 1 {
		t.Errorf("%d tokens were fetched", issued.Load())
	}
	// A token that the service no longer takes is replaced once.
	refused.Store(1)
	r.want(config, ``, `{"status_code": 200}`)
	if issued.Load() != 2 {
		t.Errorf("%d tokens were fetched", issued.Load())
	}
	refused.Store(7)
	_, err := r.call(config, ``)
	nodetest.WantError(t, err, fault.CredentialInvalid, "401")
	if all := nodetest.Text(fault.From(err)) + nodetest.Text(r.details) + nodetest.Text(r.logs); issued.Load() != 3 || strings.Contains(all, "fetched-token") || strings.Contains(all, nodetest.Canary) {
		t.Errorf("%d tokens were fetched; shown: %s", issued.Load(), all)
	}
	refused.Store(0)
	_, err = r.call(`{"url": "$URL/data", "credential_id": "wrong"}`, ``)
	nodetest.WantError(t, err, fault.CredentialInvalid, "invalid_client")
	other := newHTTPRig(t, serve)
	other.creds = r.creds
	inBody.Store(true)
	other.want(config, ``, `{"status_code": 200}`)
	third := newHTTPRig(t, serve)
	third.creds = r.creds
	broken.Store(true)
	_, err = third.call(config, ``) // nothing was posted, so it may be tried again
	if f := fault.From(err); f.Code != fault.RemoteError || !f.Retryable {
		t.Errorf("got %v, retryable %v", err, f.Retryable)
	}
}
