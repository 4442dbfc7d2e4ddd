package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tandem/api"
	"tandem/client"
	"tandem/loopback"
	"tandem/store/postgres/postgrestest"
)

// withoutTemporal says that the tests may do without a Temporal server, and rounds how often each process of the cluster is killed.
const (
	withoutTemporal = "TANDEM_TEST_NO_TEMPORAL"
	rounds          = "TANDEM_TEST_CLUSTER_ROUNDS"
)

// slowFlow does something that takes as long as the service wants.
const slowFlow = `
metadata: {id: slow, name: slow, description: d}
nodes:
  - {id: begin, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: post, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {method: POST, url: "SERVICE/slow/{{begin.outputs.n}}", on_unknown: fail}}
connections:
  - {id: c1, from_node: begin, to_node: post}
`

// hookFlow answers a request, and goes on as long as the service wants.
const hookFlow = `
metadata: {id: hook, name: hook, description: d}
nodes:
  - {id: order, description: d, type: TRIGGER, subtype: WEBHOOK, configurations: {webhook_path: /orders, response_mode: node}}
  - {id: thank, description: d, type: FLOW, subtype: RESPOND, configurations: {status_code: 201, body: {thanks: "{{body.order}}"}}}
  - {id: post, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {method: POST, url: "SERVICE/slow/hook", on_unknown: fail}}
connections:
  - {id: c1, from_node: order, to_node: thank}
  - {id: c2, from_node: thank, to_node: post}
`

// loadFlow does something that may be done once only, waits for a time, runs another workflow, asks a person, and does something again. The other one
// does something as well.
const (
	loadFlow = `
metadata: {id: load, name: load, description: d}
nodes:
  - {id: begin, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: first, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {method: POST, url: "SERVICE/first/{{begin.outputs.n}}", on_unknown: fail}}
  - {id: nap, description: d, type: FLOW, subtype: WAIT, configurations: {wait_type: timer, for_seconds: 0.5}}
  - {id: child, description: d, type: FLOW, subtype: SUB_WORKFLOW, configurations: {workflow_id: kid, revision: latest}, input_params: {n: "{{begin.outputs.n}}"}}
  - {id: ask, description: d, type: HUMAN_IN_THE_LOOP, subtype: IN_APP_APPROVAL, configurations: {title: "May it?", timeout_seconds: 3600}}
  - {id: last, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {method: POST, url: "SERVICE/last/{{begin.outputs.n}}", on_unknown: fail}}
connections:
  - {id: c1, from_node: begin, to_node: first}
  - {id: c2, from_node: first, to_node: nap}
  - {id: c3, from_node: nap, to_node: child}
  - {id: c4, from_node: child, to_node: ask}
  - {id: c5, from_node: ask, to_node: last}
`
	kidFlow = `
metadata: {id: kid, name: kid, description: d}
nodes:
  - {id: begin, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: post, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {method: POST, url: "SERVICE/kid/{{begin.outputs.n}}", on_unknown: fail}}
connections:
  - {id: c1, from_node: begin, to_node: post}
`
)

// installation is two servers and two workers on one database and one Temporal, and a service that counts what was done.
type installation struct {
	t   *testing.T
	dir string
	env []string
	// database is the address of the database, service that of the service.
	database, service string
	addresses         map[string]string
	running           map[string]*exec.Cmd
	clients           [2]*client.Client
	temporal          *temporalServer
	// secured is what a process is told that reaches Temporal with TLS, through a proxy, which is the second server and the second worker.
	secured map[string][]string

	mu   sync.Mutex
	done map[string]int
	// told has the keys of the messages to people that have come.
	told map[string]bool
	// more gets a value when something was done.
	more chan struct{}
	// gone is closed, and made anew, when a server is killed.
	gone map[string]chan struct{}
	// slow gets what is asked for slowly, and release lets one of these be answered.
	slow    chan string
	release chan struct{}
	// asked gets a value when the model was asked, words are what it says then, one after the other; the empty one is the end.
	asked chan struct{}
	words chan string
	spend spending
}

// servers are the names of the servers, workers those of the workers.
var (
	servers = []string{"server a", "server b"} // read-only
	workers = []string{"worker a", "worker b"} // read-only
)

