package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"tandem/api"
	"tandem/app"
	"tandem/console/table"
	"tandem/console/tree"
	"tandem/engine"
)

// maxGoal is how much of the standard input is read; the server takes far less.
const maxGoal = 1 << 20

// ReadGoal is the goal on the command line, or on the standard input.
func ReadGoal(tty *Terminal, text string) (string, error) {
	if text != "-" {
		return text, nil
	}
	raw, err := io.ReadAll(io.LimitReader(tty.In, maxGoal))
	if err != nil {
		return "", Problem(fmt.Errorf("read the goal: %w", err))
	}
	if text = strings.TrimSpace(string(raw)); text == "" {
		return "", Problem(errors.New("the standard input has no goal"))
	}
	return text, nil
}

// RunTask follows a task to its end and shows it. The person at the terminal is asked what the task asks, if that is wanted.
func RunTask(ctx context.Context, tty *Terminal, c *app.Connection, t app.Task, asJSON, ask bool) error {
	show := tree.NewTaskShow(tty.Out, tty.Err, asJSON)
	if a := newAsker(tty.In, show.Screen(), show.Steps()); a != nil && ask {
		t.Ask = a.ask
	}
	_, err := followTask(ctx, tty, c, t, show)
	return err
}

// followTask follows a task to its end and shows it. The conversation is the one that a new task belongs to.
func followTask(ctx context.Context, tty *Terminal, c *app.Connection, t app.Task, show *tree.TaskShow) (conversation string, err error) {
	id := ""
	var beginErr error
	stopped := context.AfterFunc(ctx, func() { _ = show.Stop() }) // its error is asked for below
	defer stopped()
	t.Each = show.Frame
	t.Started = func(s api.TaskStarted) {
		id, conversation, beginErr = s.ExecutionID, s.ConversationID, show.Begin(s.ExecutionID)
	}
	t.Held = func(wait time.Duration, why error) {
		fmt.Fprintf(tty.Err, "%v; it is tried again in %s\n", why, table.Duration(wait))
	}
	e, err := c.RunTask(ctx, t)
	if serr := errors.Join(beginErr, show.Stop()); err == nil && serr != nil {
		err = serr
	}
	goOn := "tandem agent run --resume " + id + " --data " + t.Dir + t.Again
	if t.Server != "" {
		goOn = "tandem agent run --resume " + id + " --server " + t.Server
	}
	without := func() {
		for _, line := range show.Without() {
			fmt.Fprintln(tty.Err, line)
		}
	}
	switch {
	case errors.Is(err, app.ErrAsked):
		without()
		fmt.Fprintf(tty.Err, "%v\nthen go on with: %s\n", err, goOn)
		return conversation, ErrParked
	case err != nil && ctx.Err() != nil && id != "" && t.Server != "":
		fmt.Fprintf(tty.Err, "the task goes on at the server; follow it with: %s\n", goOn)
		return conversation, ErrParked
	case err != nil && ctx.Err() != nil && id != "":
		fmt.Fprintf(tty.Err, "parked; go on with: %s\n", goOn)
		return conversation, ErrParked
	case err != nil:
		return conversation, err
	}
	answer, err := c.Answer(ctx, e)
	if err == nil {
		err = show.End(e, answer)
	}
	without()
	if err != nil {
		return conversation, err
	}
	if engine.Status(e.Status) != engine.StatusSuccess {
		return conversation, ErrReported
	}
	return conversation, nil
}
