package app

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"tandem/api"
	"tandem/engine"
	"tandem/fault"
	"tandem/store/sqlite/sqlitetest"
)

// there is a connection to the server of a site.
func (x *taskSite) there() *Connection {
	x.Helper()
	return &Connection{Client: x.as(taskUser)}
}

// readingBox is a tool server with one tool.
func readingBox(t *testing.T) *toolbox {
	t.Helper()
	return newToolbox(t, nil, toolDefinition{Name: "read", Description: "reads", Schema: json.RawMessage(`{"type":"object"}`), ReadOnly: true})
}

// A task at a server asks the person who follows it, says what is wrong with an answer, and goes on by itself.
func TestRunTask_AsksThere(t *testing.T) {
	t.Parallel()
	x := openTasks(t, newMind(t, []string{"box/read"}, nil), readingBox(t))
	asked, frames := 0, 0
	e, err := x.there().RunTask(t.Context(), Task{
		Agent: "helper", Request: api.TaskRequest{Question: "do it"}, Server: "http://there",
		Each: func(api.Event) error { frames++; return nil },
		Ask: func(_ context.Context, q api.Interaction, answer func(json.RawMessage) error) error {
			asked++
			if err := answer(json.RawMessage(`{"confirm":"perhaps"}`)); fault.CodeOf(err) != fault.InvalidInput {
				t.Errorf("a wrong answer: %v", err)
			}
			return answer(json.RawMessage(`{"confirm":true}`))
		},
	})
	if err != nil || e.Status != string(engine.StatusSuccess) || asked != 1 || frames == 0 {
		t.Errorf("asked %d times, %d frames; %+v, %v", asked, frames, e, err)
	}
	if answer, err := x.there().Answer(t.Context(), e); err != nil || answer != "All is well." {
		t.Errorf("answer %q, %v", answer, err)
	}
}

// A question that somebody answers elsewhere is asked no longer, and the task is followed on.
func TestRunTask_SomebodyIsFaster(t *testing.T) {
	t.Parallel()
	x := openTasks(t, newMind(t, []string{"box/read"}, nil), readingBox(t))
	e, err := x.there().RunTask(t.Context(), Task{
		Agent: "helper", Request: api.TaskRequest{Question: "do it"}, Server: "http://there",
		Ask: func(ctx context.Context, q api.Interaction, _ func(json.RawMessage) error) error {
			if _, err := x.as(taskUser).Respond(t.Context(), q.ID, api.RespondRequest{ResponseData: json.RawMessage(`{"confirm":true}`)}); err != nil {
				t.Error(err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(patient): // so that a wrong program ends
				t.Error("the asking goes on")
			}
			if why := context.Cause(ctx); !errors.Is(why, ErrFaster) {
				t.Errorf("the asking ends because of %v", why)
			}
			return context.Cause(ctx)
		},
	})
	if err != nil || e.Status != string(engine.StatusSuccess) {
		t.Errorf("%+v, %v", e, err)
	}
}

// Where nobody can be asked, it is told how the question is answered; then the task is followed again. One that has ended, and has asked
// before, is told from its beginning.
func TestRunTask_NobodyIsThere(t *testing.T) {
	t.Parallel()
	x := openTasks(t, newMind(t, []string{"box/read"}, nil), readingBox(t))
	id := ""
	task := Task{
		Agent: "helper", Request: api.TaskRequest{Question: "do it"}, Server: "http://there",
		Started: func(s api.TaskStarted) { id = s.ExecutionID },
	}
	_, err := x.there().RunTask(t.Context(), task)
	if !errors.Is(err, ErrAsked) || !strings.Contains(err.Error(), "tandem approve ") || !strings.Contains(err.Error(), " --server http://there, or reject") {
		t.Errorf("%v", err)
	}
	task.Resume = id
	if _, err = x.there().RunTask(t.Context(), task); !errors.Is(err, ErrAsked) {
		t.Errorf("again: %v", err)
	}
	x.say(id, `{"confirm":true}`)
	for range 2 {
		frames := 0
		task.Each = func(api.Event) error { frames++; return nil }
		e, err := x.there().RunTask(t.Context(), task)
		if err != nil || e.Status != string(engine.StatusSuccess) || frames == 0 {
			t.Errorf("at the end: %d frames, %+v, %v", frames, e, err)
		}
	}
}

// A user who starts too many tasks at once has to wait, and may give up meanwhile.
func TestRunTask_WaitsForItsTurn(t *testing.T) {
	t.Parallel()
	x := openTasks(t, newMind(t, nil, nil), readingBox(t))
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	var held time.Duration
	for n := range 6 {
		_, err := x.there().RunTask(ctx, Task{
			Agent: "helper", Request: api.TaskRequest{Question: "do it"},
			Held: func(wait time.Duration, why error) {
				held = wait
				if fault.CodeOf(why) != fault.RateLimited {
					t.Errorf("held because of %v", why)
				}
				giveUp()
			},
		})
		if n < 5 && err != nil || n == 5 && !errors.Is(err, context.Canceled) {
			t.Errorf("task %d: %v", n, err)
		}
	}
	if held <= 0 || held > 16*time.Second {
		t.Errorf("held for %v", held)
	}
}

// An answer that is too large for the result to be told with the execution is read all the same.
func TestConnection_Answer(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("All is very well. ", 4000)
	x := openTasks(t, newMind(t, nil, func(d decided) any {
		if d.name == "summary" {
			return long
		}
		return nil
	}), readingBox(t))
	e := x.ask(api.TaskRequest{})
	if raw := string(e.Outputs["task"]); !strings.Contains(raw, "$blob") {
		t.Fatalf("the result is told with the execution: %.200s", raw)
	}
	if answer, err := x.there().Answer(t.Context(), e); err != nil || answer != strings.TrimSpace(long) {
		t.Errorf("%d characters, %v", len(answer), err)
	}
	if answer, err := x.there().Answer(t.Context(), api.Execution{}); err != nil || answer != "" {
		t.Errorf("of nothing: %q, %v", answer, err)
	}
}

// An execution of a workflow is not a task.
func TestRunTask_NoTask(t *testing.T) {
	t.Parallel()
	c := connectTo(t, sqlitetest.Dir(t))
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	c.applyText(t, waitingFlow)
	e, err := c.Execute(t.Context(), "kid", api.ExecuteRequest{}, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.RunTask(t.Context(), Task{Resume: e.ExecutionID}); fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), "tandem run --resume "+e.ExecutionID) {
		t.Errorf("%v", err)
	}
}
