package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"tandem/fault"
	"tandem/store"
)

func TestPool_CallsAndLists(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.own(t, "s", "plain")
	tools, err := w.Tools(t.Context(), ann(), "s")
	if err != nil {
		t.Fatal(err)
	}
	if len(tools) != 12 || tools[0].ID != "s/"+tools[0].Name { // in pages of three
		t.Errorf("got %d tools", len(tools))
	}
	kindOf(t, errOf(w.call(t, "s", "echo", `{}`)), NotActivated)
	w.activate(t, "s")
	if out := w.must(t, "s", "echo", `{"text":"hi"}`); out.Message != "hi" || out.IsError {
		t.Errorf("got %+v", out)
	}
	pid := w.must(t, "s", "pid", "").Text
	if again := w.must(t, "s", "pid", ``).Text; again != pid || pid == fmt.Sprint(os.Getpid()) {
		t.Errorf("processes %s and %s: one connection is shared", pid, again)
	}
	bob := ann()
	bob.User = "bob"
	if _, err := w.Activate(t.Context(), bob, "s", Activation{}); err != nil {
		t.Fatal(err)
	}
	if out, err := w.Call(t.Context(), bob, Call{Server: "s", Tool: "pid"}); err != nil || out.Text == pid {
		t.Errorf("another user has the same process: %v, %v", out, err)
	}
	out, err := w.call(t, "s", "fail", `{}`)
	if e := kindOf(t, err, ToolFailed); e.Message.String() != "no luck" || !out.IsError || e.Fault().Code != fault.ToolError {
		t.Errorf("got %+v, %v", out, err)
	}
	kindOf(t, errOf(w.call(t, "s", "nothing", `{}`)), UnknownTool)
	kindOf(t, errOf(w.call(t, "none", "echo", `{}`)), UnknownServer)
	kindOf(t, errOf(w.call(t, "s", "echo", `[1]`)), BadArguments)
	if e := kindOf(t, errOf(w.call(t, "s", "echo", `{"text":7}`)), ToolFailed); !strings.Contains(e.Message.String(), "text") {
		t.Errorf("got %v", e)
	}
	w.own(t, "s", "plain", func(s *store.MCPServer) { s.Enabled = false })
	kindOf(t, errOf(w.call(t, "s", "echo", `{}`)), UnknownServer)
}

func errOf(_ Output, err error) error { return err }

func TestPool_EnvironmentIsOnlyWhatIsSaid(t *testing.T) {
	t.Setenv("TANDEM_CANARY", "leaks")
	w := setup(t)
	w.own(t, "s", "plain", func(s *store.MCPServer) {
		s.Env["KEY"] = store.MCPValue{Credential: "c", Field: "token", Prefix: "k-"}
	})
	w.activate(t, "s")
	env := w.must(t, "s", "environment", `{}`).Text
	if strings.Contains(env, "TANDEM_CANARY") || !strings.Contains(env, "KEY=k-s3cret-value") || !strings.Contains(env, "PATH=") {
		t.Errorf("got %s", env)
	}
	for line := range strings.Lines(env) {
		name, _, _ := strings.Cut(line, "=")
		switch name {
		case "PATH", "HOME", "LANG", "TMPDIR", "KEY", "NOTES", "TANDEM_TEST_SERVER", markName, "PWD":
		default:
			t.Errorf("variable %q", name)
		}
	}
}

// A server that writes its key into the description of a tool, as it is or encoded, tells it to no model, and does not become another tool
// with another key.
func TestPool_DescriptionsHoldNoSecrets(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.own(t, "s", "tells", func(s *store.MCPServer) {
		s.Env["KEY"] = store.MCPValue{Credential: "c", Field: "token", Prefix: "k-"}
	})
	w.activate(t, "s")
	pinned, err := w.Pinned(t.Context(), ann(), "s")
	if err != nil || len(pinned) != 2 || pinned[1].Description != "works with k-[redacted], in hex 6b2d[redacted]" {
		t.Fatalf("got %+v, %v", pinned, err)
	}
	w.secrets.mu.Lock()
	w.secrets.texts["c.token"] = "an0ther-value"
	w.secrets.mu.Unlock()
	w.Stop("w", "s", "ann")
	if changes, err := w.Check(t.Context(), ann(), "s"); err != nil || len(changes) != 0 {
		t.Errorf("with another key the tools have changed: %+v, %v", changes, err)
	}
}

