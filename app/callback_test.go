package app

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"tandem/engine"
	"tandem/host"
	"tandem/identity"
	"tandem/outbound"
	"tandem/store/sqlite/sqlitetest"
)

// callbackSite is an instance with its server, which services can reach.
type callbackSite struct {
	*site
	t     *testing.T
	base  string
	close func()
}

// openCallbacks opens a data directory. Its server listens on a new port, and says so in the addresses that it gives away.
func openCallbacks(t *testing.T, dir string) *callbackSite {
	t.Helper()
	return openCallbacksWith(t, dir, nil)
}

// openCallbacksWith is openCallbacks with a log; nil: there is none.
func openCallbacksWith(t *testing.T, dir string, log *slog.Logger) *callbackSite {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	allow, err := outbound.ParseAllow("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	base := "http://" + listener.Addr().String()
	i, err := Open(t.Context(), Options{Dir: dir, HTTPAllow: allow, PublicURL: base, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := i.Keyring()
	if err != nil {
		t.Fatal(err)
	}
	api, err := i.server(ServeOptions{Version: "test", PublicURL: base, Log: log}, listener, nil, keys)
	if err != nil {
		t.Fatal(err)
	}
	web := &httptest.Server{Listener: listener, Config: &http.Server{Handler: api.Handler()}}
	web.Start()
	closed := sync.OnceFunc(func() {
		web.Close()
		api.Close()
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(closed)
	return &callbackSite{site: &site{Instance: i, url: base + "/api/v1", tokens: map[string]string{}}, t: t, base: base, close: closed}
}

// with reports to another test.
func (s *callbackSite) with(t *testing.T) *callbackSite {
	c := *s
	c.t = t
	return &c
}

// post calls an address of a call back as a service does and returns its status and text.
func (s *callbackSite) post(address, contentType, body string) (int, string) {
	s.t.Helper()
	method := http.MethodPost
	if contentType == "" {
		method = http.MethodGet
	}
	// The server may have another port since the address was given away; its name would be the same in real life.
	if i := strings.Index(address, "/callbacks/"); i > 0 {
		address = s.base + address[i:]
	}
	r, err := http.NewRequestWithContext(context.Background(), method, address, strings.NewReader(body))
	if err != nil {
		s.t.Error(err)
		return 0, ""
	}
	r.Header.Set("Content-Type", contentType)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Error(err)
		return 0, ""
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Error(err)
	}
	return res.StatusCode, string(text)
}

// receiver is a service that is called and calls back. What it does with a call is up to the test.
type receiver struct {
	*httptest.Server
	got chan string // the addresses that it was given
}

func newReceiver(t *testing.T, handle func(w http.ResponseWriter, address string)) *receiver {
	t.Helper()
	r := &receiver{got: make(chan string, 100)}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		var sent struct {
			URL string `json:"callback_url"`
		}
		if req.Method == http.MethodGet {
			sent.URL = req.URL.Query().Get("callback_url")
		} else if err := json.Unmarshal(body, &sent); err != nil {
			t.Error(err)
		}
		r.got <- sent.URL
		if handle != nil {
			handle(w, sent.URL)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if _, err := w.Write(body); err != nil { // repeats what it was sent
			t.Error(err)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// begin starts a workflow that calls the receiver.
func (s *callbackSite) begin(id, config string) string {
	s.t.Helper()
	s.saveText(s.t, `
metadata: {id: `+id+`, name: `+id+`, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: call, description: d, type: ACTION, subtype: WEBHOOK_CALL, configurations: `+config+`}
  - {id: came, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
  - {id: late, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
connections:
  - {from_node: start, to_node: call}
  - {from_node: call, to_node: came}
  - {from_node: call, output_key: timeout, to_node: late}
`)
	return s.startText(s.t, id, `{"order": 7}`)
}

func (s *callbackSite) output(execution, node string) string {
	s.t.Helper()
	s.ends(s.t, execution, engine.StatusSuccess)
	outputs, err := s.Outputs(s.t.Context(), user, execution)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(outputs[node])
}

func TestCallback(t *testing.T) {
	t.Parallel()
	dir := sqlitetest.Dir(t)
	s := openCallbacks(t, dir)
	var secrets []string // every address that was given away; subtests run one after the other

	t.Run("Late", func(t *testing.T) {
		s := s.with(t)
		r := newReceiver(t, nil)
		id := s.begin("late", `{url: "`+r.URL+`", wait_for_callback: true}`)
		address := <-r.got
		secrets = append(secrets, address)
		s.reaches(t, id, engine.StatusWaiting)
		if status, text := s.post(address, "application/json", `{"ok": [1, 2.50]}`); status != 200 {
			t.Fatalf("%d %s", status, text)
		}
		if out := s.output(id, "came"); !strings.Contains(out, `"callback":{"ok":[1,2.50]}`) || !strings.Contains(out, `"order":7`) || !strings.Contains(out, `"status_code":200`) {
			t.Errorf("got %s", out)
		}
		if e := s.audited(t, "execution.callback", id); e.Means.Kind != identity.ByCallback || e.Address != "127.0.0.1" {
			t.Errorf("the audit log says %+v", e)
		}
		status, text := s.post(address, "application/json", `{}`)
		if status != http.StatusConflict || !strings.Contains(text, "received already") {
			t.Errorf("the second: %d %s", status, text)
		}
	})
	t.Run("Early", func(t *testing.T) {
		s := s.with(t)
		var status [2]int
		r := newReceiver(t, func(_ http.ResponseWriter, address string) {
			status[0], _ = s.post(address, "application/x-www-form-urlencoded", "a=1&b=x&b=y")
			status[1], _ = s.post(address, "text/plain", "again") // also before the node has begun to wait
		})
		id := s.begin("early", `{url: "`+r.URL+`", wait_for_callback: true, method: PUT}`)
		out := s.output(id, "came")
		secrets = append(secrets, <-r.got)
		if status != [2]int{200, 409} || !strings.Contains(out, `"callback":{"a":"1","b":["x","y"]}`) || !strings.Contains(out, `"response":null`) {
			t.Errorf("%v %s", status, out)
		}
	})
	t.Run("Twice", func(t *testing.T) {
		s := s.with(t)
		r := newReceiver(t, nil)
		id := s.begin("twice", `{url: "`+r.URL+`", wait_for_callback: true}`)
		address := <-r.got
		secrets = append(secrets, address)
		var group sync.WaitGroup
		status := make([]int, 20)
		for n := range status {
			group.Go(func() { status[n], _ = s.post(address, "text/plain", "it is me") })
		}
		group.Wait()
		taken := 0
		for _, code := range status {
			if code == 200 {
				taken++
			} else if code != 409 {
				t.Errorf("answered %d", code)
			}
		}
		if out := s.output(id, "came"); taken != 1 || !strings.Contains(out, `"callback":"it is me"`) {
			t.Errorf("taken %d times; %s", taken, out)
		}
	})
	t.Run("Never", func(t *testing.T) {
		s := s.with(t)
		r := newReceiver(t, nil)
		id := s.begin("never", `{url: "`+r.URL+`", wait_for_callback: true, callback_timeout_seconds: 1}`)
		address := <-r.got
		secrets = append(secrets, address)
		if out := s.output(id, "late"); !strings.Contains(out, `"callback":null`) || !strings.Contains(out, `"order":7`) {
			t.Errorf("got %s", out)
		}
		if status, text := s.post(address, "application/json", `{}`); status != http.StatusGone || !strings.Contains(text, "any more") {
			t.Errorf("%d %s", status, text)
		}
	})
	t.Run("Get", func(t *testing.T) {
		s := s.with(t)
		r := newReceiver(t, nil)
		id := s.begin("get", `{url: "`+r.URL+`/x?fixed=1", method: GET, wait_for_callback: true, payload: {list: [1], n: 2}}`)
		address := <-r.got
		secrets = append(secrets, address)
		if status, text := s.post(address+"?state=done", "", ""); status != 200 {
			t.Fatalf("%d %s", status, text)
		}
		if out := s.output(id, "came"); !strings.Contains(out, `"callback":{"state":"done"}`) {
			t.Errorf("got %s", out)
		}
	})
	t.Run("Canceled", func(t *testing.T) {
		s := s.with(t)
		r := newReceiver(t, nil)
		id := s.begin("canceled", `{url: "`+r.URL+`", wait_for_callback: true}`)
		address := <-r.got
		secrets = append(secrets, address)
		s.reaches(t, id, engine.StatusWaiting)
		if _, err := s.host.Act(t.Context(), user, host.Request{Execution: id, Action: host.ActionCancel}); err != nil {
			t.Fatal(err)
		}
		s.ends(t, id, engine.StatusCanceled)
		if status, text := s.post(address, "application/json", `{}`); status != http.StatusGone {
			t.Errorf("%d %s", status, text)
		}
	})
	t.Run("Refused", func(t *testing.T) {
		s := s.with(t)
		r := newReceiver(t, nil)
		id := s.begin("refused", `{url: "`+r.URL+`", wait_for_callback: true}`)
		address := <-r.got
		secrets = append(secrets, address)
		// None of these is the call back, and the wait goes on.
		last := address[len(address)-1:]
		other := map[string]string{"A": "B"}[last]
		if other == "" {
			other = "A"
		}
		for _, c := range []struct {
			address, contentType, body string
			want                       int
		}{
			{address[:len(address)-1] + other, "application/json", `{}`, 404},
			{address + "AAAA", "application/json", `{}`, 404},
			{s.base + "/callbacks/nonsense", "application/json", `{}`, 404},
			{address, "application/json", `{"broken`, 422},
			{address, "application/octet-stream", "\xff\xfe\x00", 422},
			{address, "multipart/form-data; boundary=x", "--x--", 422},
			{address, "text/plain", strings.Repeat("x", 10<<20+1), 413},
		} {
			if status, text := s.post(c.address, c.contentType, c.body); status != c.want {
				t.Errorf("%s %.20q: %d %s, want %d", c.contentType, c.body, status, text, c.want)
			}
		}
		head, err := http.Head(address)
		if err != nil {
			t.Fatal(err)
		}
		if err := head.Body.Close(); err != nil || head.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("HEAD: %d %v", head.StatusCode, err)
		}
		big := strings.Repeat("x", 9<<20)
		if status, text := s.post(address, "text/plain", big+"y"); status != 200 {
			t.Fatalf("%d %s", status, text)
		}
		if out := s.output(id, "came"); !strings.Contains(out, big) || !strings.HasSuffix(out, `xy"}`) {
			t.Errorf("got %d bytes", len(out))
		}
	})
	// What gives access is nowhere in the data directory: neither the address nor its token.
	s.close()
	if len(secrets) < 7 {
		t.Fatalf("only %d addresses; this would look for too little", len(secrets))
	}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		for _, secret := range secrets {
			if token := secret[strings.LastIndexByte(secret, '/')+1:]; bytes.Contains(data, []byte(token)) {
				t.Errorf("%s holds the token of a call back", path)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A call back finds its node after a restart of the server, and one that came just before it is not lost.
func TestCallback_Restart(t *testing.T) {
	t.Parallel()
	dir := sqlitetest.Dir(t)
	r := newReceiver(t, nil)
	s := openCallbacks(t, dir)
	after := s.begin("after", `{url: "`+r.URL+`", wait_for_callback: true}`)
	afterURL := <-r.got
	s.reaches(t, after, engine.StatusWaiting)
	before := s.begin("before", `{url: "`+r.URL+`", wait_for_callback: true}`)
	beforeURL := <-r.got
	s.reaches(t, before, engine.StatusWaiting)
	if status, text := s.post(beforeURL, "application/json", `"first"`); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	s.close()

	s = openCallbacks(t, dir)
	if out := s.output(before, "came"); !strings.Contains(out, `"callback":"first"`) {
		t.Errorf("got %s", out)
	}
	if status, _ := s.post(beforeURL, "application/json", `"second"`); status != http.StatusConflict {
		t.Errorf("the second is answered %d", status)
	}
	if status, text := s.post(afterURL, "application/json", `"after"`); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	if out := s.output(after, "came"); !strings.Contains(out, `"callback":"after"`) {
		t.Errorf("got %s", out)
	}
	if extra := len(r.got); extra != 0 {
		t.Errorf("%d more calls were made", extra)
	}
}

// A retry of the node waits for a call back of its own.
func TestCallback_Generations(t *testing.T) {
	t.Parallel()
	s := openCallbacks(t, sqlitetest.Dir(t))
	r := newReceiver(t, func(w http.ResponseWriter, _ string) {})
	s.saveText(t, `
metadata: {id: again, name: again, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: call, description: d, type: ACTION, subtype: WEBHOOK_CALL, configurations: {url: "`+r.URL+`", wait_for_callback: true, callback_timeout_seconds: 3}}
connections:
  - {from_node: start, to_node: call}
`)
	id := s.startText(t, "again", `{}`)
	first := <-r.got
	if e := s.ends(t, id, engine.StatusError); !strings.Contains(e.Error, "did not call back within 3 s") {
		t.Errorf("ended with %s", e.Error)
	}
	if _, err := s.host.Act(t.Context(), user, host.Request{Execution: id, Action: host.ActionRetry, Node: "call"}); err != nil {
		t.Fatal(err)
	}
	second := <-r.got
	if status, _ := s.post(first, "application/json", `"old"`); status != http.StatusGone {
		t.Errorf("the old address is answered %d", status)
	}
	if status, text := s.post(second, "application/json", `"new"`); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	if out := s.output(id, "call"); !strings.Contains(out, `"callback":"new"`) {
		t.Errorf("got %s", out)
	}
}
