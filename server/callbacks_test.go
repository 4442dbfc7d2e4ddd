package server

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tandem/credential"
)

func TestCallbacks(t *testing.T) {
	t.Parallel()
	w := setup(t)
	other, err := credential.ParseKeyring("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f")
	if err != nil {
		t.Fatal(err)
	}
	known := Callback{Workspace: "a", Execution: "exec_gone", Activation: "n", Signal: "callback.0", Expires: time.Now().Add(time.Hour).UnixMilli()}
	address := func(ring *credential.Keyring) string {
		url, err := CallbackURL("https://tandem.example/sub/", ring, known)
		if err != nil {
			t.Fatal(err)
		}
		path, ok := strings.CutPrefix(url, "https://tandem.example/sub")
		if !ok || len(path) > 600 {
			t.Fatalf("the address is %q", url)
		}
		return path
	}
	good := address(w.ring)
	if again := address(w.ring); again == good {
		t.Error("two addresses are the same")
	}
	sealed, err := w.ring.Seal([]byte(`{"w":"a","e":"exec_gone"}`), credential.Context("a", "b", "c"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		method, path, body string
		status             int
	}{
		"Gone":          {"POST", good, `{}`, http.StatusGone},
		"GoneByGet":     {"GET", good, ``, http.StatusGone},
		"Head":          {"HEAD", good, ``, http.StatusMethodNotAllowed},
		"Put":           {"PUT", good, `{}`, http.StatusMethodNotAllowed},
		"OtherKey":      {"POST", address(other), `{}`, http.StatusNotFound},
		"Changed":       {"POST", good[:60] + "AAAA" + good[64:], `{}`, http.StatusNotFound},
		"Cut":           {"POST", good[:len(good)-8], `{}`, http.StatusNotFound},
		"Padded":        {"POST", good + "=", `{}`, http.StatusNotFound},
		"Long":          {"POST", callbackPath + strings.Repeat("A", 5000), `{}`, http.StatusNotFound},
		"OtherSealed":   {"POST", callbackPath + base64.RawURLEncoding.EncodeToString(sealed), `{}`, http.StatusNotFound},
		"NothingSealed": {"POST", callbackPath + "x", `{}`, http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := w.call("", c.method, c.path, c.body)
			got.want(t, c.status)
			if strings.Contains(string(got.body), "exec_gone") {
				t.Errorf("a stranger is told of the execution: %s", got.body)
			}
		})
	}
}

func TestCallbackValue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ contentType, body, want string }{
		"JSON":         {"application/json; charset=utf-8", ` {"a": 1.50} `, `{"a":1.50}`},
		"BOM":          {"application/json", "\uFEFF[1]", `[1]`},
		"JSONType":     {"application/problem+json", `"x"`, `"x"`},
		"Form":         {"application/x-www-form-urlencoded", "a=1&b=%C3%A9&b=", `{"a":"1","b":["é",""]}`},
		"Text":         {"text/plain", `{"a": 1}`, `"{\"a\": 1}"`},
		"NoType":       {"", `{"a": 1}`, `{"a":1}`},
		"NoTypeText":   {"", `hello`, `"hello"`},
		"Empty":        {"application/json", ` `, `null`},
		"EmptyForm":    {"application/x-www-form-urlencoded", ``, `null`},
		"BrokenJSON":   {"application/json", `{"a"`, ``},
		"BrokenForm":   {"application/x-www-form-urlencoded", `a=%zz`, ``},
		"Binary":       {"application/octet-stream", "\xff\x00", ``},
		"Multipart":    {"multipart/form-data; boundary=b", "--b--", ``},
		"BinaryAsText": {"text/plain", "\xff", ``},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(http.MethodPost, "/callbacks/x", strings.NewReader(c.body))
			r.Header.Set("Content-Type", c.contentType)
			got, err := callbackValue(r, []byte(c.body))
			if (err != nil) != (c.want == "") || string(got) != c.want {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
}
