// Package tree shows an execution while it runs: as a tree that a terminal draws again and again, as lines for logs and pipes, or as
// JSON. It is made from the frames of a stream and asks nothing of the API itself. Package console and the command import it.
package tree

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"tandem/api"
	"tandem/client"
	"tandem/console/table"
	"tandem/engine"
)

// tree is an execution as it is drawn: one line per activation, those of a scope below the node that runs it. It is told
// by the frames of a stream and belongs to one goroutine.
type tree struct {
	// status and reason are the execution's; failure is why it failed.
	status  string
	reason  string
	failure *api.ExecutionError
	// question is what it waits for, while it waits for a person.
	question *api.UserInputRequest
	// below is what an execution asks that this one has started.
	below          string
	started, ended int64
	seq            uint64
	top            scope
	turns          turns
	// still says that what follows is shown below: nothing moves any more, and the foot is left out. Held says the same of a question,
	// and the foot stays.
	still, held bool
	// heard says that it was told something.
	heard bool
}

// scope is the body of a node: its activations in the order they began.
type scope struct {
	steps  []*step
	byName map[string]*step
	// counted says that it has ended and its owner knows.
	counted bool
}

// step is one activation.
type step struct {
	// label is what it is called; it is its name unless a program has made it.
	name, label    string
	status         engine.NodeStatus
	started, ended int64
	duration       int64
	retries        int
	nextAt         int64
	err            *api.NodeError
	// text is the end of what it has written so far; said what a completion has come to, once it has ended.
	text, said string
	// bodies are the scopes below it that are worth a look: those under way, and the first that failed. Newest is the
	// highest index that was seen, failed how many have ended with a failure, total how many there will be, if known.
	bodies map[int64]*scope
	newest int64
	failed int64
	total  int64
	// led says that a program leads it: what is in its bodies are the steps of its work and no iterations, and all stay in
	// sight.
	led bool
	// quiet says that it is a decision of a task, which is out of sight once it is made; speaker that it writes an answer.
	quiet, speaker bool
}

const (
	// plainBody is the index of a scope that has none.
	plainBody = -1
	// keptFailures is how many failed iterations of a loop stay in sight.
	keptFailures = 3
	// textTail is how much of a text is kept to show its last line.
	textTail = 400
)

func newTree() *tree { return &tree{status: string(engine.StatusPending)} }

// apply takes a frame in.
func (t *tree) apply(e api.Event) error {
	var u api.ExecutionUpdate
	if len(e.Data) > 0 {
		if err := json.Unmarshal(e.Data, &u); err != nil {
			return fmt.Errorf("read event %q: %w", e.EventType, err)
		}
	}
	t.heard = true
	if e.Seq != 0 && e.Seq != t.seq {
		// What a row tells belongs together, so a body is closed only when the next row comes.
		t.seq = e.Seq
		t.top.close()
	}
	if u.ExecutionStatus != "" {
		t.status = u.ExecutionStatus
	}
	switch {
	case e.EventType == "execution_started":
		t.started, t.status = e.Timestamp, cmp.Or(u.ExecutionStatus, string(engine.StatusRunning))
	case e.EventType == "execution_resumed":
		t.reason, t.question, t.failure, t.ended = "", nil, nil, 0
	case e.EventType == "execution_paused":
		t.reason = u.Reason
	case client.Final(e.EventType):
		t.ended, t.failure, t.question, t.reason = e.Timestamp, u.Error, nil, ""
	case e.EventType == "user_input_required":
		t.question = u.UserInputRequest
	}
	if p := u.PartialOutput; p != nil {
		t.write(p)
	}
	if n := u.NodeExecution; n != nil && n.ActivationID != "" {
		p := t.step(n.ActivationID)
		p.update(n, e.Timestamp)
		if label, said, title := t.turns.task(n); label != "" {
			owner := t.owner(n.ActivationID)
			owner.led, owner.label = true, cmp.Or(title, owner.label)
			if q := u.UserInputRequest; q != nil && quiet(n) && q.Title != "" {
				label = table.OneLine(q.Title) // it says what about
			}
			p.label, p.said, p.quiet, p.speaker = label, said, quiet(n), !quiet(n) && !isCall(n)
		} else if label, said := t.turns.takeStep(n); label != "" {
			t.owner(n.ActivationID).led, p.label, p.said = true, label, said
		} else if u.Iterations > 0 {
			t.owner(n.ActivationID).total = u.Iterations
		}
	}
	return nil
}

