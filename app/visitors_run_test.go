package app

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tandem/engine"
	"tandem/identity"
)

// People who are logged in start a workflow on a page that draws its inputs, in their own name.
func TestVisitors_Run(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, runFlow)
	v := x.visitor(t)
	v.post(t, "/login", url.Values{"token": {x.tokens["operator"]}})
	says(t, v.get(t, "/run/run_me"), http.StatusOK, "Run me", "For those who pay.", "Amount", "Start")
	says(t, v.send(t, "/run/run_me", url.Values{"q1": {"kept <b>"}}), http.StatusUnprocessableEntity, "Amount: ", `value="kept &lt;b&gt;"`)
	same(t, x.executionsOf(t, "run_me"), 0)
	// What the page does not have is refused by its name, and what was filled in is kept.
	says(t, v.send(t, "/run/run_me", url.Values{"q0": {"12.5"}, "amount": {"1"}, "q9": {"x"}}), http.StatusUnprocessableEntity, "amount, q9", `value="12.5"`)
	same(t, x.executionsOf(t, "run_me"), 0)
	values := url.Values{"form_id": {v.ticket(t, "/run/run_me")}, "q0": {"12.5"}}
	first := v.post(t, "/run/run_me", values)
	says(t, first, http.StatusOK, "SUCCESS", "amount: 12.5")
	says(t, v.post(t, "/run/run_me", values), http.StatusOK, "SUCCESS", "amount: 12.5") // the same page, sent twice
	same(t, x.executionsOf(t, "run_me"), 1)
	id := gjson.GetBytes(x.call(t, "viewer", "GET", "/executions?workflow_id=run_me", nil).body, "executions.0.execution_id").Str
	if e := x.audited(t, "execution.start", id); e.User != "operator" || e.Means.Kind != identity.BySession {
		t.Errorf("it left %+v", e)
	}
	says(t, v.get(t, "/run/none"), http.StatusNotFound)
	x.save(t, visitFlow("page_only", "CHAT", `{}`))
	says(t, v.get(t, "/run/page_only"), http.StatusNotFound)
	v.header["Sec-Fetch-Site"] = "cross-site"
	if a := v.post(t, "/run/run_me", values); a.status != http.StatusForbidden {
		t.Errorf("a page of another site starts it: %d", a.status)
	}

	// One without inputs has a page with a button; one that fails says so.
	x.save(t, strings.ReplaceAll(strings.ReplaceAll(runFlow, "run_me", "no_inputs"), `input_schema: {type: object, required: [amount], properties: {amount: {type: number, title: Amount}, note: {type: string, title: Note}}}`, "trigger_name: x"))
	delete(v.header, "Sec-Fetch-Site")
	failed := v.send(t, "/run/no_inputs", nil)
	says(t, failed, http.StatusOK, string(engine.StatusError), "It has not ended well")
}

// A form that is sent while the server is killed, and again until it is answered, starts one execution, and so does a message in a chat.
func TestVisitors_KillNine(t *testing.T) {
	t.Parallel()
	const forms, senders = 60, 6
	k := newKillable(t)
	k.deploy(t, "form", []byte(visitFlow("form", "FORM", `{visitor_limit: 10000, form_schema: {type: object, required: [n], properties: {n: {type: integer}, doc: {format: file}}}}`)))
	k.deploy(t, "talk", []byte(visitFlow("talk", "CHAT", `{visitor_limit: 10000}`)))
	v := (&site{url: "http://" + k.addr + "/api/v1"}).visitor(t)
	tickets := make([]string, forms)
	for n := range tickets {
		tickets[n] = v.ticket(t, "/forms/form")
	}
	v.get(t, "/chat/talk")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	// once sends something and says whether it was answered.
	once := func(n int) bool {
		kind, body := upload(t, map[string]string{"form_id": tickets[n], "q0": fmt.Sprint(n)}, "q1", "a.txt", []byte(strings.Repeat("content ", 6000)))
		path := "/forms/form"
		if n%3 == 0 {
			path, kind, body = "/chat/talk?do=send", "application/json", strings.NewReader(fmt.Sprintf(`{"id":"m%d","text":"%d"}`, n, n))
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+k.addr+path, body)
		if err != nil {
			t.Error(err)
			return true
		}
		r.Header.Set("Content-Type", kind)
		w, err := v.http.Do(r)
		if err != nil {
			return false
		}
		defer w.Body.Close()
		if w.StatusCode != http.StatusOK && w.StatusCode != http.StatusAccepted && w.StatusCode < 500 {
			t.Errorf("%d: status %d", n, w.StatusCode)
			return true
		}
		return w.StatusCode < 500
	}
	var next, answered atomic.Int64
	var all sync.WaitGroup
	for range senders {
		all.Go(func() {
			for n := next.Add(1) - 1; n < forms && ctx.Err() == nil; n = next.Add(1) - 1 {
				for !once(int(n)) && ctx.Err() == nil {
				}
				answered.Add(1)
			}
		})
	}
	for _, reached := range []int64{forms / 4, forms / 2} {
		for answered.Load() < reached && ctx.Err() == nil {
			select {
			case <-time.After(time.Millisecond): // there is no signal from another process
			case <-ctx.Done():
			}
		}
		k.kill(t)
		k.start(t)
	}
	all.Wait()
	if ctx.Err() != nil {
		t.Fatal("not all were answered in time")
	}
	seen := map[string]int{}
	for _, raw := range k.seen(t, "form") {
		seen[gjson.GetBytes(raw, "fields.n").String()]++
	}
	for _, raw := range k.seen(t, "talk") {
		seen[gjson.GetBytes(raw, "message").String()]++
	}
	for n := range forms {
		if seen[fmt.Sprint(n)] != 1 {
			t.Errorf("%d has started %d executions", n, seen[fmt.Sprint(n)])
		}
	}
}
