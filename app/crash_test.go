package app

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/client"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/loopback"
	"tandem/outbound"
	"tandem/store/sqlite/sqlitetest"
)

// What a process that this test starts to be killed finds in its environment.
const (
	crashDir  = "TANDEM_TEST_CRASH_DIR"
	crashAddr = "TANDEM_TEST_CRASH_ADDR"
)

const (
	crashCalls   = 50 // the process is killed after some of these many calls of nodes
	crashToken   = "tdm_crash_test_token_0123456789abcdef"
	crashFollows = 12 // executions whose streams are followed throughout
	crashItems   = 4
	crashStarts  = 15 // executions that are started in a round, at most
)

const crashFlow = `
metadata: {id: crash, name: crash, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: each, description: d, type: FLOW, subtype: FOR_EACH, configurations: {items_path: list, max_concurrency: 3}}
  - id: get
    description: d
    type: ACTION
    subtype: HTTP_REQUEST
    configurations: {method: GET, url: "{{base}}/get", query_params: {e: "{{execution.id}}", i: "{{index}}"}}
  - id: post
    description: d
    type: ACTION
    subtype: HTTP_REQUEST
    configurations: {method: POST, url: "{{base}}/post", body_type: none, query_params: {e: "{{execution.id}}", i: "{{index}}"}}
  - {id: nap, description: d, type: FLOW, subtype: DELAY, configurations: {duration_seconds: 0.01}}
  - {id: work, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}, input_params: {got: "{{item}}"}}
  - {id: sub, description: d, type: FLOW, subtype: SUB_WORKFLOW, configurations: {workflow_id: crash_child, revision: latest}}
  - {id: sum, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}, input_params: {list: "{{each.outputs.results}}"}}
connections:
  - {from_node: start, to_node: each}
  - {from_node: each, to_node: get, output_key: iteration}
  - {from_node: get, to_node: post}
  - {from_node: post, to_node: nap}
  - {from_node: nap, to_node: work}
  - {from_node: work, to_node: each}
  - {from_node: each, to_node: sub, output_key: completed}
  - {from_node: sub, to_node: sum}
`

const crashChildFlow = `
metadata: {id: crash_child, name: crash_child, description: d}
nodes:
  - {id: a, description: d, type: CALL, subtype: EMPTY}
  - {id: b, description: d, type: CALL, subtype: EMPTY, input_params: {x: 1}, configurations: {pass_through: true}}
connections:
  - {from_node: a, to_node: b}
`

// TestCrash_Process is the process that is killed: a server as anybody would start it.
func TestCrash_Process(t *testing.T) {
	dir := os.Getenv(crashDir)
	if dir == "" {
		return // not in such a process: TestCrash_KillNine starts it
	}
	allow, err := outbound.ParseAllow("127.0.0.0/8")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once, as that of the command
	err = Serve(ctx, ServeOptions{
		Addr: os.Getenv(crashAddr), Dir: dir, Token: crashToken, HTTPAllow: allow, Version: "test",
		Started: func(s Serving) { fmt.Printf("serving %s\n", s.URL) },
	})
	if err != nil || ctx.Err() == nil {
		t.Fatal(err)
	}
}

// service is what the nodes call. It counts, and tells when so many calls have come.
type service struct {
	mu    sync.Mutex
	gets  map[string]int
	posts map[string]int
	until int
	now   func()
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := r.FormValue("e") + " " + r.FormValue("i")
	s.mu.Lock()
	if r.URL.Path == "/post" {
		s.posts[key]++
	} else {
		s.gets[key]++
	}
	if s.until--; s.until == 0 {
		s.now() // while this call, and maybe others, are not answered yet
	}
	s.mu.Unlock()
	fmt.Fprint(w, `{"ok":true}`)
}

// arm lets a function be called with the n-th call from now on.
func (s *service) arm(n int, now func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until, s.now = n, now
}

func (s *service) posted(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.posts[key]
}

// crash is one run of the test.
type crash struct {
	*testing.T
	// crashes is how often the process is killed or stopped.
	crashes   int
	dir, addr string
	service   *service
	base      string
	client    *client.Client
	started   []string
	decisions int
	revived   int
	following sync.WaitGroup
	follows   []*follow
}

// follow is a stream that is followed across all crashes.
type follow struct {
	execution, vocabulary string
	frames                []string
	last                  string // the position of the last one
	err                   error
}

