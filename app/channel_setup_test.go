package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/engine"
)

// channelPatience is how long anything may take that has to happen.
const channelPatience = 3 * time.Minute

// channelSite is an instance that people reach by a medium: its server is called back and opened by links.
type channelSite struct{ *site }

func openChannels(t *testing.T) channelSite {
	t.Helper()
	return channelSite{openSiteAs(t, func(o *Options, url string) { o.PublicURL = url })}
}

// keep keeps a credential, as the admin.
func (x channelSite) keep(t *testing.T, kind string, data map[string]any) string {
	t.Helper()
	body := map[string]any{"name": kind, "type": kind, "data": data}
	return want[api.Credential](t, x.call(t, "admin", "POST", "/credentials", body), http.StatusCreated).ID
}

// callback is where a medium brings what people do.
func (x channelSite) callback(channel, credential string) string {
	return strings.TrimSuffix(x.url, "/api/v1") + "/channels/" + channel + "/default/" + credential
}

// post calls an address as a medium does, with headers in pairs.
func (x channelSite) post(t *testing.T, address, body string, headers ...string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n+1 < len(headers); n += 2 {
		r.Header.Set(headers[n], headers[n+1])
	}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	raw, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{w.StatusCode, w.Header, raw}
}

// detail reads a question as the viewer sees it.
func (x channelSite) detail(t *testing.T, id string) api.InteractionDetail {
	t.Helper()
	return want[api.InteractionDetail](t, x.call(t, "viewer", "GET", "/interactions/"+id, nil), http.StatusOK)
}

// until waits until a question, its replies or its messages are as they should be. Messages make no events, so they are looked at now and
// then.
func (x channelSite) until(t *testing.T, id, what string, is func(api.InteractionDetail) bool) api.InteractionDetail {
	t.Helper()
	events, _, stop := x.desk.Watch("default")
	defer stop()
	look, end := time.NewTicker(10*time.Millisecond), time.After(channelPatience)
	defer look.Stop()
	for {
		d := x.detail(t, id)
		if is(d) {
			return d
		}
		select {
		case <-events:
		case <-look.C:
		case <-end:
			t.Fatalf("no %s: %s, replies %+v, messages %+v", what, d.Status, d.Responses, d.Deliveries)
		}
	}
}

// replied waits for the n-th reply to a question, and checks that it is what was said and does not count.
func (x channelSite) replied(t *testing.T, id string, n int, said string) api.InteractionResponse {
	t.Helper()
	d := x.until(t, id, fmt.Sprintf("reply %d", n), func(d api.InteractionDetail) bool { return len(d.Responses) >= n })
	one := d.Responses[n-1]
	own, _, _ := strings.Cut(one.Raw, "\n\nOn Monday,") // a mail quotes what it answers
	if len(d.Responses) != n || own != said || strings.Contains(one.Raw, "tdm_") || one.Accepted || d.Status != "pending" || len(d.ResponseData) != 0 {
		t.Fatalf("%s with %+v; want %q as reply %d, which does not count", d.Status, d.Responses, said, n)
	}
	return one
}

// waits checks that nothing has changed: the question is open, nobody's reply counts, and the execution waits.
func (x channelSite) waits(t *testing.T, execution, id string) {
	t.Helper()
	d := x.detail(t, id)
	if d.Status != "pending" || len(d.ResponseData) != 0 || slices.ContainsFunc(d.Responses, func(r api.InteractionResponse) bool { return r.Accepted }) {
		t.Fatalf("%s with %s, replies %+v; want it open", d.Status, d.ResponseData, d.Responses)
	}
	if e := x.read(t, execution); e.Status != string(engine.StatusWaitingForHuman) {
		t.Fatalf("the execution is %s", e.Status)
	}
}

// goesOn waits for the end of an execution, checks the keys of its question and that one reply has counted, and returns the payload.
func (x channelSite) goesOn(t *testing.T, execution, id, keys string) gjson.Result {
	t.Helper()
	x.reaches(t, execution, engine.StatusSuccess)
	got, payload := outcomeOf(t, x.read(t, execution))
	if strings.Join(got, " ") != keys || payload.Get("interaction_id").Str != id || payload.Get("status").Str != "completed" {
		t.Fatalf("keys %q with %s; want %q", got, payload.Raw, keys)
	}
	x.once(t, id)
	return payload
}

// once checks that a question has ended by exactly one reply that counts.
func (x channelSite) once(t *testing.T, id string) api.InteractionDetail {
	t.Helper()
	d, counted := x.detail(t, id), 0
	for _, r := range d.Responses {
		if r.Accepted {
			counted++
		}
	}
	if d.Status != "completed" || counted != 1 {
		t.Fatalf("%s, %d replies count: %+v", d.Status, counted, d.Responses)
	}
	return d
}

// sent waits until the n-th message of a kind was sent.
func (x channelSite) sent(t *testing.T, id, kind string, n int) {
	t.Helper()
	x.until(t, id, fmt.Sprintf("message %d of kind %s", n, kind), func(d api.InteractionDetail) bool {
		count := 0
		for _, m := range d.Deliveries {
			if m.Kind == kind && m.Status == "sent" {
				count++
			}
		}
		return count >= n
	})
}

