package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"tandem/api"
	"tandem/client"
)

// The workflows of an outage: something that may be done once only and takes as long as the service wants, a pause, another workflow, and something that may be
// done once only again.
const (
	outageFlow = `
metadata: {id: outage, name: outage, description: d}
nodes:
  - {id: begin, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: first, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {method: POST, url: "SERVICE/first/{{begin.outputs.n}}", on_unknown: fail}}
  - {id: nap, description: d, type: FLOW, subtype: WAIT, configurations: {wait_type: timer, for_seconds: 0.2}}
  - {id: child, description: d, type: FLOW, subtype: SUB_WORKFLOW, configurations: {workflow_id: kid, revision: latest}, input_params: {n: "{{begin.outputs.n}}"}}
  - {id: last, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {method: POST, url: "SERVICE/last/{{begin.outputs.n}}", on_unknown: fail}}
connections:
  - {id: c1, from_node: begin, to_node: first}
  - {id: c2, from_node: first, to_node: nap}
  - {id: c3, from_node: nap, to_node: child}
  - {id: c4, from_node: child, to_node: last}
`
	// patient is how long it is waited for something that must come.
	patient = 4 * time.Minute
)

// counter is a service that counts what was done, and answers what is asked for first when it is told to.
type counter struct {
	*httptest.Server
	began chan struct{}
	mu    sync.Mutex
	done  map[string]int
	gate  chan struct{}
}

func newCounter(t *testing.T) *counter {
	c := &counter{began: make(chan struct{}, 100), done: map[string]int{}, gate: make(chan struct{})}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		c.done[r.URL.Path]++
		gate := c.gate
		c.mu.Unlock()
		if strings.HasPrefix(r.URL.Path, "/first/held") {
			c.began <- struct{}{}
			select {
			case <-gate:
			case <-t.Context().Done():
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"ok":true}`)) // who asked may have been killed
	}))
	t.Cleanup(c.Close)
	return c
}

// release answers what is held, and holds what comes.
func (c *counter) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.gate)
	c.gate = make(chan struct{})
}

func (c *counter) count(path string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done[path]
}

// insist does something until a server has decided about it: one that is away, or whose database is, has not.
func insist(ctx context.Context, do func() error) error {
	for {
		err := do()
		var said *client.Error
		if err == nil || errors.As(err, &said) && said.Status < http.StatusInternalServerError {
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond): // nothing tells when it is back
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		}
	}
}

// outage is executions that are under way when something befalls the servers or their database, by the key of each.
type outage struct {
	t       *testing.T
	ctx     context.Context
	client  *client.Client
	service *counter

	mu  sync.Mutex
	ids map[string]string
}

// start starts the execution of a key. Under the same key it is the same one, however often it is asked for.
func (o *outage) start(key string) {
	var e api.ExecuteResponse
	err := insist(o.ctx, func() (err error) {
		e, err = o.client.Execute(o.ctx, "outage", api.ExecuteRequest{Inputs: json.RawMessage(`{"n":"` + key + `"}`)}, key)
		return err
	})
	o.mu.Lock()
	defer o.mu.Unlock()
	if was := o.ids[key]; err != nil || was != "" && was != e.ExecutionID {
		o.t.Errorf("%s is started as %s, %v, and was %q", key, e.ExecutionID, err, was)
	}
	o.ids[key] = e.ExecutionID
}

// held starts so many executions and returns when the service is asked for the first thing of all.
func (o *outage) held(name string, n int) {
	o.t.Helper()
	for i := range n {
		o.start(fmt.Sprintf("held-%s-%d", name, i))
	}
	for range n {
		select {
		case <-o.service.began:
		case <-o.ctx.Done():
			o.t.Fatal(context.Cause(o.ctx))
		}
	}
}

// check waits for the ends of all and looks what was done. Lost says that nobody may know of the first thing whether it was done.
func (o *outage) check(lost func(key string) bool) {
	o.t.Helper()
	for key, id := range o.ids {
		var e api.Execution
		if err := insist(o.ctx, func() (err error) {
			if err = o.client.Watch(o.ctx, id, "", client.VocabularyExecution, func(api.Event) error { return nil }); err == nil {
				e, err = o.client.Execution(o.ctx, id)
			}
			return err
		}); err != nil {
			o.t.Fatalf("%s, %s: %v", key, id, err)
		}
		want := 1
		if e.Status == "ERROR" && lost(key) && strings.Contains(fmt.Sprint(e.Error), "outcome") {
			want = 0
		} else if e.Status != "SUCCESS" {
			o.t.Errorf("%s has ended as %s: %v", key, e.Status, e.Error)
		}
		for path, want := range map[string]int{"/first/" + key: 1, "/kid/" + key: want, "/last/" + key: want} {
			if n := o.service.count(path); n != want {
				o.t.Errorf("%s: %s was done %d times, want %d", key, path, n, want)
			}
		}
		o.start(key) // it is the same
	}
}

// TestServe_OutageOfTheDatabase kills PostgreSQL under load while two servers use it, of which one forwards to the other; the second time the owner is killed
// with it. What was started by the server that stands by is not lost, and what may be done once is done once.
func TestServe_OutageOfTheDatabase(t *testing.T) {
	t.Parallel()
	service := newCounter(t)
	flows := map[string]string{"outage": outageFlow, "kid": kidFlow}
	for name, text := range flows {
		flows[name] = strings.ReplaceAll(text, "SERVICE", service.URL)
	}
	servers := startPair(t, flows, "TANDEM_HTTP_ALLOW=127.0.0.1")
	c, err := client.New(client.Options{URL: servers.url, Token: "a-configured-token"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	o := &outage{t: t, ctx: ctx, client: c, service: service, ids: map[string]string{}}
	const each = 4
	befall := func(name string, meanwhile func()) {
		t.Helper()
		o.held(name, each)
		var starts sync.WaitGroup
		begin := func(when string) {
			for i := range each {
				starts.Go(func() { o.start(fmt.Sprintf("%s-%s-%d", when, name, i)) })
			}
		}
		begin("under-way")
		servers.database.Restart(t, func() {
			begin("meanwhile")
			meanwhile()
			service.release()
		})
		starts.Wait()
	}
	befall("database", func() {})
	o.check(func(string) bool { return false })
	befall("both", func() { servers.kill(t) })
	servers.said("Every operation: ")
	o.check(func(key string) bool { return strings.Contains(key, "-both-") }) // the owner was killed in the midst of it
}