func TestPool_ReconnectsOnceWhereThatDoesNoHarm(t *testing.T) {
	t.Parallel()
	t.Run("Once", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.own(t, "s", "plain")
		w.activate(t, "s")
		e := kindOf(t, errOf(w.call(t, "s", "die_once", `{}`)), Closed)
		if !e.Sent || !e.Once || !e.Unknown() || e.Fault().Code != fault.OutcomeUnknown || len(w.noted(t)) != 1 {
			t.Errorf("got %+v, ran %v", e, w.noted(t))
		}
		w.must(t, "s", "echo", `{}`) // the next has a new connection
	})
	t.Run("Idempotent", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.own(t, "s", "plain")
		w.activate(t, "s")
		if out := w.must(t, "s", "die_idempotent", `{}`); out.Text != "alive" || len(w.noted(t)) != 2 {
			t.Errorf("got %+v, ran %v", out, w.noted(t))
		}
	})
	t.Run("NotMoreThanOnce", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.own(t, "s", "plain")
		w.activate(t, "s")
		e := kindOf(t, errOf(w.call(t, "s", "die_idempotent", `{"n":10}`)), Closed)
		if !e.Sent || e.Unknown() || len(w.noted(t)) != 2 {
			t.Errorf("got %+v, ran %v", e, w.noted(t))
		}
	})
	t.Run("NotWhereTheCallerRepeats", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.own(t, "s", "plain")
		w.activate(t, "s")
		_, err := w.Call(t.Context(), ann(), Call{Server: "s", Tool: "die_idempotent", NoRepeat: true})
		if e := kindOf(t, err, Closed); !e.Sent || e.Unknown() || len(w.noted(t)) != 1 {
			t.Errorf("got %+v, ran %v", e, w.noted(t))
		}
	})
	t.Run("NotSentIsRepeatedForOnce", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.own(t, "s", "plain")
		w.activate(t, "s")
		// The connection ends between two calls; the process is told to end and the next caller finds it broken.
		s := w.slot("s")
		s.conn.process.stop()
		<-s.conn.done
		if out := w.must(t, "s", "mutate", `{}`); out.Text != "mutated" {
			t.Errorf("got %+v", out)
		}
	})
}

// slot returns ann's connection to a server.
func (w *world) slot(server string) *slot {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.slots[Key{"w", server, "ann"}]
}

func TestPool_TimeLimits(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.own(t, "s", "plain")
	w.activate(t, "s")
	t.Run("SilenceEndsACallAndTheServerIsTold", func(t *testing.T) {
		_, err := w.Call(t.Context(), ann(), Call{Server: "s", Tool: "hang", Silence: 100 * time.Millisecond, SilenceFrom: "patience"})
		if e := kindOf(t, err, Timeout); !e.Sent || !e.Unknown() || e.Message.String() != "the server did not answer within 100ms; raise patience if it needs longer" {
			t.Errorf("got %+v", e)
		}
		w.must(t, "s", "echo", `{}`) // the connection lives, and answers in order: the cancellation came before
		waitFor(t, func() bool { return strings.Join(w.noted(t), " ") == "hangs canceled" })
	})
	t.Run("ProgressExtends", func(t *testing.T) {
		var seen []Progress
		out, err := w.Call(t.Context(), ann(), Call{Server: "s", Tool: "steps", Arguments: json.RawMessage(`{"n":30}`), Silence: 2 * time.Second, // which is less than all steps take
			Progress: func(p Progress) { seen = append(seen, p) }})
		if err != nil || out.Text != "done" {
			t.Fatalf("got %+v, %v", out, err)
		}
		for i, p := range seen {
			if p.Done != float64(i+1) || p.Total != 30 || p.Message != "step" {
				t.Errorf("progress %d is %+v", i, p)
			}
		}
		if len(seen) < 20 { // the last may come after the answer, on a busy machine several
			t.Errorf("saw %v", seen)
		}
	})
	t.Run("TheLimitStays", func(t *testing.T) {
		_, err := w.Call(t.Context(), ann(), Call{Server: "s", Tool: "steps", Arguments: json.RawMessage(`{"n":100}`), Silence: 2 * time.Second, Limit: 500 * time.Millisecond})
		if e := kindOf(t, err, Timeout); !errors.Is(e, context.Canceled) || e.Unknown() {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("TheCallerStops", func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		before := len(w.noted(t))
		ended := make(chan error, 1)
		go func() { // it ends with ctx
			_, err := w.Call(ctx, ann(), Call{Server: "s", Tool: "hang"})
			ended <- err
		}()
		waitFor(t, func() bool { return len(w.noted(t)) > before }) // the server has the call
		stop()
		if e := kindOf(t, <-ended, Stopped); !e.Sent || !errors.Is(e, context.Canceled) {
			t.Errorf("got %+v", e)
		}
	})
}

// waitFor waits for something outside of this process that no signal tells of.
func waitFor(t *testing.T, is func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(2 * time.Minute); !is(); {
		select {
		case <-tick.C:
		case <-end:
			t.Fatal("it did not come")
		}
	}
}

func TestPool_ManyCallersOneServer(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.own(t, "s", "plain")
	w.activate(t, "s")
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			for j := range 5 {
				said := strings.Repeat(fmt.Sprintf("%d-%d ", i, j), 500)
				arguments, err := json.Marshal(map[string]string{"text": said})
				if err != nil {
					t.Error(err)
				}
				out, err := w.Call(t.Context(), ann(), Call{Server: "s", Tool: "echo", Arguments: arguments})
				if err != nil || out.Text != said {
					t.Errorf("call %d-%d: %v", i, j, err)
				}
			}
		})
	}
	wg.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.live) != 1 {
		t.Errorf("%d connections", len(w.live))
	}
}