// fails waits until the message that asks is given up after some tries. The question is answered in the inbox all the same.
func (x channelSite) fails(t *testing.T, execution, id string, tries int) {
	t.Helper()
	d := x.until(t, id, "failed message", func(d api.InteractionDetail) bool { return len(d.Deliveries) > 0 && d.Deliveries[0].Status == "failed" })
	if m := d.Deliveries[0]; m.Kind != "request" || m.Attempts != tries || !strings.HasPrefix(m.Error, "delivery_failed: ") || m.NextAt != 0 || d.Status != "pending" {
		t.Fatalf("%s, message %+v", d.Status, m)
	}
	mine := want[api.Interactions](t, x.call(t, "operator", "GET", "/interactions?mine=true&status=pending", nil), http.StatusOK).Interactions
	if !slices.ContainsFunc(mine, func(i api.Interaction) bool { return i.ID == id }) {
		t.Fatalf("the inbox has %+v", mine)
	}
	want[api.Interaction](t, x.respond(t, "operator", id, approved), http.StatusOK)
	x.goesOn(t, execution, id, "approve confirmed result")
}

// byLink answers by the response page of a link: looking changes nothing, the form decides, and the link is good for one answer.
func (x channelSite) byLink(t *testing.T, execution, id, link, title string) gjson.Result {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", link, nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	page, err := io.ReadAll(w.Body)
	if err != nil || w.StatusCode != http.StatusOK || !bytes.Contains(page, []byte(title)) {
		t.Fatalf("the page is %d %s (%v)", w.StatusCode, page, err)
	}
	x.waits(t, execution, id)
	if got, err := press(t.Context(), link, url.Values{"answer": {"approve"}}); err != nil || got.status != http.StatusOK {
		t.Fatalf("the form: %d %s (%v)", got.status, got.body, err)
	}
	payload := x.goesOn(t, execution, id, "approve confirmed result")
	if got, err := press(t.Context(), link, url.Values{"answer": {"reject"}}); err != nil || got.status != http.StatusGone && got.status != http.StatusConflict {
		t.Errorf("the form again: %d %s (%v)", got.status, got.body, err)
	}
	x.once(t, id)
	return payload
}

// wire is a service of a vendor: what was sent to it, and the answers of a test.
type wire struct {
	*httptest.Server
	t     *testing.T
	serve func(w http.ResponseWriter, c wireCall)

	mu    sync.Mutex
	calls []wireCall
	news  chan struct{} // closed with every call
	// next are answers instead of the usual ones, in their order, by method and path.
	next map[string][]http.HandlerFunc
}

// wireCall is one call. Name is its method and path; body is JSON, or a form as one.
type wireCall struct {
	name   string
	header http.Header
	query  url.Values
	body   gjson.Result
	gone   <-chan struct{} // closed when the caller has hung up
	taken  bool
}

// newWire starts a service. What serve writes is sent as it is.
func newWire(t *testing.T, serve func(w http.ResponseWriter, c wireCall)) *wire {
	t.Helper()
	f := &wire{t: t, serve: serve, news: make(chan struct{}), next: map[string][]http.HandlerFunc{}}
	f.Server = httptest.NewServer(f)
	t.Cleanup(func() {
		f.CloseClientConnections() // long polls wait for nothing any more
		f.Close()
	})
	return f
}

// ServeHTTP notes a call and answers it.
func (f *wire) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		f.t.Errorf("%s: %v", r.URL.Path, err)
	}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		form, err := url.ParseQuery(string(raw))
		if err != nil {
			f.t.Errorf("%s: %v", r.URL.Path, err)
		}
		flat := map[string]any{}
		for name := range form {
			flat[name] = form.Get(name)
			if text := form.Get(name); json.Valid([]byte(text)) && strings.HasPrefix(text, "[") {
				flat[name] = json.RawMessage(text)
			}
		}
		raw = wireJSON(f.t, flat)
	}
	c := wireCall{name: r.Method + " " + r.URL.Path, header: r.Header, query: r.URL.Query(), body: gjson.ParseBytes(raw), gone: r.Context().Done()}
	f.mu.Lock()
	var instead http.HandlerFunc
	if list := f.next[c.name]; len(list) > 0 {
		instead, f.next[c.name] = list[0], list[1:]
	}
	f.mu.Unlock()
	if instead != nil {
		instead(w, r)
	} else {
		f.serve(w, c)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, c)
	close(f.news)
	f.news = make(chan struct{})
}

// instead lets calls be answered with a status, a body and headers the next time.
func (f *wire) instead(name string, status int, body string, headers ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next[name] = append(f.next[name], func(w http.ResponseWriter, _ *http.Request) {
		for n := 0; n+1 < len(headers); n += 2 {
			w.Header().Set(headers[n], headers[n+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // who does not take it has gone
	})
}

// gets waits for the next call of a name that fits and that nobody has waited for before.
func (f *wire) gets(t *testing.T, name string, fits func(gjson.Result) bool) gjson.Result {
	t.Helper()
	end := time.After(channelPatience)
	for {
		f.mu.Lock()
		for n, c := range f.calls {
			if !c.taken && c.name == name && (fits == nil || fits(c.body)) {
				f.calls[n].taken = true
				f.mu.Unlock()
				return c.body
			}
		}
		news := f.news
		f.mu.Unlock()
		select {
		case <-news:
		case <-end:
			f.mu.Lock()
			defer f.mu.Unlock()
			var had []string
			for _, c := range f.calls {
				had = append(had, c.name+" "+c.body.Raw)
			}
			t.Fatalf("nobody has called %s as it should be; calls:\n%s", name, strings.Join(had, "\n"))
		}
	}
}

// count is how many calls of a name there were.
func (f *wire) count(name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, c := range f.calls {
		if c.name == name {
			n++
		}
	}
	return n
}

// says answers a call with JSON.
func (f *wire) says(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if _, err := w.Write(wireJSON(f.t, v)); err != nil {
		f.t.Logf("nobody takes the answer: %v", err)
	}
}

func wireJSON(t *testing.T, v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		t.Error(err)
	}
	return raw
}

// hasText fits what has texts, wherever.
func hasText(texts ...string) func(gjson.Result) bool {
	return func(body gjson.Result) bool {
		return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(body.Raw, text) })
	}
}
