package tree

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"tandem/api"
	"tandem/console/table"
	"tandem/engine"
	"tandem/payload"
)

// Follower shows what happens to an execution: as a tree that is drawn again and again, as lines, or as JSON.
type Follower interface {
	// Begin is called with the execution, Frame with every frame of its stream, in order.
	Begin(execution string) error
	Frame(api.Event) error
	// Notice is called with what is asked by executions that this one has started; an empty text means that nothing is asked any more.
	// It is called between frames.
	Notice(text string) error
	// Pause lets go of the output, for a question to a person; Resume takes it again. They are called between frames.
	Pause() error
	Resume()
	// Stop ends the drawing when the watching has ended or is to end. It may be called from any goroutine, and more than once. Result then
	// tells how the execution ended.
	Stop() error
	Result(api.Execution) error
}

// Draws says that a follower draws on a terminal, where a person can be asked something while it pauses.
func Draws(f Follower) bool {
	_, ok := f.(*treePrinter)
	return ok
}

// NewFollower returns the follower that suits an output: frames as JSON if that is wanted, a tree on a terminal, lines elsewhere.
func NewFollower(out io.Writer, asJSON bool) Follower {
	if asJSON {
		return &framePrinter{out: out}
	}
	if s, colour := terminal(out); s != nil {
		return NewDrawing(out, s.size, colour)
	}
	return &linePrinter{out: out}
}

// NewDrawing returns the follower that draws a tree on a terminal. Size is asked before every drawing.
func NewDrawing(out io.Writer, size func() (width, height int), colour bool) Follower {
	s := &screen{out: out, size: size}
	return &treePrinter{out: out, screen: s, colour: colour, live: newLive(s, newTree(), colour)}
}

// linePrinter writes a line for everything that happens, for logs and pipes.
type linePrinter struct {
	out   io.Writer
	turns turns
}

func (p *linePrinter) Begin(execution string) error {
	return p.print("execution %s\n", execution)
}

func (p *linePrinter) Frame(e api.Event) error {
	var u api.ExecutionUpdate
	if len(e.Data) > 0 {
		if err := json.Unmarshal(e.Data, &u); err != nil {
			return fmt.Errorf("read event %q: %w", e.EventType, err)
		}
	}
	if piece := u.PartialOutput; piece != nil && piece.Text != "" {
		return p.says(piece.ActivationID, p.turns.hear(piece))
	}
	if piece := u.PartialOutput; piece != nil && !piece.Snapshot {
		if word, text := printedBy(piece); text != "" {
			for line := range strings.Lines(text) {
				if err := p.print("  %-13s  %s: %s\n", word, piece.ActivationID, table.OneLine(strings.TrimRight(line, "\r\n"))); err != nil {
					return err
				}
			}
			return nil
		}
	}
	switch {
	case e.EventType == "execution_paused" || e.EventType == "execution_resumed":
		return p.print("  %-13s  %s\n", u.ExecutionStatus, u.Reason)
	case e.EventType == "node_started" || e.EventType == "node_output_update" || u.NodeExecution == nil:
		return nil
	}
	n := u.NodeExecution
	label, said := p.turns.takeStep(n)
	if err := p.says(n.ActivationID, p.turns.endSpeech(n.ActivationID, said)); err != nil {
		return err
	}
	if quiet(n) && n.Status == string(engine.NodeDone) {
		return nil
	}
	line := fmt.Sprintf("  %-13s  %s", n.Status, n.ActivationID)
	if label != "" && !(quiet(n) && u.UserInputRequest != nil) { // the question says it better
		line += " (" + table.OneLine(label) + ")"
	}
	if n.Error != nil {
		line += fmt.Sprintf(": %s [%s]", table.OneLine(n.Error.ErrorMessage), n.Error.ErrorCode)
	}
	if n.NextAt != 0 && n.Status == string(engine.NodeRetrying) {
		line += " again at " + time.UnixMilli(n.NextAt).UTC().Format(time.RFC3339)
	}
	if q := u.UserInputRequest; q != nil {
		line += fmt.Sprintf(": %s (%s)", table.OneLine(q.Title), q.Purpose)
	}
	return p.print("%s\n", line)
}

func (p *linePrinter) Notice(text string) error {
	if text == "" {
		return nil
	}
	return p.print("  %-13s  %s\n", "waits", text)
}

// says prints what a model has written, line by line as it comes.
func (p *linePrinter) says(activation string, lines []string) error {
	for _, l := range lines {
		if err := p.print("  %-13s  %s: %s\n", "says", activation, table.OneLine(l)); err != nil {
			return err
		}
	}
	return nil
}

func (p *linePrinter) Pause() error { return nil }

func (p *linePrinter) Resume() {}

func (p *linePrinter) Stop() error { return nil }