// TestCrash_KillNine kills a server again and again while it works, and then looks whether anything is missing or was
// done twice.
func TestCrash_KillNine(t *testing.T) {
	t.Parallel()
	s := &service{gets: map[string]int{}, posts: map[string]int{}}
	fake := httptest.NewServer(s)
	defer fake.Close()
	c := newCrash(t)
	c.crashes, c.service, c.base = often(15, 50), s, fake.URL
	for n := range c.crashes {
		c.round(n)
	}
	end := c.serve()
	defer end()
	for _, id := range c.started {
		c.finish(id)
	}
	c.following.Wait()
	c.check()
	t.Logf("%d executions went through %d crashes; %d outcomes were unknown and decided, %d executions were revived by hand", len(c.started), c.crashes, c.decisions, c.revived)
}

// newCrash is a server that can be killed and started again: a directory and an address for it, and a client of its API.
func newCrash(t *testing.T) *crash {
	t.Helper()
	c := &crash{T: t, dir: sqlitetest.Dir(t), addr: loopback.FreeAddress(t)}
	var err error
	if c.client, err = client.New(client.Options{URL: "http://" + c.addr, Token: crashToken}); err != nil {
		t.Fatal(err)
	}
	return c
}

// startOne starts an execution of a workflow that has one node, called act, behind its trigger. CREDENTIAL in the configuration stands
// for the credential, which is made for it.
func (c *crash) startOne(subtype, configurations string, credential api.CredentialRequest) (execution string) {
	c.Helper()
	made, err := c.client.CreateCredential(c.Context(), credential)
	if err != nil {
		c.Fatal(err)
	}
	_, err = c.client.CreateWorkflow(c.Context(), []byte(`
metadata: {id: one, name: one, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: act, description: d, type: EXTERNAL_ACTION, subtype: `+subtype+`, configurations: `+strings.ReplaceAll(configurations, "CREDENTIAL", made.ID)+`}
connections:
  - {from_node: start, to_node: act}
`), true)
	if err != nil {
		c.Fatal(err)
	}
	started, err := c.client.Execute(c.Context(), "one", api.ExecuteRequest{}, "")
	if err != nil {
		c.Fatal(err)
	}
	return started.ExecutionID
}

// succeeds returns what the node of such an execution has put out, when the execution has succeeded.
func (c *crash) succeeds(execution string) gjson.Result {
	c.Helper()
	raw, err := json.Marshal(c.becomes(execution, engine.StatusSuccess).NodeExecutions["act"].OutputData)
	if err != nil {
		c.Fatal(err)
	}
	return gjson.GetBytes(raw, "result")
}

// process starts a server and returns it when it takes requests.
func (c *crash) process() *exec.Cmd {
	c.Helper()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestCrash_Process$")
	cmd.Env = append(os.Environ(), crashDir+"="+c.dir, crashAddr+"="+c.addr)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		c.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		c.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "serving ") {
			return cmd
		}
		c.Log(lines.Text())
	}
	c.Fatal("the server ended before it took requests")
	return nil
}

// serve starts a server that is not killed.
func (c *crash) serve() (end func()) {
	c.Helper()
	cmd := c.process()
	return func() {
		if err := cmd.Process.Kill(); err != nil {
			c.Error(err)
		}
		_ = cmd.Wait() // it says that it was killed
	}
}

// keepFlows keeps the workflows of the test.
func (c *crash) keepFlows() {
	c.Helper()
	for _, text := range []string{crashChildFlow, crashFlow} {
		if _, err := c.client.CreateWorkflow(c.Context(), []byte(text), true); err != nil {
			c.Fatal(err)
		}
	}
}

// round starts a server, gives it work, and kills it in the middle of a call.
func (c *crash) round(n int) {
	c.Helper()
	cmd := c.process()
	if n == 0 {
		c.keepFlows()
	}
	dead := make(chan struct{})
	c.service.arm(1+rand.IntN(crashCalls), sync.OnceFunc(func() {
		if err := cmd.Process.Kill(); err != nil {
			c.Error(err)
		}
		close(dead)
	}))
	work, stop := context.WithCancel(c.Context())
	var group sync.WaitGroup
	group.Go(func() { c.start(work, n) })
	group.Go(func() { c.decide(work) })
	select {
	case <-dead:
	case <-time.After(patient):
		c.Fatal("the nodes do not call; look at what became of the executions")
	}
	stop()
	_ = cmd.Wait() // it says that it was killed
	group.Wait()
}

// start starts executions until the server is dead. One whose answer was lost is started again, under its key, by the
// next round.
func (c *crash) start(ctx context.Context, round int) {
	for n := 0; ctx.Err() == nil && n < crashStarts; n++ {
		id, err := c.execute(ctx, fmt.Sprintf("%d-%d", round, n))
		if err != nil {
			return
		}
		c.started = append(c.started, id)
		if len(c.follows) < crashFollows {
			c.follow(id)
		}
	}
}

