package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"tandem/api"
	"tandem/engine"
)

// follower shows what happens to an execution: as a tree that is drawn again and again, as lines, or as JSON.
type follower interface {
	// begin is told which execution it is; frame every frame of its stream, in order.
	begin(execution string) error
	frame(api.Event) error
	// stop ends the drawing when the watching has ended or is to end. It may be called from anywhere, and twice. Result then
	// tells how the execution ended.
	stop() error
	result(api.Execution) error
}

// newFollower chooses by what the output is.
func newFollower(out io.Writer, asJSON bool) follower {
	if asJSON {
		return &framePrinter{out: out}
	}
	if s, colour := terminal(out); s != nil {
		return &treePrinter{out: out, screen: s, colour: colour, live: newLive(s, colour)}
	}
	return &linePrinter{out: out}
}

// linePrinter writes a line for everything that happens, for logs and pipes.
type linePrinter struct{ out io.Writer }

func (p *linePrinter) begin(execution string) error {
	return p.print("execution %s\n", execution)
}

func (p *linePrinter) frame(e api.Event) error {
	var u api.ExecutionUpdate
	if len(e.Data) > 0 {
		if err := json.Unmarshal(e.Data, &u); err != nil {
			return fmt.Errorf("read event %q: %w", e.EventType, err)
		}
	}
	switch {
	case e.EventType == "execution_paused" || e.EventType == "execution_resumed":
		return p.print("  %-13s  %s\n", u.ExecutionStatus, u.Reason)
	case e.EventType == "node_started" || e.EventType == "node_output_update" || u.NodeExecution == nil:
		return nil
	}
	n := u.NodeExecution
	line := fmt.Sprintf("  %-13s  %s", n.Status, n.ActivationID)
	if n.Error != nil {
		line += fmt.Sprintf(": %s [%s]", oneLine(n.Error.ErrorMessage), n.Error.ErrorCode)
	}
	if n.NextAt != 0 && n.Status == string(engine.NodeRetrying) {
		line += " again at " + time.UnixMilli(n.NextAt).UTC().Format(time.RFC3339)
	}
	if q := u.UserInputRequest; q != nil {
		line += fmt.Sprintf(": %s (%s)", oneLine(q.Title), q.Purpose)
	}
	return p.print("%s\n", line)
}

func (p *linePrinter) stop() error { return nil }

func (p *linePrinter) result(e api.Execution) error {
	if err := p.print("%s in %s\n", e.Status, lasted(e.DurationMS)); err != nil {
		return err
	}
	if e.Error != nil {
		if err := p.print("%s [%s]\n", oneLine(e.Error.ErrorMessage), e.Error.ErrorCode); err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(e.Outputs)) {
		if err := p.print("%s: %s\n", id, e.Outputs[id]); err != nil {
			return err
		}
	}
	return nil
}

func (p *linePrinter) print(format string, args ...any) error {
	if _, err := fmt.Fprintf(p.out, format, args...); err != nil {
		return fmt.Errorf("write what happens: %w", err)
	}
	return nil
}

// framePrinter writes the frames of the stream, one per line, and at the end the result.
type framePrinter struct{ out io.Writer }

func (p *framePrinter) begin(string) error { return nil }

func (p *framePrinter) frame(e api.Event) error { return p.line(e) }

func (p *framePrinter) stop() error { return nil }

func (p *framePrinter) result(e api.Execution) error {
	return p.line(struct {
		ExecutionID string                     `json:"execution_id"`
		Status      string                     `json:"status"`
		DurationMS  int64                      `json:"duration_ms"`
		Error       *api.ExecutionError        `json:"error,omitempty"`
		Outputs     map[string]json.RawMessage `json:"outputs"`
	}{e.ExecutionID, e.Status, e.DurationMS, e.Error, e.Outputs})
}

func (p *framePrinter) line(v any) error {
	enc := json.NewEncoder(p.out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write what happens: %w", err)
	}
	return nil
}

// treePrinter draws the tree, and then what came out.
type treePrinter struct {
	out    io.Writer
	screen *screen
	colour bool
	live   *live
	once   sync.Once
	err    error
}

func (p *treePrinter) begin(execution string) error {
	v := view{colour: p.colour}
	if _, err := fmt.Fprintln(p.out, v.paint(dim, "execution "+execution)); err != nil {
		return fmt.Errorf("write what happens: %w", err)
	}
	p.live.start()
	return nil
}

func (p *treePrinter) frame(e api.Event) error { return p.live.frame(e) }

func (p *treePrinter) stop() error {
	p.once.Do(func() {
		if err := p.live.end(); err != nil {
			p.err = fmt.Errorf("write what happens: %w", err)
		}
	})
	return p.err
}

func (p *treePrinter) result(e api.Execution) error {
	v := view{colour: p.colour}
	for _, id := range slices.Sorted(maps.Keys(e.Outputs)) {
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, e.Outputs[id], "", "  "); err != nil {
			return fmt.Errorf("read the output of %q: %w", id, err)
		}
		if _, err := fmt.Fprintf(p.out, "\n%s\n%s\n", v.paint(cyan, id), pretty.String()); err != nil {
			return fmt.Errorf("write the result: %w", err)
		}
	}
	return nil
}