// step returns the activation with an id, which is made if it is new.
func (t *tree) step(id string) *step {
	s, parts := &t.top, strings.Split(id, "/")
	for _, part := range parts[:len(parts)-1] {
		name, index := splitIndex(part)
		owner := s.get(name)
		if owner.bodies == nil {
			owner.bodies, owner.newest = map[int64]*scope{}, plainBody
		}
		owner.newest = max(owner.newest, index)
		if owner.bodies[index] == nil {
			owner.bodies[index] = &scope{}
		}
		s = owner.bodies[index]
	}
	return s.get(parts[len(parts)-1])
}

// owner returns the activation whose body an activation is in.
func (t *tree) owner(id string) *step {
	scope := id[:max(strings.LastIndexByte(id, '/'), 0)]
	return t.step(scope[:max(strings.LastIndexByte(scope, '['), 0)])
}

// splitIndex splits "each[2]" into "each" and 2.
func splitIndex(part string) (name string, index int64) {
	open := strings.LastIndexByte(part, '[')
	if open < 0 || !strings.HasSuffix(part, "]") {
		return part, plainBody
	}
	index, err := strconv.ParseInt(part[open+1:len(part)-1], 10, 64)
	if err != nil {
		return part[:open], plainBody // the body never ran
	}
	return part[:open], index
}

func (s *scope) get(name string) *step {
	if found := s.byName[name]; found != nil {
		return found
	}
	if s.byName == nil {
		s.byName = map[string]*step{}
	}
	found := &step{name: name, label: name, status: engine.NodePending}
	s.byName[name] = found
	s.steps = append(s.steps, found)
	return found
}

func (p *step) update(n *api.NodeExecution, at int64) {
	if ended(p.status) {
		p.started = 0 // it is tried again
	}
	p.status = engine.NodeStatus(n.Status)
	p.retries, p.nextAt, p.err = n.RetryCount, n.NextAt, n.Error
	p.duration = n.DurationMS
	if p.started == 0 { // of several runs the first counts: waiting in between takes time, too
		p.started = cmp.Or(n.StartTime, at)
	}
	p.ended = 0
	if ended(p.status) {
		p.ended, p.text = cmp.Or(n.EndTime, at), ""
	}
}

func (t *tree) write(u *api.PartialOutput) {
	p := t.step(u.ActivationID)
	if u.Snapshot || u.Offset == 0 {
		p.text = ""
	}
	p.text += u.Text
	if _, text := printedBy(u); text != "" {
		p.text += text
	}
	if len(p.text) > textTail {
		p.text = strings.ToValidUTF8(p.text[len(p.text)-textTail:], "")
	}
}

func ended(s engine.NodeStatus) bool {
	switch s {
	case engine.NodeDone, engine.NodeFailure, engine.NodeSkip, engine.NodeCanceled:
		return true
	}
	return false
}

// close drops the iterations that have ended, so that a long loop stays small. Some that failed are kept.
func (s *scope) close() {
	for _, p := range s.steps {
		for index, body := range p.bodies {
			body.close()
			switch {
			case index == plainBody, p.led:
			case !body.over():
				if body.counted { // it was failed and is tried again
					body.counted = false
					p.failed--
				}
			case body.counted:
			case body.bad() && p.failed < keptFailures:
				body.counted = true
				p.failed++
			default:
				if body.bad() {
					p.failed++
				}
				delete(p.bodies, index)
			}
		}
	}
}

// over says that nothing in it is under way; bad that something in it failed.
func (s *scope) over() bool {
	return !slices.ContainsFunc(s.steps, func(p *step) bool { return !ended(p.status) })
}

func (s *scope) bad() bool {
	return slices.ContainsFunc(s.steps, func(p *step) bool { return p.status == engine.NodeFailure })
}

// under is how many iterations have not ended.
func (p *step) under() int64 {
	n := int64(0)
	for index, body := range p.bodies {
		if index != plainBody && !body.over() {
			n++
		}
	}
	return n
}