func (c *crash) execute(ctx context.Context, key string) (string, error) {
	inputs, err := json.Marshal(map[string]any{"base": c.base, "list": make([]int, crashItems)})
	if err != nil {
		return "", err
	}
	started, err := c.client.Execute(ctx, "crash", api.ExecuteRequest{Inputs: inputs}, key)
	return started.ExecutionID, err
}

// follow follows the stream of an execution until its end, whatever happens to the server.
func (c *crash) follow(id string) {
	f := &follow{execution: id, vocabulary: []string{client.VocabularyExecution, client.VocabularyFlow}[len(c.follows)%2]}
	c.follows = append(c.follows, f)
	c.following.Go(func() { f.frames, f.last, f.err = c.watch(f.execution, f.vocabulary, "") })
}

// watch reads a stream after a position up to its end, and returns it with the position of the last frame.
func (c *crash) watch(id, vocabulary, after string) (frames []string, last string, err error) {
	ctx, cancel := context.WithTimeout(c.Context(), 10*time.Minute)
	defer cancel()
	for {
		err = c.client.Watch(ctx, id, after, vocabulary, func(e api.Event) error {
			if e.Seq != 0 {
				after = fmt.Sprintf("%d.%d", e.Seq, e.Part)
				frames = append(frames, after+" "+e.EventType+" "+string(e.Data))
			}
			return nil
		})
		if told := (*client.Error)(nil); err == nil || ctx.Err() != nil || errors.As(err, &told) {
			return frames, after, err
		}
		// Nobody was there for a while: go on from where it was.
	}
}

// decide answers questions until the server is dead: whether a call whose outcome is unknown was done, the service knows.
func (c *crash) decide(ctx context.Context) {
	waiting, err := c.client.Executions(ctx, client.ExecutionQuery{Statuses: []string{string(engine.StatusWaitingForHuman)}, PageSize: 500})
	if err != nil {
		return
	}
	for _, e := range waiting.Executions {
		if _, err := c.answer(ctx, e.ExecutionID); err != nil {
			return
		}
	}
}

func (c *crash) answer(ctx context.Context, id string) (answered int, err error) {
	e, err := c.client.Execution(ctx, id)
	if err != nil {
		return 0, err
	}
	for _, q := range e.Questions {
		if q.Purpose != engine.PurposeOutcomeUnknown {
			c.Errorf("execution %s asks %q", id, q.Purpose)
		}
		data := json.RawMessage(`{"outcome":"not_done"}`)
		if c.service.posted(id+" "+iterationOf(q.ActivationID)) > 0 {
			data = json.RawMessage(`{"outcome":"done","result":{"ok":true}}`)
		}
		_, err := c.client.Input(ctx, id, api.InputRequest{NodeID: q.NodeID, ActivationID: q.ActivationID, InteractionID: q.InteractionID, InputData: data})
		if fault.CodeOf(err) == fault.Conflict {
			continue // it was answered before, and the answer to that was lost
		}
		if err != nil {
			return answered, err
		}
		c.decisions++
		answered++
	}
	return answered, nil
}

// finish waits for the success of an execution, answers what it asks on the way, and revives it where
// an operator would have to.
func (c *crash) finish(id string) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), 3*time.Minute)
	defer cancel()
	for {
		if _, err := c.answer(ctx, id); err != nil {
			c.Fatal(err)
		}
		err := c.client.Watch(ctx, id, "", client.VocabularyExecution, func(e api.Event) error {
			if e.EventType != "user_input_required" {
				return nil
			}
			_, err := c.answer(ctx, id)
			return err
		})
		if err != nil {
			c.Fatalf("execution %s: %v", id, err)
		}
		e, err := c.client.Execution(ctx, id)
		if err != nil {
			c.Fatal(err)
		}
		if e.Error == nil {
			return
		}
		c.revive(ctx, e)
	}
}

