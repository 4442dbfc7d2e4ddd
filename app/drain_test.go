package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tandem/api"
	"tandem/client"
	"tandem/engine"
)

// restarts is how often TestDrain_OrderlyRestarts stops its server.
const restarts = 6

// TestDrain_OrderlyRestarts stops a server with SIGTERM again and again in the middle of its calls. Each of them ends and is
// recorded, so nobody is asked whether something was done, and nothing is done twice.
func TestDrain_OrderlyRestarts(t *testing.T) {
	t.Parallel()
	s := &service{gets: map[string]int{}, posts: map[string]int{}}
	fake := httptest.NewServer(s)
	defer fake.Close()
	c := newCrash(t)
	c.crashes, c.service, c.base = restarts, s, fake.URL
	for n := range restarts {
		c.orderly(n)
	}
	end := c.serve()
	defer end()
	for _, id := range c.started {
		c.finish(id)
	}
	c.following.Wait()
	c.check()
	if c.decisions+c.revived > 0 {
		t.Errorf("after orderly restarts %d outcomes were unknown, and %d executions had failed", c.decisions, c.revived)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, n := range s.gets {
		if n != 1 {
			t.Errorf("%s was fetched %d times", key, n)
		}
	}
}

// orderly starts a server, gives it work, and stops it in the middle of a call.
func (c *crash) orderly(n int) {
	c.Helper()
	cmd := c.process()
	if n == 0 {
		c.keepFlows()
	}
	told := make(chan struct{})
	c.service.arm(10+5*n, sync.OnceFunc(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			c.Error(err)
		}
		close(told)
	}))
	work, stop := context.WithCancel(c.Context())
	var group sync.WaitGroup
	group.Go(func() { c.start(work, n) })
	select {
	case <-told:
	case <-time.After(patient):
		c.Fatal("the nodes do not call; look at what became of the executions")
	}
	began := time.Now()
	if err := cmd.Wait(); err != nil {
		c.Errorf("the server ended with %v", err)
	}
	if took := time.Since(began); took > DefaultGrace/2 {
		c.Errorf("the server took %s to stop, although its calls ended at once", took)
	}
	stop()
	group.Wait()
}

// draining is a server in another process whose one call is under way.
type draining struct {
	*crash
	cmd     *exec.Cmd
	id      string
	called  chan struct{}
	release chan struct{}
}

func newDraining(t *testing.T) *draining {
	t.Helper()
	d := &draining{called: make(chan struct{}, 10), release: make(chan struct{})}
	fake := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.called <- struct{}{}
		select {
		case <-d.release:
			fmt.Fprint(w, `{"ok":true}`)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(fake.Close)
	d.crash = newCrash(t)
	d.base = fake.URL
	d.cmd = d.process()
	d.keepFlows()
	if _, err := d.client.CreateWorkflow(t.Context(), []byte(drainFlow), true); err != nil {
		t.Fatal(err)
	}
	d.id = d.call("first")
	<-d.called
	return d
}

const drainFlow = `
metadata: {id: drain, name: drain, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: post, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {method: POST, url: "{{base}}/post", body_type: none}}
  - {id: after, description: d, type: CALL, subtype: EMPTY}
connections:
  - {from_node: start, to_node: post}
  - {from_node: post, to_node: after}
`

// call starts an execution of drainFlow.
func (d *draining) call(key string) string {
	d.Helper()
	inputs, err := json.Marshal(map[string]string{"base": d.base})
	if err != nil {
		d.Fatal(err)
	}
	started, err := d.client.Execute(d.Context(), "drain", api.ExecuteRequest{Inputs: inputs}, key)
	if err != nil {
		d.Fatal(err)
	}
	return started.ExecutionID
}

// stop tells the server to stop and waits until it says that it drains.
func (d *draining) stop() {
	d.Helper()
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		d.Fatal(err)
	}
	for d.ready() != http.StatusServiceUnavailable {
		if d.Context().Err() != nil {
			d.Fatal("it does not say that it drains")
		}
	}
}