func TestPool_FirstCallersShareOneConnection(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.own(t, "s", "slow_list")
	w.activate(t, "s")
	w.Stop("w", "s", "")
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if _, err := w.call(t, "s", "odd", `{}`); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	// One list for the activation and one for all callers.
	if noted := w.noted(t); len(noted) != 2 {
		t.Errorf("the server saw %v", noted)
	}
}

func TestPool_ConnectingIsGivenUp(t *testing.T) {
	t.Parallel()
	t.Run("ByTheLastWhoWaits", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.own(t, "s", "mute")
		ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer stop()
		_, err := w.Tools(ctx, ann(), "s")
		kindOf(t, err, Stopped)
		if w.slot("s") != nil {
			t.Error("a server that nobody waits for is still being reached")
		}
	})
	t.Run("ByTime", func(t *testing.T) {
		t.Parallel()
		w := setup(t, func(o *Options) { o.Connect = 200 * time.Millisecond })
		w.own(t, "s", "mute")
		_, err := w.Tools(t.Context(), ann(), "s")
		if e := kindOf(t, err, Timeout); e.Sent {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("WhenTheProcessEnds", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.own(t, "s", "exits")
		_, err := w.Tools(t.Context(), ann(), "s")
		if e := kindOf(t, err, NotStarted); e.Sent {
			t.Errorf("got %+v", e)
		}
		if log := w.log.String(); !strings.Contains(log, "cannot start: [redacted]") || !strings.Contains(log, "server=s") {
			t.Errorf("logged %s", log)
		}
	})
	t.Run("WhenThereIsNoCommand", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.own(t, "s", "plain", func(s *store.MCPServer) { s.Command = "no-such-command-anywhere" })
		_, err := w.Tools(t.Context(), ann(), "s")
		if e := kindOf(t, err, NotStarted); !strings.Contains(e.Message.String(), "command") {
			t.Errorf("got %+v", e)
		}
	})
}