// newInstallation starts all of it.
func newInstallation(t *testing.T) *installation {
	t.Helper()
	if os.Getenv(withoutTemporal) != "" {
		t.Skipf("NOTICE: %s is set: executions on Temporal are NOT TESTED", withoutTemporal)
	}
	i := &installation{t: t, dir: t.TempDir(), addresses: map[string]string{}, running: map[string]*exec.Cmd{}, done: map[string]int{}, told: map[string]bool{}, more: make(chan struct{}, 1), gone: map[string]chan struct{}{}, slow: make(chan string, 10), release: make(chan struct{}), asked: make(chan struct{}, 10), words: make(chan string), spend: spending{asked: make(chan int, 10)}}
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v1/") {
			i.speak(t, w)
			return
		}
		if strings.HasPrefix(r.URL.Path, "/pay/") {
			i.charge(t, w, r)
			return
		}
		what := r.URL.Path
		if strings.HasPrefix(what, "/message/") {
			if what = i.message(t, r); what == "" {
				return
			}
		}
		i.mu.Lock()
		i.done[what]++
		first := i.done[what] == 1
		i.mu.Unlock()
		select {
		case i.more <- struct{}{}:
		default:
		}
		if strings.HasPrefix(what, "/slow/") || what == heldMessage && first {
			i.slow <- what
			select {
			case <-i.release:
			case <-t.Context().Done():
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"ok":true}`)) // who asked may have been killed
	}))
	t.Cleanup(service.Close)
	i.service, i.database = service.URL, postgrestest.Start(t).Database(t)
	flows := filepath.Join(i.dir, "flows")
	if err := os.MkdirAll(filepath.Join(flows, "profiles"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"load.yaml": loadFlow, "kid.yaml": kidFlow, "slow.yaml": slowFlow, "hook.yaml": hookFlow, "tick.yaml": tickFlow,
		"speak.yaml": speakFlow, "profiles/speaker.yaml": speakerProfile, "tool.yaml": toolFlow} {
		if err := os.WriteFile(filepath.Join(flows, name), []byte(strings.ReplaceAll(text, "SERVICE", service.URL)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	i.temporal = startTemporal(t)
	i.env = []string{"TANDEM_DATABASE=" + i.database, "TANDEM_TOKEN=a-configured-token", "TANDEM_TEMPORAL_ADDRESS=" + i.temporal.address, "TANDEM_TASK_QUEUE=cluster", "TANDEM_HTTP_ALLOW=127.0.0.1", "TANDEM_GRACE=5m"}
	for _, name := range slices.Concat(servers, workers) {
		i.addresses[name], i.gone[name] = loopback.FreeAddress(t), make(chan struct{})
	}
	secured := newSecured(t, i.temporal.address)
	i.secured = map[string][]string{servers[1]: secured.env, workers[1]: secured.env}
	t.Cleanup(func() {
		for _, name := range slices.Concat(servers, workers) {
			i.kill(name)
		}
	})
	for _, name := range slices.Concat(servers, workers) {
		i.start(name)
	}
	for n, name := range servers {
		c, err := client.New(client.Options{URL: "http://" + i.addresses[name], Token: "a-configured-token"})
		if err != nil {
			t.Fatal(err)
		}
		i.clients[n] = c
	}
	return i
}

// temporalServer is a Temporal server of a test.
type temporalServer struct {
	t                    *testing.T
	script, dir, address string
}

// startTemporal starts a Temporal server for a test.
func startTemporal(t *testing.T) *temporalServer {
	t.Helper()
	script, err := filepath.Abs("../../scripts/temporal.sh")
	if err != nil {
		t.Fatal(err)
	}
	s := &temporalServer{t: t, script: script, dir: t.TempDir()}
	s.start()
	t.Cleanup(s.kill)
	return s
}

// start starts it, for the second time where it was and on the state that it had.
func (s *temporalServer) start() {
	s.t.Helper()
	args := []string{"start", s.dir}
	if _, port, err := net.SplitHostPort(s.address); err == nil {
		args = append(args, port)
	}
	start := exec.Command(s.script, args...)
	start.Stderr = os.Stderr
	out, err := start.Output()
	if err != nil {
		s.t.Fatalf("no Temporal server: %v; set %s=1 to leave this untested", err, withoutTemporal)
	}
	s.address = strings.TrimSpace(string(out))
}

// kill ends it as a crash does.
func (s *temporalServer) kill() {
	if out, err := exec.Command(s.script, "kill", s.dir).CombinedOutput(); err != nil {
		s.t.Errorf("stop Temporal: %v: %s", err, out)
	}
}

// start starts a process of the installation and returns when it answers.
func (i *installation) start(name string) {
	i.t.Helper()
	args := []string{"worker", "--addr", i.addresses[name], "--data", filepath.Join(i.dir, "data")}
	ready := []string{"works; how it is"}
	if slices.Contains(servers, name) {
		args = []string{"serve", "--engine", "temporal", "--addr", i.addresses[name], "--data", filepath.Join(i.dir, "data"), "--workflows", filepath.Join(i.dir, "flows")}
		ready = []string{"Every operation: ", "stands by"}
	}
	cmd := exec.Command("tandem", args...)
	cmd.Env = slices.Concat(cmd.Environ(), i.env, i.secured[name])
	log, err := os.OpenFile(filepath.Join(i.dir, name+".log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		i.t.Fatal(err)
	}
	defer log.Close()
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err != nil {
		i.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		i.t.Fatal(err)
	}
	i.running[name] = cmd
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if slices.ContainsFunc(ready, func(part string) bool { return strings.Contains(lines.Text(), part) }) {
			go func() { // it ends with the process
				for lines.Scan() {
				}
			}()
			return
		}
	}
	text, _ := os.ReadFile(log.Name()) // for the message
	i.t.Fatalf("%s ended: %s", name, text)
}

// kill ends a process as a crash does.
func (i *installation) kill(name string) {
	cmd := i.running[name]
	if cmd == nil {
		return
	}
	delete(i.running, name)
	_ = cmd.Process.Signal(syscall.SIGKILL) // it may have ended
	_ = cmd.Wait()                          // it was killed
	i.mu.Lock()
	defer i.mu.Unlock()
	close(i.gone[name])
	i.gone[name] = make(chan struct{})
}

// answer answers every question that one of the servers knows of, until the context ends.
func (i *installation) answer(ctx context.Context, c *client.Client) {
	respond := func(q api.Interaction) {
		for ctx.Err() == nil {
			_, err := c.Respond(ctx, q.ID, api.RespondRequest{ResponseData: json.RawMessage(`{"action":"approve"}`)})
			var said *client.Error
			if err == nil || errors.As(err, &said) && said.Status < 500 {
				return // or it has been answered
			}
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}
	for ctx.Err() == nil {
		err := c.WatchInbox(ctx, func(f client.InboxFrame) error {
			if f.Snapshot != nil {
				for _, q := range f.Snapshot.Interactions {
					respond(q)
				}
			}
			if f.Event != nil && f.Event.Interaction.Status == "pending" {
				respond(f.Event.Interaction)
			}
			return nil
		})
		if ctx.Err() == nil && err != nil {
			i.t.Logf("the inbox is read again: %v", err)
		}
	}
}

// follow reads an execution to its end, first by one server. When that is killed it goes on with the other, behind what it has read.
func (i *installation) follow(ctx context.Context, id string, by int) ([]api.Event, error) {
	var events []api.Event
	for after := ""; ; by = 1 - by {
		i.mu.Lock()
		gone := i.gone[servers[by]]
		i.mu.Unlock()
		reading, stop := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() {
			select {
			case <-gone:
				stop()
			case <-ended:
			}
		}()
		err := i.clients[by].Watch(reading, id, after, client.VocabularyExecution, func(e api.Event) error {
			if e.Seq > 0 {
				events = append(events, e)
				after = fmt.Sprintf("%d.%d", e.Seq, e.Part)
			}
			return nil
		})
		moved := reading.Err() != nil
		close(ended)
		stop()
		if !moved || ctx.Err() != nil {
			return events, err
		}
	}
}

// inShort are events in short.
func inShort(events []api.Event) (list []string) {
	for _, e := range events {
		list = append(list, fmt.Sprintf("%d.%d %s", e.Seq, e.Part, e.EventType))
	}
	return list
}

// count is how often something was done.
func (i *installation) count(prefix string) (n int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for path, times := range i.done {
		if strings.HasPrefix(path, prefix) {
			n += times
		}
	}
	return n
}

// TestCluster holds two servers and two workers on one Temporal to what a cluster promises.
func TestCluster(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	t.Run("Answer", i.testAnswer)
	t.Run("Live", i.testLive)
	t.Run("ChangedCredential", i.testChangedCredential)
	t.Run("Limits", i.testLimits)
	t.Run("Drain", i.testDrain)
	t.Run("TemporalAway", i.testTemporalAway)
	t.Run("Once", i.testOnce)
	t.Run("Questions", i.testQuestions)
	t.Run("Spend", i.testSpend)
	t.Run("Retention", i.testRetention)
	t.Run("Escalation", i.testEscalation)
	t.Run("Booked", i.testBooked)
	t.Run("KillEach", i.testKillEach)
	t.Run("Budget", i.testBudget)
}

// testAnswer: who has sent a request is answered by a node that runs in a worker, while the execution goes on.
func (i *installation) testAnswer(t *testing.T) {
	i.t = t
	if _, err := i.clients[1].Deploy(t.Context(), "hook"); err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+i.addresses[servers[1]]+"/hooks/hook/orders", strings.NewReader(`{"order": 7}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err != nil || answer.StatusCode != http.StatusCreated || !strings.Contains(string(body), `"thanks":7`) {
		t.Errorf("it is answered with %d, %v: %s", answer.StatusCode, err, body)
	}
	<-i.slow
	i.release <- struct{}{}
}

