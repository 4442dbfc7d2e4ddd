package tree

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"tandem/agent"
	"tandem/api"
	"tandem/console/table"
	"tandem/engine"
)

// TaskShow shows a task: what it does as any execution's steps, and its answer as a text, while it is written. Where the output is
// no terminal the steps go elsewhere, so that the output has the answer and nothing else. It belongs to the goroutine that
// follows the task, besides Stop.
type TaskShow struct {
	Follower
	// out is where the answer goes, screen where everything else does.
	out, screen io.Writer
	// whole says that frames are printed as they are, and the answer is among them.
	whole bool
	// clean says that out is a terminal, which must not be given whatever a model writes.
	clean bool
	// length is how much the model has written so far in the attempt, and said what is on the output of that: it begins where
	// the answer does, which has no blanks at its ends.
	attempt int
	length  int
	said    string
	// begun says that something of the answer is on the output, and last is its last byte.
	begun bool
	last  byte
	// without are the tool servers that the task does without, by why.
	without leftOut
}

// leftOut are tool servers whose tools the planner was not offered.
type leftOut struct {
	Inactive     []string `json:"inactive_servers"`
	Unregistered []string `json:"unregistered_servers"`
	Unreachable  []string `json:"unreachable_servers"`
}

// lines tell what to do about it.
func (l leftOut) lines() []string {
	var list []string
	for _, id := range l.Inactive {
		list = append(list, table.OneLine(fmt.Sprintf("without the tools of %q, which you have not activated; do so with: tandem mcp servers activate %s", id, id)))
	}
	for _, id := range l.Unregistered {
		list = append(list, table.OneLine(fmt.Sprintf("without the tools of %q, which is not registered here or switched off; an administrator registers it with: tandem mcp servers set FILE", id)))
	}
	for _, id := range l.Unreachable {
		list = append(list, table.OneLine(fmt.Sprintf("without the tools of %q, which did not answer; see what is wrong with: tandem mcp servers tools %s", id, id)))
	}
	return list
}

// NewTaskShow shows a task on an output. Where that is not a terminal, and not to be JSON, steps go to the output for errors.
func NewTaskShow(out, errors io.Writer, asJSON bool) *TaskShow {
	s := &TaskShow{out: out, screen: out, whole: asJSON}
	if t, _ := terminal(s.out); t != nil {
		s.clean = true
	} else if !asJSON {
		s.screen = errors
	}
	s.Follower = NewFollower(s.screen, asJSON)
	return s
}

// Steps is what shows the steps; it has to let go of the screen for a question.
func (s *TaskShow) Steps() Follower { return s.Follower }

// Screen is where everything but the answer goes.
func (s *TaskShow) Screen() io.Writer { return s.screen }

// Without tells, in lines, which tool servers the task does without, and what to do about it.
func (s *TaskShow) Without() []string { return s.without.lines() }

// Frame implements [Follower].
func (s *TaskShow) Frame(e api.Event) error {
	if s.whole {
		return s.Follower.Frame(e)
	}
	var u api.ExecutionUpdate
	if len(e.Data) > 0 {
		if err := json.Unmarshal(e.Data, &u); err != nil {
			return fmt.Errorf("read event %q: %w", e.EventType, err)
		}
	}
	if p := u.PartialOutput; p != nil && isSummary(p.ActivationID) {
		return s.hear(p)
	}
	if n := u.NodeExecution; n != nil && n.Status == string(engine.NodeDone) && strings.HasPrefix(n.NodeID, agent.KindPlan+"_") {
		var plan leftOut
		if raw := n.OutputData["result"]; len(raw) > 0 && json.Unmarshal(raw, &plan) == nil { // somebody may have put anything in its place
			s.without = plan
		}
	}
	if n := u.NodeExecution; n != nil && isSummary(n.ActivationID) && n.Status == string(engine.NodeDone) {
		var done struct {
			Answer string `json:"answer"`
		}
		if raw := n.OutputData["result"]; len(raw) > 0 && json.Unmarshal(raw, &done) == nil { // else it is too large to be shown here
			if err := s.rest(done.Answer); err != nil {
				return err
			}
		}
		n.OutputData = nil // it is shown already
		var err error
		if e.Data, err = json.Marshal(u); err != nil {
			return fmt.Errorf("pass event %q on: %w", e.EventType, err)
		}
	}
	return s.Follower.Frame(e)
}