func TestPool_HostileServers(t *testing.T) {
	t.Parallel()
	t.Run("Noise", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.own(t, "s", "noisy")
		w.activate(t, "s")
		out := w.must(t, "s", "odd", `{}`)
		if string(out.Structured) != `{"id":12345678901234567890,"f":1.50}` {
			t.Errorf("numbers have changed: %s", out.Structured)
		}
		if !strings.Contains(w.log.String(), "Welcome") {
			t.Error("what a server prints among its messages is not logged")
		}
		// Names that nobody could read are left out, and that is logged.
		if tools, err := w.Tools(t.Context(), ann(), "s"); err != nil || len(tools) != 1 || !strings.Contains(w.log.String(), "not seen") {
			t.Errorf("got %+v, %v", tools, err)
		}
	})
	t.Run("WrongJSON", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.own(t, "s", "wrong_json")
		w.activate(t, "s")
		if e := kindOf(t, errOf(w.call(t, "s", "odd", `{}`)), Protocol); !e.Sent || e.Unknown() {
			t.Errorf("got %+v", e)
		}
		// Nobody can say whose answer such a line is, so what became of a call that must not be repeated is not known.
		if e := kindOf(t, errOf(w.call(t, "s", "pay", `{}`)), Protocol); !e.Unknown() || e.Fault().Code != fault.OutcomeUnknown {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("AnswersWithoutEnd", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.own(t, "s", "endless")
		w.activate(t, "s")
		kindOf(t, errOf(w.call(t, "s", "odd", `{}`)), TooLarge)
		before := w.slot("s")
		if _, err := w.Tools(t.Context(), ann(), "s"); err != nil || w.slot("s") != before {
			t.Errorf("one large answer has ended the connection of all: %v", err)
		}
	})
	t.Run("LargeResult", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.own(t, "s", "plain")
		w.activate(t, "s")
		if out := w.must(t, "s", "huge", `{"n":3000000}`); len(out.Text) != 3000000 {
			t.Errorf("got %d bytes", len(out.Text))
		}
		kindOf(t, errOf(w.call(t, "s", "huge", `{"n":6000000}`)), TooLarge)
	})
	t.Run("DoesNotRead", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.own(t, "s", "deaf")
		w.activate(t, "s")
		big, err := json.Marshal(map[string]string{"x": strings.Repeat("x", 1<<20)})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		sent := make(chan bool, 20)
		for range 20 { // the pipe is full after the first
			wg.Go(func() {
				_, err := w.Call(t.Context(), ann(), Call{Server: "s", Tool: "odd", Arguments: big, Silence: 2 * time.Second})
				sent <- kindOf(t, err, Timeout).Sent
			})
		}
		wg.Wait()
		close(sent)
		count := 0
		for s := range sent {
			if s {
				count++
			}
		}
		if count != 1 {
			t.Errorf("%d calls may have been sent, and one can have been", count)
		}
	})
	t.Run("FloodsItsErrorOutput", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		begun := time.Now()
		w.own(t, "s", "plain")
		w.activate(t, "s")
		w.must(t, "s", "flood", `{"n":1000}`) // 5 MB
		w.Stop("w", "s", "ann")
		w.Close()
		log := w.log.String()
		spells := 1 + int(time.Since(begun)/logLineSpell) // so many lines are told of each
		if strings.Contains(log, "s3cret-value") || !strings.Contains(log, "left_out=") || len(log) > 2*spells*maxLogLines*maxLogLine {
			t.Errorf("logged %d bytes, beginning %.300s", len(log), log)
		}
	})
	t.Run("NoLongerAnswers", func(t *testing.T) {
		t.Parallel()
		w := setup(t, func(o *Options) { o.CheckAfter = time.Nanosecond })
		w.own(t, "s", "sulks", func(s *store.MCPServer) { s.TimeoutSeconds = 1 })
		w.activate(t, "s")
		before := w.slot("s")
		if out := w.must(t, "s", "odd", `{}`); out.Text != "ok" || w.slot("s") == before {
			t.Errorf("got %+v from the same connection", out)
		}
		<-before.conn.done
	})
}

func TestPool_DefinitionsAreKeptAsTheyCame(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.own(t, "s", "odd")
	tools, err := w.Tools(t.Context(), ann(), "s")
	if err != nil || len(tools) != 1 {
		t.Fatalf("got %v, %v", tools, err)
	}
	if schema := string(tools[0].InputSchema); !strings.Contains(oddTool, schema) || !strings.Contains(schema, "12345678901234567890") {
		t.Errorf("the schema is %s", schema)
	}
}

func TestPool_DriftStopsCalls(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.own(t, "s", "plain")
	w.activate(t, "s")
	w.must(t, "s", "echo", `{"text":"a"}`)
	w.must(t, "s", "mutate", `{"text":"send money"}`)
	if key := <-w.changed; key != (Key{"w", "s", "ann"}) {
		t.Errorf("told of %v", key)
	}
	_, err := w.call(t, "s", "echo", `{"text":"a"}`)
	d, ok := errors.AsType[*Drifted](err)
	if !ok || len(d.Changes) != 1 || d.Changes[0].Kind != Changed || d.Changes[0].Summary != `"echo" has changed: description` {
		t.Fatalf("got %v", err)
	}
	w.must(t, "s", "pid", `{}`) // other tools go on
	changes, err := w.Check(t.Context(), ann(), "s")
	if err != nil || len(changes) != 1 {
		t.Fatalf("got %v, %v", changes, err)
	}
	// What is accepted is what was looked at: a change after that stops calls again.
	w.must(t, "s", "mutate", `{"text":"send more"}`)
	<-w.changed
	if _, err := w.Accept(t.Context(), ann(), "s", Acceptance{By: "eve"}, changes); err != nil {
		t.Fatal(err)
	}
	if _, err := w.call(t, "s", "echo", `{}`); !errors.As(err, &d) {
		t.Fatalf("a change that nobody has seen was accepted: %v", err)
	}
	if _, err := w.Accept(t.Context(), ann(), "s", Acceptance{By: "eve"}, d.Changes); err != nil {
		t.Fatal(err)
	}
	if out := w.must(t, "s", "echo", `{"text":"b"}`); out.Text != "changed b" {
		t.Errorf("got %+v", out)
	}
	// A new process is the old program: the tool is as it was first, so calls stop again.
	w.Stop("w", "s", "ann")
	if _, err := w.call(t, "s", "echo", `{}`); !errors.As(err, &d) {
		t.Errorf("got %v", err)
	}
}