// testLimits: one execution at a time runs on all workers together if that is the limit, and the next begins when it has ended.
func (i *installation) testLimits(t *testing.T) {
	i.t = t
	ctx, c := t.Context(), i.clients[1]
	if _, err := c.PutLimits(ctx, api.LimitSettings{Running: 1}); err != nil {
		t.Fatal(err)
	}
	const all = 4
	var ids []string
	for n := range all {
		e, err := c.Execute(ctx, "slow", api.ExecuteRequest{Inputs: json.RawMessage(fmt.Sprintf(`{"n":"limit-%d"}`, n))}, fmt.Sprint("limit-", n))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, e.ExecutionID)
	}
	for n := range all {
		<-i.slow
		used, err := c.Limits(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if used.Usage.Running != 1 || used.Usage.Waiting != int64(all-n-1) || len(i.slow) > 0 {
			t.Errorf("when %d have begun %d run and %d wait, and %d more are at work", n+1, used.Usage.Running, used.Usage.Waiting, len(i.slow))
		}
		i.release <- struct{}{}
	}
	if _, err := c.PutLimits(ctx, api.LimitSettings{}); err != nil {
		t.Fatal(err)
	}
	i.succeed(ids...)
}

// succeed fails unless executions end well.
func (i *installation) succeed(ids ...string) {
	i.t.Helper()
	for _, id := range ids {
		if _, err := i.follow(i.t.Context(), id, 0); err != nil {
			i.t.Fatal(err)
		}
		if e, err := i.clients[1].Execution(i.t.Context(), id); err != nil || e.Status != "SUCCESS" {
			i.t.Errorf("%s is %s: %v %v", id, e.Status, e.Error, err)
		}
	}
}