// isSummary says that an activation is the step that writes the answer.
func isSummary(activation string) bool {
	return activation[strings.LastIndexByte(activation, '/')+1:] == agent.KindSummary
}

// hear takes a piece of the answer in.
func (s *TaskShow) hear(p *api.PartialOutput) error {
	if p.Attempt != s.attempt || p.Offset == 0 && !p.Snapshot { // the model begins again
		if err := s.anew(); err != nil {
			return err
		}
		s.attempt, s.length = p.Attempt, 0
	}
	piece := p.Text
	switch {
	case p.Snapshot && p.Offset == 0 && len(p.Text) >= s.length:
		piece = p.Text[s.length:]
	case int(p.Offset) != s.length:
		return nil // something was left out; the end tells it all
	}
	s.length += len(piece)
	if s.said == "" {
		piece = strings.TrimLeftFunc(piece, unicode.IsSpace)
	}
	return s.say(piece)
}

// rest writes what is left of an answer. If another one was written, that is left and this one comes below.
func (s *TaskShow) rest(answer string) error {
	if answer == "" || answer == strings.TrimRightFunc(s.said, unicode.IsSpace) {
		return nil
	}
	if !strings.HasPrefix(answer, s.said) {
		if err := s.anew(); err != nil {
			return err
		}
	}
	return s.say(answer[len(s.said):])
}

// anew begins the answer again, below what was written of it.
func (s *TaskShow) anew() error {
	if s.said == "" {
		return nil
	}
	s.said = ""
	return s.write("\n")
}

// say writes a part of the answer. What was drawn before it stays as it is.
func (s *TaskShow) say(text string) error {
	if text == "" {
		return nil
	}
	if !s.begun {
		s.begun = true
		if p, ok := s.Follower.(*treePrinter); ok {
			if err := p.settle(); err != nil {
				return err
			}
			if _, err := io.WriteString(s.screen, "\n"); err != nil {
				return fmt.Errorf("write the answer: %w", err)
			}
		}
	}
	s.said += text
	return s.write(text)
}

func (s *TaskShow) write(text string) error {
	if s.clean {
		text = strings.Map(func(r rune) rune {
			if r != '\n' && r != '\t' && (r < ' ' || r >= 0x7f && r < 0xa0) {
				return -1
			}
			return r
		}, text)
	}
	if text == "" {
		return nil
	}
	if _, err := io.WriteString(s.out, text); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	s.last = text[len(text)-1]
	return nil
}

// End tells how the task ended. It is called after Stop.
func (s *TaskShow) End(e api.Execution, answer string) error {
	if s.whole {
		return s.Result(e)
	}
	if err := s.rest(answer); err != nil {
		return err
	}
	if s.begun && s.last != '\n' {
		if err := s.write("\n"); err != nil {
			return err
		}
	}
	e.Outputs, e.Task = nil, nil // the answer is shown already
	if p, ok := s.Follower.(*treePrinter); ok && s.begun {
		v := view{colour: p.colour, now: time.Now()}
		if _, err := fmt.Fprintf(s.screen, "\n%s\n", v.paint(dim, taskFoot(e))); err != nil {
			return fmt.Errorf("write the answer: %w", err)
		}
	}
	return s.Result(e)
}

// taskFoot is how a task ended, in a line.
func taskFoot(e api.Execution) string {
	text := e.Status + " in " + table.Milliseconds(e.DurationMS)
	if u := e.TokensUsed; u != nil && u.TotalTokens > 0 {
		text += fmt.Sprintf(", %d tokens", u.TotalTokens)
		if u.Cost > 0 {
			text += ", cost " + table.Amount(u.Cost)
		}
	}
	return text
}
