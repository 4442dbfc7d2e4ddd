package app

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"tandem/agent"
	"tandem/api"
	"tandem/client"
	"tandem/fault"
	"tandem/text"
)

// Task is a goal for an agent, followed to its end: in this process, or at a server.
type Task struct {
	Agent   string
	Request api.TaskRequest
	// Resume is the id of a task to go on with, instead of starting one. At a server it is followed again.
	Resume string
	// Server and Dir are what the connection was made to: the address of a server, or else the data directory. Messages that say how
	// to go on name them.
	Server, Dir string
	// Again is the field of [Run] with this name.
	Again string
	// Started is called with the task when it is on disk.
	Started func(api.TaskStarted)
	// Held is called when a start has to wait, with the time and the reason. May be nil.
	Held func(wait time.Duration, why error)
	// Each and Ask are the fields of [Run] with these names.
	Each func(api.Event) error
	Ask  func(ctx context.Context, q api.Interaction, answer func(json.RawMessage) error) error
}

const (
	// startTries is how often a start is tried when the server asks to come back later.
	startTries = 8
	// startPause is the time between two tries when the server does not name one.
	startPause = 2 * time.Second
	// maxTaskResult is how much of a large result is read for the answer in it.
	maxTaskResult = 64 << 20
)

// RunTask follows a task to its end. When ctx ends first, the task is parked in this process, and goes on at a server; the error is
// the context's. [ErrAsked] means that only a person can let it go on who is not at hand.
func (c *Connection) RunTask(ctx context.Context, t Task) (api.Execution, error) {
	r := Run{Dir: t.Dir, server: t.Server, Resume: t.Resume, Each: t.Each, Ask: t.Ask}
	if c.Local() {
		c.instance.desk.Start() // what the task asks runs out when it is time
	}
	if t.Resume != "" {
		return c.resumeTask(ctx, t, r)
	}
	started, err := c.startTask(ctx, t)
	if err != nil {
		return api.Execution{}, err
	}
	if t.Started != nil {
		t.Started(started)
	}
	if c.Local() {
		return c.pursue(ctx, r, started.ExecutionID, "", false)
	}
	return c.pursueThere(ctx, r, started.ExecutionID, "", false)
}

// startTask starts a task. When the user has started too many at once, it waits as long as the server asks.
func (c *Connection) startTask(ctx context.Context, t Task) (api.TaskStarted, error) {
	key := rand.Text() // so that a broken connection does not start it twice
	for try := 1; ; try++ {
		started, err := c.StartTask(c.starting(ctx), t.Agent, t.Request, key)
		if fault.CodeOf(err) != fault.RateLimited || try == startTries {
			return started, err
		}
		wait := startPause
		if told, ok := errors.AsType[*client.Error](err); ok && told.RetryAfter > 0 {
			wait = told.RetryAfter
		}
		if t.Held != nil {
			t.Held(wait, err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return api.TaskStarted{}, context.Cause(ctx)
		}
	}
}

// resumeTask goes on with a task.
func (c *Connection) resumeTask(ctx context.Context, t Task, r Run) (api.Execution, error) {
	e, err := c.Execution(ctx, t.Resume)
	if err != nil {
		return api.Execution{}, err
	}
	id, ok := agent.IDOf(e.WorkflowID)
	if !ok {
		return api.Execution{}, fault.Newf(fault.Invalid, "execution %q is not a task of an agent; go on with it by: tandem run --resume %s", t.Resume, t.Resume)
	}
	if t.Started != nil {
		t.Started(api.TaskStarted{TaskID: e.ExecutionID, ExecutionID: e.ExecutionID, AgentID: id, Status: e.Status})
	}
	r.past = e.Seq // what was done is shown, too: a person who comes back has forgotten it
	return c.run(ctx, r, nil)
}

// pursueThere follows an execution at a server to its end, and puts what it asks to the person at hand. What is for others is waited for.
func (c *Connection) pursueThere(ctx context.Context, r Run, id, after string, waits bool) (api.Execution, error) {
	for {
		if waits {
			if err := c.ask(ctx, r, id); err != nil {
				return api.Execution{}, err
			}
		}
		err := c.Watch(ctx, id, after, client.VocabularyExecution, func(e api.Event) error {
			if e.Seq > 0 {
				after = fmt.Sprintf("%d.%d", e.Seq, e.Part)
			}
			if r.Each != nil {
				if err := r.Each(e); err != nil {
					return err
				}
			}
			return r.asked(e)
		})
		if err == nil {
			return c.Execution(ctx, id)
		}
		if waits = errors.Is(err, ErrAsked); !waits {
			return api.Execution{}, err
		}
	}
}

// Answer returns the final answer of a task; empty if it has none.
func (c *Connection) Answer(ctx context.Context, e api.Execution) (string, error) {
	raw := e.Outputs[agent.TaskNode]
	var large struct {
		Hash string `json:"$blob"`
	}
	if len(raw) > 0 && json.Unmarshal(raw, &large) == nil && large.Hash != "" {
		value, err := c.Value(ctx, e.ExecutionID, large.Hash)
		if err != nil {
			return "", err
		}
		raw, err = io.ReadAll(io.LimitReader(value, maxTaskResult))
		if err = errors.Join(err, value.Close()); err != nil {
			return "", fmt.Errorf("read the answer of task %q: %w", e.ExecutionID, err)
		}
	}
	var result struct {
		Answer string `json:"answer"`
	}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &result); err != nil {
			return "", fault.Newf(fault.RemoteError, "the result of task %q cannot be read: %w", e.ExecutionID, err)
		}
	}
	return result.Answer, nil
}

// SetAgent makes or replaces the agent in a file, YAML or JSON. Without an id it is named after the file.
func (c *Connection) SetAgent(ctx context.Context, file string, stdin io.Reader) (api.Agent, error) {
	id, document, err := readNamed(file, stdin, text.Of("an agent"), "{id: clerk, llm_profile: main}")
	if err != nil {
		return api.Agent{}, err
	}
	for _, told := range []string{"revision", "created_by", "created_time", "updated_time"} { // a file may be what "agent show" printed
		delete(document, told)
	}
	raw, err := json.Marshal(document)
	if err != nil {
		return api.Agent{}, fmt.Errorf("write the agent %q: %w", id, err)
	}
	return c.PutAgentDocument(ctx, id, raw)
}
