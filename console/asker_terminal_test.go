package console

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"tandem/api"
	"tandem/app"
	"tandem/console/tree"
	"tandem/console/tree/treetest"
	"tandem/engine"
	"tandem/human"
)

// setupAsker is somebody at a terminal who types a line whenever one is asked for, and leaves after the last.
func setupAsker(t *testing.T, lines ...string) (*asker, *treetest.Terminal) {
	t.Helper()
	f := treetest.NewTerminal(t, 80, 24)
	keys := &keyboard{Terminal: f, typed: newTyped(), lines: lines}
	p := tree.NewDrawing(unixLines{f}, f.Size, false)
	if err := p.Begin("exec_x"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	return &asker{out: keys, typed: keys.typed, follow: p}, f
}

// keyboard answers prompts, which are what ends without a line end, and makes of line ends what terminals do.
type keyboard struct {
	*treetest.Terminal
	typed *typed
	lines []string
}

func (k *keyboard) Write(b []byte) (int, error) {
	text := string(b)
	if !strings.HasSuffix(text, "\n") {
		if len(k.lines) == 0 {
			k.typed.addLines(true)
		} else {
			text += k.lines[0] + "\n"
			k.typed.addLines(false, k.lines[0])
			k.lines = k.lines[1:]
		}
	}
	_, err := k.Terminal.Write([]byte(strings.ReplaceAll(text, "\n", "\r\n")))
	return len(b), err
}

func TestAsker(t *testing.T) {
	t.Parallel()
	tool := asked(t, human.PurposeToolApproval, `{"title":"May pay be called?","description":"A model wants to.","arguments":{"amount":5,"to":"a\u001b[2Jb"}}`)
	t.Run("ForgetsWhatWasTypedBefore", func(t *testing.T) {
		t.Parallel()
		a, _ := setupAsker(t, "n", "")
		a.typed.addLines(false, "y", "y") // perhaps meant for another question
		if got, err := answered(t.Context(), a, tool); err != nil || got != `{"approved":false}` {
			t.Errorf("answer %s, %v", got, err)
		}
	})
	t.Run("ReadsLines", func(t *testing.T) {
		t.Parallel()
		x := newTyped()
		go x.readLines(strings.NewReader("one\ntwo"))
		for _, want := range []string{"one", "two"} {
			if got, err := x.nextLine(t.Context()); got != want || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
		}
		if _, err := x.nextLine(t.Context()); !errors.Is(err, app.ErrAsked) {
			t.Errorf("at the end: %v", err)
		}
	})
	t.Run("Interrupted", func(t *testing.T) {
		t.Parallel()
		a, _ := setupAsker(t, "")
		a.typed = newTyped() // of which the keyboard does not know
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := answered(ctx, a, tool); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("SomebodyIsFaster", func(t *testing.T) {
		t.Parallel()
		a, f := setupAsker(t, "")
		a.typed = newTyped()
		ctx, over := context.WithCancelCause(t.Context())
		over(app.ErrFaster)
		if _, err := answered(ctx, a, tool); !errors.Is(err, app.ErrFaster) {
			t.Errorf("got %v", err)
		}
		if err := a.follow.Stop(); err != nil {
			t.Fatal(err)
		}
		if shown := f.Shown(); !strings.Contains(shown, "It has ended meanwhile.") {
			t.Errorf("it shows\n%s", shown)
		}
	})
	t.Run("DrawsOnAfterwards", func(t *testing.T) {
		t.Parallel()
		a, f := setupAsker(t, "y", "")
		if err := a.follow.Frame(doneEvent(t, 1, "first")); err != nil {
			t.Fatal(err)
		}
		if _, err := answered(t.Context(), a, tool); err != nil {
			t.Fatal(err)
		}
		if err := a.follow.Frame(doneEvent(t, 2, "second")); err != nil {
			t.Fatal(err)
		}
		if err := a.follow.Stop(); err != nil {
			t.Fatal(err)
		}
		shown := f.Shown()
		_, after, found := strings.Cut(shown, "Allow it?")
		if !found || !strings.Contains(after, "✓ first") || !strings.Contains(after, "✓ second") || f.Hidden {
			t.Errorf("it shows\n%s", shown)
		}
	})
}

// Without a terminal on both sides nobody is asked.
func TestNewAsker(t *testing.T) {
	t.Parallel()
	if a := newAsker(strings.NewReader("y\n"), &strings.Builder{}, tree.NewFollower(&strings.Builder{}, false)); a != nil {
		t.Error("a pipe is asked")
	}
	if a := newAsker(strings.NewReader("y\n"), &strings.Builder{}, tree.NewDrawing(&strings.Builder{}, func() (int, int) { return 80, 24 }, false)); a != nil {
		t.Error("an input that is not a terminal is asked")
	}
}

// unixLines makes of line ends what terminals do.
type unixLines struct{ out io.Writer }

func (u unixLines) Write(b []byte) (int, error) {
	text := strings.ReplaceAll(strings.ReplaceAll(string(b), "\r\n", "\n"), "\n", "\r\n")
	_, err := io.WriteString(u.out, text)
	return len(b), err
}

// doneEvent is the event of a node that has ended well.
func doneEvent(t *testing.T, seq uint64, id string) api.Event {
	t.Helper()
	data, err := json.Marshal(api.ExecutionUpdate{NodeExecution: &api.NodeExecution{ActivationID: id, NodeID: id, Status: string(engine.NodeDone)}})
	if err != nil {
		t.Fatal(err)
	}
	return api.Event{EventType: "node_completed", Seq: seq, Data: data}
}
