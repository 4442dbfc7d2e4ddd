package server

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"tandem/web"
)

func packed(t *testing.T, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

const script = "console.log(1)"

// builtWeb is a web UI as npm builds it: compressed assets, one that is not, and something beside them that nobody is to have.
func builtWeb(t *testing.T) func(*Options) {
	t.Helper()
	files := fstest.MapFS{
		"index.html":           {Data: []byte(`<!doctype html><meta name="csp-nonce" content="CSP-NONCE"><div id="root"></div>`)},
		"robots.txt":           {Data: []byte("User-agent: *")},
		"assets/main-1a2b.js":  {Data: nil},
		"assets/icon.svg":      {Data: []byte("<svg/>")},
		"assets/main-1a2b.css": {Data: []byte("body{}")},
		"secret.txt":           {Data: []byte("nobody's")},
	}
	delete(files, "assets/main-1a2b.js")
	files["assets/main-1a2b.js.gz"] = &fstest.MapFile{Data: packed(t, script)}
	return func(o *Options) { o.Web = files }
}

// fetch asks for something without a token, as a browser that takes an encoding.
func (w *world) fetch(method, path, encoding string) answer {
	w.t.Helper()
	return w.ask("", method, path, nil, func(r *http.Request) { r.Header.Set("Accept-Encoding", encoding) })
}

// TestWeb serves the UI from the binary: the page under a strict policy, assets that stay as they are, and nothing else.
func TestWeb(t *testing.T) {
	t.Parallel()
	w := setup(t, builtWeb(t))
	t.Run("Page", func(t *testing.T) {
		nonces := map[string]bool{}
		paths := []string{"/", "/"}
		for _, place := range web.Places() {
			paths = append(paths, place, place+"/some/thing")
		}
		for _, path := range paths {
			got := w.fetch(http.MethodGet, path, "identity").want(t, 200)
			policy := got.header.Get("Content-Security-Policy")
			nonce := regexp.MustCompile(`'nonce-([A-Z0-9]{20,})'`).FindStringSubmatch(policy)
			if nonce == nil || nonces[nonce[1]] || !strings.Contains(got.body, `content="`+nonce[1]+`"`) || strings.Contains(got.body, "CSP-NONCE") {
				t.Fatalf("%s: the nonce is not one of its own: %s in %s", path, policy, got.body)
			}
			nonces[nonce[1]] = true
			for _, part := range []string{"default-src 'none'", "script-src 'self';", "connect-src 'self'", "base-uri 'none'", "form-action 'self'", "frame-ancestors 'none'"} {
				if !strings.Contains(policy, part) {
					t.Errorf("%s: the policy lacks %s: %s", path, part, policy)
				}
			}
			if strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") || strings.Contains(policy, "*") {
				t.Errorf("%s: the policy is loose: %s", path, policy)
			}
			if got.header.Get("Cache-Control") != "no-store" || got.header.Get("X-Content-Type-Options") != "nosniff" || got.header.Get("Referrer-Policy") == "" || !strings.HasPrefix(got.header.Get("Content-Type"), "text/html") {
				t.Errorf("%s: %v", path, got.header)
			}
		}
	})
	t.Run("Stray", func(t *testing.T) {
		for accept, kind := range map[string]string{"text/html,*/*;q=0.8": "text/html", "application/json": "application/problem+json", "": "application/problem+json"} {
			got := w.ask("", http.MethodGet, "/nowhere", nil, func(r *http.Request) { r.Header.Set("Accept", accept) }).want(t, 404)
			if !strings.HasPrefix(got.header.Get("Content-Type"), kind) {
				t.Errorf("%q is answered %v", accept, got.header)
			}
		}
		browser := func(r *http.Request) { r.Header.Set("Accept", "text/html") }
		for _, path := range []string{"/api/v1/nowhere", "/api/nowhere"} {
			if got := w.ask("", http.MethodGet, path, nil, browser); strings.HasPrefix(got.header.Get("Content-Type"), "text/html") {
				t.Errorf("%s is answered %v", path, got.header)
			}
		}
	})
	t.Run("Assets", func(t *testing.T) {
		zipped := w.fetch(http.MethodGet, "/assets/main-1a2b.js", "br, gzip;q=0.5").want(t, 200)
		if zipped.header.Get("Content-Encoding") != "gzip" || zipped.body != string(packed(t, script)) {
			t.Errorf("compressed it is %q (%v)", zipped.body, zipped.header)
		}
		for _, encoding := range []string{"identity", "br", "gzip;q=0"} {
			plain := w.fetch(http.MethodGet, "/assets/main-1a2b.js", encoding).want(t, 200)
			if plain.header.Get("Content-Encoding") != "" || plain.body != script {
				t.Errorf("%s: %q (%v)", encoding, plain.body, plain.header)
			}
		}
		for path, kind := range map[string]string{"/assets/main-1a2b.js": "text/javascript; charset=utf-8", "/assets/main-1a2b.css": "text/css; charset=utf-8", "/assets/icon.svg": "image/svg+xml"} {
			got := w.fetch(http.MethodGet, path, "gzip").want(t, 200)
			if got.header.Get("Content-Type") != kind || got.header.Get("Cache-Control") != "public, max-age=31536000, immutable" || got.header.Get("Vary") != "Accept-Encoding" || got.header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s: %v", path, got.header)
			}
		}
	})
	t.Run("Missing", func(t *testing.T) {
		for _, path := range []string{"/assets/", "/assets/main-0000.js", "/assets/none/main-1a2b.js", "/assets/..%2Fsecret.txt", "/assets/%2e%2e/secret.txt", "/assets/..%2f..%2fetc%2fpasswd", "/assets/%2Fetc%2Fpasswd", "/assets/a%00b"} {
			got := w.fetch(http.MethodGet, path, "identity")
			if got.status != http.StatusNotFound || strings.Contains(got.body, "nobody's") || strings.Contains(got.header.Get("Cache-Control"), "immutable") {
				t.Errorf("%s: %d %s (%v)", path, got.status, got.body, got.header)
			}
		}
	})
	t.Run("Head", func(t *testing.T) {
		for _, path := range []string{"/", "/inbox", "/assets/main-1a2b.js"} {
			if got := w.fetch(http.MethodHead, path, "gzip").want(t, 200); got.body != "" || got.header.Get("Content-Type") == "" {
				t.Errorf("%s: %q %v", path, got.body, got.header)
			}
		}
		w.fetch(http.MethodPost, "/inbox", "identity").want(t, 405)
	})
}

// TestWeb_Absent says on the first page that the binary has no UI, and how to get one.
func TestWeb_Absent(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Options){"LeftOut": func(*Options) {}, "NotBuilt": func(o *Options) { o.Web = fstest.MapFS{"robots.txt": {Data: []byte("x")}} }} {
		w := setup(t, change)
		if got := w.fetch(http.MethodGet, "/", "identity").want(t, 200); !strings.Contains(got.body, "npm") && !strings.Contains(got.body, "make") {
			t.Errorf("%s: the first page says %s", name, got.body)
		}
		w.fetch(http.MethodGet, "/inbox", "identity").want(t, 404)
		w.fetch(http.MethodGet, "/assets/main-1a2b.js", "identity").want(t, 404)
	}
}