// begin starts an execution that takes as long as the service wants.
func (i *installation) begin(n string) string {
	i.t.Helper()
	e, err := i.clients[1].Execute(i.t.Context(), "slow", api.ExecuteRequest{Inputs: json.RawMessage(`{"n":"` + n + `"}`)}, n)
	if err != nil {
		i.t.Fatal(err)
	}
	return e.ExecutionID
}

// testDrain: a worker that is told to stop lets what runs end, and ends well; what comes then is run by the other one.
func (i *installation) testDrain(t *testing.T) {
	i.t = t
	i.kill(workers[1])
	first := i.begin("drain-1")
	<-i.slow // worker a is at it
	if err := i.running[workers[0]].Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	i.start(workers[1])
	second := i.begin("drain-2")
	<-i.slow // worker b is: nothing new begins at the other
	i.release <- struct{}{}
	i.release <- struct{}{}
	if err := i.running[workers[0]].Wait(); err != nil {
		t.Errorf("worker a has ended with %v", err)
	}
	delete(i.running, workers[0])
	i.succeed(first, second)
	if n := i.count("/slow/drain-"); n != 2 {
		t.Errorf("%d were done", n)
	}
	i.start(workers[0])
}

// until returns when something is so, which no signal tells.
func (i *installation) until(so func() bool) {
	i.t.Helper()
	pause := time.NewTicker(50 * time.Millisecond)
	defer pause.Stop()
	late := time.After(5 * time.Minute)
	for !so() {
		select {
		case <-pause.C:
		case <-late:
			i.t.Fatal("it is not so within 5 minutes")
		}
	}
}