func TestPool_ClosesWhatIsIdle(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.own(t, "s", "plain", func(s *store.MCPServer) { s.IdleSeconds = 1 })
	w.activate(t, "s")
	c := w.slot("s").conn
	<-c.done
	if w.slot("s") != nil {
		t.Error("it is still there")
	}
	w.must(t, "s", "echo", `{}`)
}

func TestPool_ChangedServersAreReachedAnew(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.own(t, "s", "plain")
	w.activate(t, "s")
	before := w.slot("s").conn
	hangs := make(chan error, 1)
	go func() {
		_, err := w.Call(t.Context(), ann(), Call{Server: "s", Tool: "steps", Arguments: json.RawMessage(`{"n":10}`)})
		hangs <- err
	}()
	waitFor(t, func() bool { before.mu.Lock(); defer before.mu.Unlock(); return len(before.listeners) == 1 })
	w.own(t, "s", "plain", func(s *store.MCPServer) { s.Env["KEY"] = store.MCPValue{Credential: "c", Field: "token"} })
	if out := w.must(t, "s", "environment", `{}`); !strings.Contains(out.Text, "KEY=s3cret-value") {
		t.Errorf("got %s", out.Text)
	}
	if err := <-hangs; err != nil {
		t.Errorf("a call under way was ended: %v", err)
	}
	<-before.done
}

// A credential that was changed is used by the next call, which makes a connection of its own; a call that is under way ends as it began. With
// one that was deleted nothing is called, and the connection that has it is closed.
func TestPool_ChangedCredentialsAreReadAnew(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.own(t, "s", "plain", func(s *store.MCPServer) { s.Env["KEY"] = store.MCPValue{Credential: "c", Field: "token"} })
	w.activate(t, "s")
	before := w.slot("s").conn
	w.must(t, "s", "echo", `{}`)
	if w.slot("s").conn != before {
		t.Error("a connection was made although nothing has changed")
	}
	hangs := make(chan error, 1)
	go func() {
		_, err := w.Call(t.Context(), ann(), Call{Server: "s", Tool: "steps", Arguments: json.RawMessage(`{"n":10}`)})
		hangs <- err
	}()
	waitFor(t, func() bool { before.mu.Lock(); defer before.mu.Unlock(); return len(before.listeners) == 1 })
	w.secrets.change("c", "token", "an0ther-value", 1)
	if out := w.must(t, "s", "environment", `{}`); !strings.Contains(out.Text, "KEY=an0ther-value") {
		t.Errorf("got %s", out.Text)
	}
	if err := <-hangs; err != nil {
		t.Errorf("a call under way was ended: %v", err)
	}
	<-before.done
	after := w.slot("s").conn
	w.secrets.change("c", "token", "", -1)
	if _, err := w.call(t, "s", "environment", `{}`); !strings.Contains(fmt.Sprint(err), `no credential "c"`) {
		t.Errorf("without the credential: %v", err)
	}
	<-after.done
}

func TestPool_CloseEndsCalls(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.own(t, "s", "plain")
	w.activate(t, "s")
	ended := make(chan error, 10)
	for range cap(ended) {
		go func() {
			_, err := w.call(t, "s", "hang", `{}`)
			ended <- err
		}()
	}
	waitFor(t, func() bool { return len(w.noted(t)) == cap(ended) })
	w.Close()
	for range cap(ended) {
		if e := kindOf(t, <-ended, Closed); !e.Sent {
			t.Errorf("got %+v", e)
		}
	}
	kindOf(t, errOf(w.call(t, "s", "echo", `{}`)), Closed)
}