// revive lets an execution go on that an operator has to look after: a run was in four crashes, or a post beside such a one
// was given up while it was under way.
func (c *crash) revive(ctx context.Context, e api.Execution) {
	c.Helper()
	list, err := c.client.Activations(ctx, e.ExecutionID, client.ActivationQuery{NodeID: e.Error.ErrorNodeID})
	if err != nil {
		c.Fatal(err)
	}
	for _, a := range list.Activations {
		action := api.ActionRequest{Action: string(host.ActionRetry), ActivationID: a.ActivationID}
		switch {
		case a.Error == nil:
			continue
		case a.Error.ErrorCode == string(fault.OutcomeUnknown) && c.service.posted(e.ExecutionID+" "+iterationOf(a.ActivationID)) > 0:
			action.Action, action.Output = string(host.ActionSkip), json.RawMessage(`{"ok":true}`)
		case a.Error.ErrorCode != string(fault.Interrupted) && a.Error.ErrorCode != string(fault.OutcomeUnknown):
			continue
		}
		_, err := c.client.Act(ctx, e.ExecutionID, action)
		if code := fault.CodeOf(err); code == fault.NotFound || code == fault.Conflict {
			continue // it failed before, and was retried since
		}
		if err != nil {
			c.Fatal(err)
		}
		c.revived++
		return
	}
	c.Fatalf("execution %s has failed, and nothing in it can be retried: %+v", e.ExecutionID, e.Error)
}

// iterationOf is the number in "each[2]/post".
func iterationOf(activation string) string {
	return activation[strings.IndexByte(activation, '[')+1 : strings.IndexByte(activation, ']')]
}

// check looks whether everything was done, and nothing too often.
func (c *crash) check() {
	c.Helper()
	total := 0
	for page := 1; ; page++ {
		list, err := c.client.Executions(c.Context(), client.ExecutionQuery{WorkflowID: "crash", Page: page, PageSize: 500})
		if err != nil {
			c.Fatal(err)
		}
		total += len(list.Executions)
		if len(list.Executions) == 0 {
			break
		}
		for _, e := range list.Executions {
			c.finish(e.ExecutionID) // also those whose start was on disk when its answer was lost
			c.execution(e.ExecutionID)
		}
	}
	if total < len(c.started) {
		c.Errorf("%d executions were accepted, %d are there", len(c.started), total)
	}
	c.service.mu.Lock()
	defer c.service.mu.Unlock()
	for key, n := range c.service.posts {
		if n != 1 {
			c.Errorf("%s was posted %d times", key, n)
		}
	}
	for key, n := range c.service.gets {
		if n > 1+c.crashes {
			c.Errorf("%s was fetched %d times in %d crashes", key, n, c.crashes)
		}
	}
	if len(c.service.posts) != total*crashItems || len(c.service.gets) != total*crashItems {
		c.Errorf("%d executions made %d posts and %d gets of different items", total, len(c.service.posts), len(c.service.gets))
	}
	for _, f := range c.follows {
		c.checkFollow(f)
	}
}

// execution looks at one execution: its result, and that no activation was completed twice.
func (c *crash) execution(id string) {
	c.Helper()
	e, err := c.client.Execution(c.Context(), id)
	if err != nil {
		c.Fatal(err)
	}
	if e.Status != string(engine.StatusSuccess) {
		c.Errorf("execution %s ended as %s: %+v", id, e.Status, e.Error)
		return
	}
	var sum struct{ List []struct{ Got int } }
	if err := json.Unmarshal(e.Outputs["sum"], &sum); err != nil || len(sum.List) != crashItems {
		c.Errorf("execution %s has the outputs %s, %v", id, e.Outputs["sum"], err)
	}
	frames, _, err := c.watch(id, client.VocabularyExecution, "")
	if err != nil {
		c.Fatal(err)
	}
	completed := map[string]bool{}
	for _, f := range frames {
		parts := strings.SplitN(f, " ", 3)
		if parts[1] != "node_completed" {
			continue
		}
		var data api.ExecutionUpdate
		if err := json.Unmarshal([]byte(parts[2]), &data); err != nil {
			c.Fatal(err)
		}
		if a := data.NodeExecution.ActivationID; completed[a] {
			c.Errorf("execution %s: %s was completed twice", id, a)
		} else {
			completed[a] = true
		}
	}
	if want := 4 + 4*crashItems; len(completed) != want { // start, each, sub, sum and, per item, get, post, nap, work
		c.Errorf("execution %s has %d completions, want %d", id, len(completed), want)
	}
}

// checkFollow compares what a reader got who was cut off by every crash with what one gets who reads now.
func (c *crash) checkFollow(f *follow) {
	c.Helper()
	if f.err != nil {
		c.Errorf("the stream of %s: %v", f.execution, f.err)
		return
	}
	now, _, err := c.watch(f.execution, f.vocabulary, "")
	if err != nil {
		c.Fatal(err)
	}
	// One that was interrupted too often and then retried went on after its end.
	rest, _, err := c.watch(f.execution, f.vocabulary, f.last)
	if err != nil {
		c.Fatal(err)
	}
	if diff := cmp.Diff(now, append(f.frames, rest...)); diff != "" {
		c.Errorf("the stream of %s (%s) has gaps or duplicates: %s", f.execution, f.vocabulary, diff)
	}
}
