package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"tandem/human"
	"tandem/identity"
	"tandem/respond"
	"tandem/route"
)

// raw sends a request with a target that no client would write, and returns the answers' status and body.
func (w *world) raw(t *testing.T, method, target string, headers ...string) (int, string) {
	t.Helper()
	conn, err := net.Dial("tcp", w.http.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 2\r\n%s\r\n{}", method, target, strings.Join(append(headers, ""), "\r\n")); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	return answer.StatusCode, string(body)
}

// variants are other ways to write a path, by which somebody might get past who looks at it.
func variants(path string) []string {
	encode := func(c byte) string { return fmt.Sprintf("%%%02x", c) }
	last := path[strings.LastIndexByte(path, '/')+1:]
	all := []string{
		path + "/", path + "//", "/" + path, "//" + path, strings.ReplaceAll(path, "/", "//"), path + "/.", path + "/..", path + "/../" + last, "/." + path, "/x/.." + path, "/healthz/.." + path, "/docs/../" + path[1:],
		path + ";", path + ";x=y", path + "/;", path + "%3b", path + "%00", path + "%20", path + "%0a", path + "?", path + "#x", path + "%23", path + "%3f", path + ".json", path + "/%2e", path + "/%2e%2e", "/%2e" + path,
		"/respond/.." + path, "/respond/%2e%2e" + path, "/callbacks/..%2f" + path[1:], "/channels/a/b/.." + path, `\` + path[1:], strings.ReplaceAll(path, "/", `\`), strings.ReplaceAll(path, "/", "%5c"),
		"/" + encode('/') + path[1:], strings.Replace(path, "/", "/"+encode('/'), 1), "/" + strings.ReplaceAll(path[1:], "/", encode('/')), "/" + strings.ReplaceAll(path[1:], "/", "%2F"), strings.ReplaceAll(path, "/", "/./"),
		strings.ToUpper(path), "/" + encode(path[1]) + path[2:], "http://127.0.0.1" + path, "http://evil.example" + path, "http://127.0.0.1/x/.." + path, "http://user@127.0.0.1//" + path[1:],
		"%2f" + path[1:], "/%252e%252e" + path, path + "%2f..%2f..%2f",
	}
	return slices.DeleteFunc(all, func(v string) bool { return v == path })
}

// However the path of an operation is written, without a token it answers nothing: not what it is for, and not what another is for.
func TestPaths(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.admin("POST", route.Prefix+"/workflows", `{"metadata":{"id":"x","name":"canary-name"},"nodes":[{"id":"start","type":"TRIGGER","subtype":"MANUAL"}]}`).want(t, 201)
	open := map[string]string{}
	for _, path := range []string{"/", "/docs", "/openapi", "/healthz", "/readyz", "/openapi.json", "/openapi.yaml", "/mcp/authorized"} {
		open[path] = w.call("", "GET", path, "").want(t, 200).body
	}
	seen := map[string]bool{}
	tried := 0
	for _, op := range operations(w.server) {
		path := filled(op.Path, "x")
		if seen[op.Method+path] || op.Method != "GET" && strings.Count(path, "/") > 4 && op.Method != "DELETE" {
			continue // methods share their paths, and the longer ones add nothing
		}
		seen[op.Method+path] = true
		for _, target := range variants(path) {
			if strings.ContainsAny(target, "\n\r ") {
				continue
			}
			tried++
			status, body := w.raw(t, op.Method, target)
			switch {
			case status == 301 || status == 307 || status == 308 || status == 400 || status == 401 || status == 404 || status == 405:
				if strings.Contains(body, "canary") {
					t.Errorf("%s %s: %d tells %.200s", op.Method, target, status, body)
				}
			case status == 200 && slices.Contains([]string{open["/"], open["/openapi"], open["/healthz"], open["/readyz"], open["/openapi.json"], open["/openapi.yaml"]}, body):
				t.Errorf("%s %s reaches a page that it does not name", op.Method, target)
			case strings.HasPrefix(target, "http://evil.example") && status == 403:
			default:
				t.Errorf("%s %s without a token: %d %.200s", op.Method, target, status, body)
			}
		}
	}
	if tried < 1000 {
		t.Errorf("only %d paths were tried", tried)
	}
}

// With a token, a path means what the router says or nothing: names with slashes in them stay names.
func TestPaths_Names(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.admin("POST", route.Prefix+"/workflows", `{"metadata":{"id":"x","name":"canary-name"},"nodes":[{"id":"start","type":"TRIGGER","subtype":"MANUAL"}]}`).want(t, 201)
	bearer := "Authorization: Bearer " + w.tokens[identity.Viewer]
	if status, body := w.raw(t, "GET", route.Prefix+"/workflows/x", bearer); status != 200 || !strings.Contains(body, "canary-name") {
		t.Fatalf("%d %s", status, body)
	}
	for _, target := range []string{
		route.Prefix + "/executions/..%2fworkflows%2fx", route.Prefix + "/executions/%2e%2e%2fworkflows%2fx", route.Prefix + "/workflows/X", route.Prefix + "/workflows/x%00", route.Prefix + "/workflows/x;y", route.Prefix + "/workflows/%2fx", route.Prefix + "/workflows/x%2f",
		route.Prefix + "/workflows/.%2fx", route.Prefix + "/WORKFLOWS/x", "/API/v1/workflows/x", route.Prefix + "/workflows/x%20", route.Prefix + "%2fworkflows/x", route.Prefix + "/workflows%2fx",
	} {
		if status, body := w.raw(t, "GET", target, bearer); status < 400 || status >= 500 || strings.Contains(body, "canary-name") {
			t.Errorf("GET %s: %d %.200s", target, status, body)
		}
	}
	// What is cleaned is answered with where it is, never with what is there.
	for _, target := range []string{route.Prefix + "//workflows/x", route.Prefix + "/./workflows/x", "/x/.." + route.Prefix + "/workflows/x", "/" + route.Prefix + "/workflows/x"} {
		if status, body := w.raw(t, "GET", target, bearer); status == 200 || strings.Contains(body, "canary-name") {
			t.Errorf("GET %s: %d %.200s", target, status, body)
		}
	}
	// The token of a link is not one of another door, however the way to it is written.
	link := w.link(w.asks("operator-user", human.PurposeNode, approval("viewer-user")), "user:viewer-user")
	for _, target := range []string{link + "/../.." + route.Prefix + "/workflows/x", "/respond//" + strings.TrimPrefix(link, respond.Path), strings.ToUpper("/respond/") + strings.TrimPrefix(link, respond.Path), link + "%2f..", link + ";"} {
		if status, body := w.raw(t, "GET", target); status == 200 {
			t.Errorf("GET %s: %d %.200s", target, status, body)
		}
	}
}