// readiness is what /readyz of a process answers.
func (i *installation) readiness(name string) (int, string) {
	i.t.Helper()
	r, err := http.NewRequestWithContext(i.t.Context(), http.MethodGet, "http://"+i.addresses[name]+"/readyz", nil)
	if err != nil {
		i.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		i.t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		i.t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

// testTemporalAway: while Temporal is gone servers and workers say so, and only workers are not ready: what is started is kept,
// and goes on when Temporal is back.
func (i *installation) testTemporalAway(t *testing.T) {
	i.t = t
	for _, name := range workers { // one has only just been started
		i.until(func() bool {
			status, _ := i.readiness(name)
			return status == http.StatusOK
		})
	}
	i.temporal.kill()
	ids := []string{i.begin("away-1"), i.begin("away-2")}
	for _, name := range slices.Concat(servers, workers) {
		status, body := i.readiness(name)
		want := http.StatusServiceUnavailable
		if slices.Contains(servers, name) {
			want = http.StatusOK
		}
		if status != want || !strings.Contains(body, "Temporal at 127.0.0.1:") || !strings.Contains(body, "cannot be reached") {
			t.Errorf("%s: /readyz answers %d: %s", name, status, body)
		}
	}
	i.kill(workers[0])
	i.start(workers[0]) // it answers, and waits for Temporal
	i.temporal.start()
	for range ids {
		<-i.slow
		i.release <- struct{}{}
	}
	i.succeed(ids...)
	if n := i.count("/slow/away-"); n != 2 {
		t.Errorf("%d were done", n)
	}
}

// testKillEach runs executions on two workers and two servers, and kills each of these processes at a moment that is left to chance. Nothing is lost, nothing
// is done or ends twice, and readers miss nothing.
func (i *installation) testKillEach(t *testing.T) {
	i.t = t
	ctx := t.Context()
	answering, stop := context.WithCancel(ctx)
	var answers sync.WaitGroup
	for _, c := range i.clients {
		answers.Go(func() { i.answer(answering, c) })
	}
	defer answers.Wait()
	defer stop()
	times, err := strconv.Atoi(os.Getenv(rounds))
	if err != nil {
		times = 1
	}
	const (
		each  = 6
		calls = 3 // of the service, by each execution
	)
	unknown, moved := 0, 0
	for round := range times {
		for v, victim := range []string{workers[0], servers[0], workers[1], servers[1]} {
			by := 0
			if victim == servers[1] {
				by = 1 // so that the reader has to move
			}
			var wg sync.WaitGroup
			ids, events, errs := make([]string, each), make([][]api.Event, each), make([]error, each)
			sockets := make([]*socketReader, each)
			before := i.count("/")
			for n := range each {
				wg.Go(func() {
					key := fmt.Sprintf("%d-%d-%d", round, v, n)
					// By the server that stays: a start that was broken off is repeated under its key.
					e, err := i.clients[1-by].Execute(ctx, "load", api.ExecuteRequest{Inputs: json.RawMessage(`{"n":"` + key + `"}`)}, key)
					if err != nil {
						errs[n] = err
						return
					}
					ids[n], sockets[n] = e.ExecutionID, i.readSocket(ctx, e.ExecutionID, by)
					events[n], errs[n] = i.follow(ctx, e.ExecutionID, by)
				})
			}
			moment := 1 + rand.IntN(calls*each-1)
			t.Logf("%s is killed after call %d of %d", victim, moment, calls*each)
			for i.count("/") < before+moment {
				select {
				case <-i.more:
				case <-ctx.Done():
					t.Fatal(context.Cause(ctx))
				}
			}
			k := killing{victim: victim, began: time.Now()}
			i.kill(victim)
			k.done = time.Now()
			i.start(victim)
			wg.Wait()
			for n := range each {
				if errs[n] != nil {
					t.Fatalf("%s killed: execution %d, %s: %v", victim, n, ids[n], errs[n])
				}
				e, err := i.clients[by].Execution(ctx, ids[n])
				if err != nil {
					t.Fatal(err)
				}
				switch {
				case e.Status == "SUCCESS":
				case slices.Contains(workers, victim) && e.Status == "ERROR" && strings.Contains(fmt.Sprint(e.Error), "outcome"): // of what may be done once only, nobody knows
					unknown++
				default:
					t.Errorf("%s killed: %s has ended as %s: %v", victim, ids[n], e.Status, e.Error)
				}
				var again []api.Event
				if err := i.clients[1-by].Watch(ctx, ids[n], "", client.VocabularyExecution, func(e api.Event) error {
					if e.Seq > 0 {
						again = append(again, e)
					}
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				sockets[n].check(t, k, e.EndTime, inShort(again))
				if slices.Contains(servers, victim) {
					moved += sockets[n].lost
				}
				if got, want := inShort(events[n]), inShort(again); !slices.Equal(got, want) {
					t.Errorf("%s killed: a reader that moved was told %v, and the journal has %v", victim, got, want)
				}
			}
		}
	}
	if moved == 0 { // who reads what has ended by then need not
		t.Error("no reader by WebSocket had to move to the other server")
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for path, n := range i.done {
		if n != 1 {
			t.Errorf("%s was done %d times", path, n)
		}
	}
	list, err := i.clients[0].Executions(ctx, client.ExecutionQuery{})
	if err != nil || list.TotalCount < times*4*each {
		t.Errorf("%d executions are listed, %v", list.TotalCount, err)
	}
	t.Logf("%d executions, %d with an unknown outcome", times*4*each, unknown)
}