func (p *linePrinter) Result(e api.Execution) error {
	if err := p.print("%s in %s\n", e.Status, table.Milliseconds(e.DurationMS)); err != nil {
		return err
	}
	if e.Error != nil {
		if err := p.print("%s [%s]\n", table.OneLine(e.Error.ErrorMessage), e.Error.ErrorCode); err != nil {
			return err
		}
	}
	if answer := answerOf(e); answer != nil {
		return p.print("%s\n", strings.Join(answer, "\n"))
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

func (p *framePrinter) Begin(string) error { return nil }

func (p *framePrinter) Frame(e api.Event) error { return p.line(e) }

func (p *framePrinter) Notice(string) error { return nil } // a reader of frames reads those of the other execution, too

func (p *framePrinter) Pause() error { return nil }

func (p *framePrinter) Resume() {}

func (p *framePrinter) Stop() error { return nil }

func (p *framePrinter) Result(e api.Execution) error {
	return p.line(struct {
		ExecutionID string                     `json:"execution_id"`
		Status      string                     `json:"status"`
		DurationMS  int64                      `json:"duration_ms"`
		Error       *api.ExecutionError        `json:"error,omitempty"`
		Outputs     map[string]json.RawMessage `json:"outputs"`
	}{e.ExecutionID, e.Status, e.DurationMS, e.Error, e.Outputs})
}

func (p *framePrinter) line(v any) error {
	raw, err := payload.Marshal(v)
	if err == nil {
		_, err = p.out.Write(append(raw, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write what happens: %w", err)
	}
	return nil
}

// treePrinter draws the tree, and then what came out.
type treePrinter struct {
	out    io.Writer
	screen *screen
	colour bool
	// mu is between who draws and who ends the drawing; live is the present drawing, over says that there is none any more.
	mu   sync.Mutex
	live *live
	over bool
	err  error
}

func (p *treePrinter) Begin(execution string) error {
	v := view{colour: p.colour}
	if _, err := fmt.Fprintln(p.out, v.paint(dim, "execution "+execution)); err != nil {
		return fmt.Errorf("write what happens: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.live.start()
	return nil
}

func (p *treePrinter) Frame(e api.Event) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.live.frame(e)
}

func (p *treePrinter) Notice(text string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.live.notice(text)
	return nil
}

func (p *treePrinter) Pause() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		p.live.hold(true)
		p.end()
	}
	return p.err
}

// resume draws the same tree again, below what was said meanwhile.
func (p *treePrinter) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return
	}
	p.live = newLive(p.screen, p.live.tree, p.colour)
	p.live.hold(false)
	p.live.start()
}

// settle ends the drawing for something that is shown below, such as an answer while it is written.
func (p *treePrinter) settle() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		p.over = true
		p.live.settle()
		p.end()
	}
	return p.err
}

func (p *treePrinter) Stop() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		p.over = true
		p.end()
	}
	return p.err
}

// end ends the present drawing, which may be ended twice; mu is held.
func (p *treePrinter) end() {
	if err := p.live.endDrawing(); err != nil && p.err == nil {
		p.err = fmt.Errorf("write what happens: %w", err)
	}
}

func (p *treePrinter) Result(e api.Execution) error {
	v := view{colour: p.colour}
	if answer := answerOf(e); answer != nil {
		if _, err := fmt.Fprintf(p.out, "\n%s\n", strings.Join(answer, "\n")); err != nil {
			return fmt.Errorf("write the result: %w", err)
		}
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(e.Outputs)) {
		text, err := readable(e.Outputs[id], v)
		if err != nil {
			return fmt.Errorf("read the output of %q: %w", id, err)
		}
		if _, err := fmt.Fprintf(p.out, "\n%s\n%s\n", v.paint(cyan, id), text); err != nil {
			return fmt.Errorf("write the result: %w", err)
		}
	}
	return nil
}

// readable is an output as a person reads it. Of a turn with a model that is the answer, and what it took.
func readable(raw json.RawMessage, v view) (string, error) {
	var turn struct {
		Content  json.RawMessage `json:"content"`
		Response *string         `json:"response"`
		Usage    *struct {
			Total int64 `json:"total_tokens"`
		} `json:"token_usage"`
		Metadata struct {
			Model string  `json:"model"`
			Cost  float64 `json:"cost"`
		} `json:"metadata"`
	}
	shown, foot := raw, ""
	if json.Unmarshal(raw, &turn) == nil && turn.Response != nil && turn.Usage != nil { // any other output is shown as it is
		foot = fmt.Sprintf("%s, %d tokens", table.OneLine(turn.Metadata.Model), turn.Usage.Total)
		if turn.Metadata.Cost > 0 {
			foot += ", cost " + table.Amount(turn.Metadata.Cost)
		}
		foot = "\n" + v.paint(dim, foot)
		if shown = turn.Content; len(shown) > 0 && shown[0] == '"' {
			var lines []string
			for l := range strings.SplitSeq(*turn.Response, "\n") {
				lines = append(lines, table.OneLine(l))
			}
			return strings.Join(lines, "\n") + foot, nil
		}
	}
	return payload.Indented(shown) + foot, nil
}

// printedBy is what the code or the process of a node has printed, or what it waits for, with a word for that.
func printedBy(piece *api.PartialOutput) (word, text string) {
	var data struct {
		Stdout string `json:"stdout"`
		Stderr string `json:"stderr"`
		Waits  string `json:"waits_for"`
	}
	if len(piece.Data) == 0 || json.Unmarshal(piece.Data, &data) != nil { // anything else that nodes hand out while they run
		return "", ""
	}
	if data.Waits != "" {
		return "waits", data.Waits
	}
	return "prints", data.Stdout + data.Stderr
}
