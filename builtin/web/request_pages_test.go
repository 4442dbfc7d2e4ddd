package web_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"tandem/fault"
	"tandem/node/nodetest"
)

func TestHTTPRequest_Pages(t *testing.T) {
	t.Parallel()
	// Seven items, three to a page.
	serve := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		q := r.URL.Query()
		from := 0
		switch r.URL.Path {
		case "/link", "/body":
			_, _ = fmt.Sscan(q.Get("at"), &from) // absent: 0
		case "/cursor":
			_, _ = fmt.Sscan(q.Get("after"), &from)
		case "/page":
			var page int
			if _, err := fmt.Sscan(q.Get("page"), &page); err != nil {
				t.Error(err)
			}
			from = (page - 1) * 3
		case "/offset":
			if _, err := fmt.Sscan(q.Get("offset"), &from); err != nil || q.Get("limit") != "3" {
				t.Errorf("query %v", q)
			}
		case "/fail":
			if q.Get("page") == "2" {
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
		}
		items := []int{}
		for i := from; i < min(from+3, 7); i++ {
			items = append(items, i)
		}
		next := from + 3
		answer := map[string]any{"result": map[string]any{"list": items}, "meta": []int{1}}
		if next < 7 {
			w.Header().Add("Link", fmt.Sprintf(`</link?at=0>; rel="first", <?at=%d>; title="a, b"; rel="prefetch next"`, next))
			answer["next"] = fmt.Sprintf("/body?at=%d", next)
			answer["cursor"] = next
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}
	const all = `[0, 1, 2, 3, 4, 5, 6]`
	for _, c := range []struct{ name, path, pages, want string }{
		{"Link", "/link", `"mode": "link"`, `{"json": ` + all + `, "pages": 3}`},
		{"LinkInBody", "/body", `"mode": "link", "next_path": "next"`, `{"json": ` + all + `, "pages": 3}`},
		{"Cursor", "/cursor?x=1", `"mode": "cursor", "cursor_path": "cursor", "cursor_param": "after"`, `{"json": ` + all + `, "pages": 3}`},
		{"Page", "/page", `"mode": "page"`, `{"json": ` + all + `, "pages": 4}`},
		{"PageSize", "/page", `"mode": "page", "page_size": 3`, `{"json": ` + all + `, "pages": 3}`},
		{"Offset", "/offset", `"mode": "offset", "page_size": 3`, `{"json": ` + all + `, "pages": 3}`},
		{"MaxPages", "/page", `"mode": "page", "max_pages": 2`, `{"json": [0, 1, 2, 3, 4, 5], "pages": 2, "truncated": true}`},
		{"SameCursor", "/cursor", `"mode": "cursor", "cursor_path": "cursor", "cursor_param": "ignored"`, `{"json": [0, 1, 2, 0, 1, 2], "pages": 2}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := newHTTPRig(t, serve).want(`{"url": "$URL`+c.path+`", "pagination": {`+c.pages+`, "items_path": "result.list"}}`, ``, c.want)
			if truncated := got["truncated"] == true; truncated != (c.name == "MaxPages") {
				t.Errorf("truncated is %v", truncated)
			}
		})
	}
	t.Run("FailsLater", func(t *testing.T) {
		t.Parallel()
		r := newHTTPRig(t, serve)
		for method, retryable := range map[string]bool{"GET": true, "POST": false} { // the first page of a POST has had its effect
			_, err := r.call(`{"url": "$URL/fail", "method": "`+method+`", "pagination": {"mode": "page", "items_path": "result.list"}}`, ``)
			if f := fault.From(err); f.Code != fault.RateLimited || f.Retryable != retryable {
				t.Errorf("%s: %v, retryable %v", method, err, f.Retryable)
			}
		}
	})
	t.Run("NoList", func(t *testing.T) {
		t.Parallel()
		r := newHTTPRig(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `7`) })
		_, err := r.call(`{"url": "$URL", "pagination": {"mode": "page"}}`, ``)
		nodetest.WantError(t, err, fault.OutputInvalid, "items_path")
	})
	t.Run("ForeignLink", func(t *testing.T) {
		t.Parallel()
		got := make(chan string, 2)
		var port string
		r := newHTTPRig(t, func(w http.ResponseWriter, r *http.Request) {
			got <- r.Host[:5] + r.Header.Get("Authorization")
			if strings.HasPrefix(r.Host, "127.0.0.1") {
				w.Header().Set("Link", "<http://other.example"+port+`/>; rel="next"`)
			}
			_, _ = io.WriteString(w, `[1]`)
		})
		port = r.server.URL[strings.LastIndexByte(r.server.URL, ':'):]
		r.creds["c"] = `{"scheme": "bearer", "token": "` + nodetest.Canary + `"}`
		r.want(`{"url": "$URL", "credential_id": "c", "pagination": {"mode": "link"}}`, ``, `{"json": [1, 1], "pages": 2}`)
		if first, second := <-got, <-got; first != "127.0Bearer "+nodetest.Canary || second != "other" {
			t.Errorf("the services saw %q and %q", first, second)
		}
	})
}