// view is how a tree is drawn.
type view struct {
	width, height int
	colour        bool
	now           time.Time
	// beat moves the spinner, unless it stands still.
	beat  int
	still bool
}

// draw makes the lines of a tree, none wider than the screen. With a height they are no more than fit: finished lines
// from the top make room first.
func (t *tree) draw(v view) []string {
	var lines []line
	v.still = t.still || t.held
	t.top.draw(&lines, 0, v)
	asks := t.below != "" && t.ended == 0 && !t.still
	if asks {
		v.height = max(v.height-1, 0)
	}
	lines = v.fit(lines)
	out := make([]string, 0, len(lines)+1)
	for _, l := range lines {
		out = append(out, v.cut(l.text))
	}
	if t.still || (t.held || !t.heard) && len(out) == 0 { // one that is resumed, perhaps with a question, has told nothing yet
		return out
	}
	if asks {
		out = append(out, v.cut(v.paint(yellow, "⏸ "+t.below)))
	}
	return append(out, v.cut(t.foot(v)))
}

// line is a line of a tree; done says that nothing more will happen in it.
type line struct {
	text string
	done bool
}

func (s *scope) draw(lines *[]line, depth int, v view) {
	for _, p := range s.steps {
		if p.quiet && p.status == engine.NodeDone {
			continue
		}
		*lines = append(*lines, line{strings.Repeat("  ", depth) + p.draw(v), ended(p.status)})
		for _, text := range p.written(v, depth+1) {
			*lines = append(*lines, line{strings.Repeat("  ", depth+1) + v.paint(dim, text), false})
		}
		for _, index := range slices.Sorted(maps.Keys(p.bodies)) {
			body := p.bodies[index]
			if index == plainBody || p.led {
				body.draw(lines, depth+1, v)
				continue
			}
			if body.over() && !body.bad() {
				continue
			}
			*lines = append(*lines, line{strings.Repeat("  ", depth+1) + v.paint(dim, fmt.Sprintf("[%d]", index)), body.over()})
			body.draw(lines, depth+2, v)
		}
	}
}

// spinner is what a running node shows, one after the other.
const spinner = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

// draw is the line of an activation.
func (p *step) draw(v view) string {
	text := p.mark(v) + " " + p.label
	if p.status == engine.NodeSkip || p.status == engine.NodeCanceled || p.quiet {
		text = p.mark(v) + " " + v.paint(dim, p.label)
	}
	text += p.iterations(v)
	if took := p.took(v.now); took != "" {
		text += "  " + v.paint(dim, took)
	}
	if p.retries > 0 {
		text += "  " + v.paint(yellow, retries(p.retries))
	}
	switch p.status {
	case engine.NodeRetrying:
		if p.nextAt != 0 {
			text += "  " + v.paint(yellow, "again in "+table.Duration(max(0, time.UnixMilli(p.nextAt).Sub(v.now))))
		}
	case engine.NodeWaitingInput:
		text += "  " + v.paint(yellow, "waits for a person")
	}
	if p.err != nil && p.status != engine.NodeDone {
		text += "  " + v.paint(red, table.OneLine(p.err.ErrorMessage)+" ["+p.err.ErrorCode+"]")
	} else if p.said != "" {
		text += "  " + v.paint(dim, table.OneLine(p.said))
	} else if p.text != "" && !p.speaks() {
		shown := strings.TrimRight(p.text, "\n")
		text += "  " + v.paint(dim, table.OneLine(shown[strings.LastIndexByte(shown, '\n')+1:]))
	}
	return text
}

// mark is the sign of how an activation stands.
func (p *step) mark(v view) string {
	mark := "·"
	switch p.status {
	case engine.NodeRunning:
		frames := []rune(spinner)
		mark = v.paint(cyan, string(frames[v.beat%len(frames)]))
		if v.still {
			mark = v.paint(cyan, "▸")
		}
	case engine.NodeDone:
		mark = v.paint(green, "✓")
	case engine.NodeFailure:
		mark = v.paint(red, "✗")
	case engine.NodeWaitingInput:
		mark = v.paint(yellow, "⏸")
	case engine.NodeSkip:
		mark = v.paint(dim, "↷")
	case engine.NodeRetrying:
		mark = v.paint(yellow, "↻")
	case engine.NodeCanceled:
		mark = v.paint(dim, "⊘")
	}
	return mark
}