// ready is how /readyz answers.
func (d *draining) ready() int { return d.status("/readyz") }

func (d *draining) status(path string) int {
	d.Helper()
	r, err := http.Get("http://" + d.addr + path)
	if err != nil {
		d.Fatal(err)
	}
	if err := r.Body.Close(); err != nil {
		d.Fatal(err)
	}
	return r.StatusCode
}

// TestDrain_Serves looks at a server that drains: it says so, answers, keeps what it is asked for, and ends when its call has.
func TestDrain_Serves(t *testing.T) {
	t.Parallel()
	d := newDraining(t)
	d.stop()
	if got := d.status("/healthz"); got != http.StatusOK {
		t.Errorf("/healthz answers %d", got)
	}
	if _, err := d.client.Execution(t.Context(), d.id); err != nil {
		t.Errorf("reading: %v", err)
	}
	second := d.call("second") // it is kept
	watched := make(chan error, 1)
	go func() {
		_, _, err := d.watch(d.id, client.VocabularyExecution, "") // through the restart
		watched <- err
	}()
	third := d.waits("third")
	close(d.release)
	if err := d.cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
	var kept api.ExecuteResponse
	if answer := <-third; answer.status != http.StatusAccepted || json.Unmarshal(answer.body, &kept) != nil || kept.ExecutionID == "" {
		t.Errorf("whoever waited for an execution was answered %d: %s", answer.status, answer.body)
	}
	if len(d.called) > 0 {
		t.Error("a call began while it drained")
	}
	end := d.serve()
	defer end()
	if err := <-watched; err != nil {
		t.Errorf("the reader of the stream: %v", err)
	}
	for _, id := range []string{d.id, second, kept.ExecutionID} {
		if _, _, err := d.watch(id, client.VocabularyExecution, ""); err != nil {
			t.Fatal(err)
		}
		if e, err := d.client.Execution(t.Context(), id); err != nil || e.Status != string(engine.StatusSuccess) {
			t.Errorf("execution %s is %s, %v", id, e.Status, err)
		}
	}
	if len(d.called) != 2 {
		t.Errorf("%d calls after the restart, want two", len(d.called))
	}
}

// drainAnswer is what somebody was told, once.
type drainAnswer struct {
	status int
	body   []byte
}

// waits starts an execution of drainFlow as somebody who waits for its end and does not ask again, and returns when it is on disk.
func (d *draining) waits(name string) <-chan drainAnswer {
	d.Helper()
	answers := make(chan drainAnswer, 1)
	go func() {
		body := fmt.Sprintf(`{"inputs": {"base": %q, "name": %q}, "wait_seconds": 60}`, d.base, name)
		r, err := http.NewRequestWithContext(d.Context(), http.MethodPost, "http://"+d.addr+"/api/v1/workflows/drain/execute", strings.NewReader(body))
		if err != nil {
			d.Error(err)
		}
		r.Header.Set("Authorization", "Bearer "+crashToken)
		r.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			answers <- drainAnswer{body: []byte(err.Error())}
			return
		}
		text, err := io.ReadAll(answer.Body)
		if err = errors.Join(err, answer.Body.Close()); err != nil {
			d.Error(err)
		}
		answers <- drainAnswer{answer.StatusCode, text}
	}()
	for {
		list, err := d.client.Executions(d.Context(), client.ExecutionQuery{WorkflowID: "drain"})
		if err != nil {
			d.Fatal(err)
		}
		if list.TotalCount > 2 {
			return answers
		}
	}
}

// TestDrain_SecondSignal ends a server that drains with a second signal.
func TestDrain_SecondSignal(t *testing.T) {
	t.Parallel()
	d := newDraining(t)
	d.stop()
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Wait(); err == nil { // long before its grace is over
		t.Error("it ended in order")
	}
}