// iterations is how many iterations of a loop are done and how many failed; nothing of what is not a loop.
func (p *step) iterations(v view) string {
	if p.bodies == nil || p.newest < 0 || p.led {
		return ""
	}
	done := p.newest + 1 - p.under()
	text := v.paint(dim, fmt.Sprintf("  %d done", done))
	if p.total > 0 {
		text = v.paint(dim, fmt.Sprintf("  %d/%d", done, p.total))
	}
	if p.failed > 0 {
		text += v.paint(red, fmt.Sprintf("  %d failed", p.failed))
	}
	return text
}

// speaks says that it is a completion, or writes the answer of a task.
func (p *step) speaks() bool {
	return p.speaker || p.label != p.name && stepKind(p.name) == engine.StepComplete
}

// writtenLines is how many lines of a text are in sight while it is written.
const writtenLines = 4

// written are the last lines of what a model writes, while it does.
func (p *step) written(v view, depth int) []string {
	if p.text == "" || !p.speaks() {
		return nil
	}
	var lines []string
	for l := range strings.SplitSeq(strings.TrimRight(p.text, "\n"), "\n") {
		l = table.OneLine(l)
		if width := v.width - 1 - 2*depth; width > 1 {
			l = ansi.Wrap(l, width, "")
		}
		lines = append(lines, strings.Split(l, "\n")...)
	}
	return lines[max(0, len(lines)-writtenLines):]
}

// took is how long an activation took, or has taken so far. Short ones are not worth a number while they run.
func (p *step) took(now time.Time) string {
	switch {
	case p.status == engine.NodeSkip || p.started == 0:
		return ""
	case ended(p.status):
		return table.Duration(time.Duration(max(p.duration, p.ended-p.started, 0)) * time.Millisecond)
	}
	if d := now.Sub(time.UnixMilli(p.started)); d >= time.Second {
		return table.Duration(d)
	}
	return ""
}

// foot is the line below the tree: how the execution stands.
func (t *tree) foot(v view) string {
	text := t.status
	switch engine.Status(t.status) {
	case engine.StatusSuccess:
		text = v.paint(green, text)
	case engine.StatusError, engine.StatusTimeout, engine.StatusCanceled:
		text = v.paint(red, text)
	case engine.StatusPaused, engine.StatusWaitingForHuman:
		text = v.paint(yellow, text)
	}
	if t.started != 0 {
		until := v.now
		if t.ended != 0 {
			until = time.UnixMilli(t.ended)
		}
		text += v.paint(dim, " in "+table.Duration(max(0, until.Sub(time.UnixMilli(t.started)))))
	}
	if t.failure != nil {
		text += "  " + v.paint(red, table.OneLine(t.failure.ErrorMessage)+" ["+t.failure.ErrorCode+"]")
	}
	return text
}

// fit leaves out lines that do not fit above the foot, finished ones at the top first.
func (v view) fit(lines []line) []line {
	room := v.height - 2 // the foot, and the line that the cursor stands on
	if v.height <= 0 || len(lines) <= room {
		return lines
	}
	room = max(room-1, 1) // a line says what is left out
	out, gone := 0, 0
	for out < len(lines) && lines[out].done && len(lines)-out > room {
		out++
	}
	lines = lines[out:]
	if len(lines) > room {
		gone = len(lines) - room
		lines = lines[:room]
	}
	note := []string{}
	if out > 0 {
		note = append(note, fmt.Sprintf("%d finished", out))
	}
	if gone > 0 {
		note = append(note, fmt.Sprintf("%d more below", gone))
	}
	return slices.Insert(slices.Clone(lines), 0, line{text: v.paint(dim, "… "+strings.Join(note, ", "))})
}

// cut makes a text fit the width. The last column stays free: some terminals begin a new line when it is written.
func (v view) cut(text string) string {
	if v.width <= 1 {
		return text
	}
	return ansi.Truncate(text, v.width-1, "…")
}

// The colours.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
	dim    = "2"
)

func (v view) paint(colour, text string) string {
	if !v.colour || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

func retries(n int) string {
	return table.Count(n, "retry", "retries")
}
