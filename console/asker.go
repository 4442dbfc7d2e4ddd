package console

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/term"

	"tandem/api"
	"tandem/app"
	"tandem/client"
	"tandem/console/table"
	"tandem/console/tree"
	"tandem/fault"
	"tandem/human"
	"tandem/human/form"
	"tandem/human/lineage"
	"tandem/payload"
	"tandem/text"
)

// asker puts questions to the person at the terminal. It belongs to one goroutine.
type asker struct {
	out   io.Writer
	typed *typed
	// follow is what draws meanwhile; nil: nothing does.
	follow tree.Follower
	// language is that of who sits there: zh, or English.
	language string
}

// newAsker returns nil when nobody can be asked: there must be a terminal on both sides.
func newAsker(in io.Reader, out io.Writer, f tree.Follower) *asker {
	file, ok := in.(*os.File)
	if !ok || !term.IsTerminal(file.Fd()) {
		return nil
	}
	if !tree.IsTerminal(out) || f != nil && !tree.Draws(f) {
		return nil
	}
	a := &asker{out: out, typed: newTyped(), follow: f, language: UserLanguage()}
	go a.typed.readLines(in) // it lives as long as the process: nothing can call a read of a terminal back
	return a
}

// typed are the lines that a person types. What was typed before a question was shown is not an answer to it and is forgotten.
// The reader adds to it, and the asker takes from it; mu is between them.
type typed struct {
	mu    sync.Mutex
	lines []string
	over  bool
	// ahead says that what came before a question is an answer to it all the same: nobody types, it is a script.
	ahead bool
	// news is signalled when something has changed.
	news chan struct{}
}

func newTyped() *typed { return &typed{news: make(chan struct{}, 1)} }

func (t *typed) readLines(in io.Reader) {
	for s := bufio.NewScanner(in); s.Scan(); {
		t.addLines(false, s.Text())
	}
	t.addLines(true) // Ctrl-D, or a terminal that is gone
}

func (t *typed) addLines(over bool, lines ...string) {
	t.mu.Lock()
	t.lines, t.over = append(t.lines, lines...), t.over || over
	t.mu.Unlock()
	select {
	case t.news <- struct{}{}:
	default: // it has been signalled already
	}
}

// forget drops what was typed so far.
func (t *typed) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ahead {
		return
	}
	t.lines = nil
}

// nextLine waits for a line. At the end of the input there is none, which is [app.ErrAsked].
func (t *typed) nextLine(ctx context.Context) (string, error) {
	for {
		t.mu.Lock()
		if len(t.lines) > 0 {
			line := t.lines[0]
			t.lines = t.lines[1:]
			t.mu.Unlock()
			return line, nil
		}
		over := t.over
		t.mu.Unlock()
		if over {
			return "", app.ErrAsked
		}
		select {
		case <-t.news:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// ask shows a question and hands in what the person answers. What is found wrong with it is printed, and asked for again. No answer
// is [app.ErrAsked].
func (a *asker) ask(ctx context.Context, i api.Interaction, answer func(json.RawMessage) error) error {
	if a.follow != nil {
		if err := a.follow.Pause(); err != nil {
			return err
		}
		defer a.follow.Resume()
	}
	q, err := newQuestion(i, a.language)
	if err == nil {
		err = a.print("\n" + strings.Join(q.tellQuestion(time.Now(), shownLines), "\n") + "\n")
	}
	if err != nil {
		return err
	}
	if q.Purpose == human.PurposeParam && q.task.Tool != "" {
		if err := a.print("Leave empty what you do not know; if you leave everything empty, the task ends here.\n"); err != nil {
			return err
		}
	}
	a.typed.forget()
	err = a.fill(ctx, q, answer)
	switch {
	case errors.Is(err, app.ErrFaster):
		return errors.Join(err, a.print("\nIt has ended meanwhile.\n"))
	case fault.CodeOf(err) == fault.Conflict:
		return errors.Join(err, a.print("It was not taken: "+table.OneLine(err.Error())+"\n"))
	}
	return err
}

// fill asks for all entries, hands them in, and asks again for those that were found wrong. What a step knows already is not asked for.
func (a *asker) fill(ctx context.Context, q *question, answer func(json.RawMessage) error) error {
	given := form.Values{}
	for entries := q.blamed(nil); ; {
		for _, n := range entries {
			delete(given, n)
			if !q.form.Wanted(n, given) || q.form.Entries[n].Known {
				continue
			}
			value, err := a.entry(ctx, &q.form.Entries[n])
			if err != nil {
				return err
			}
			given[n] = value
		}
		whole := q.form.Answer(given)
		err := answer(whole)
		told, ok := errors.AsType[*client.Error](err)
		if !ok || fault.CodeOf(err) != fault.InvalidInput {
			return err
		}
		if err := a.print(a.say(refused) + "\n" + q.wrong(told, whole, a.language)); err != nil {
			return err
		}
		entries = q.blamed(told.Errors)
	}
}

// wrong are lines that say what is wrong with an answer, each with its field. The server says it in English; the form knows it in the
// reader's language.
func (q *question) wrong(told *client.Error, answer json.RawMessage, language string) string {
	fields := told.Errors
	if _, err := q.asked.Read(answer, true); text.Language(language) != text.English {
		if problems, ok := errors.AsType[form.Problems](err); ok {
			fields = nil
			for _, p := range problems {
				fields = append(fields, api.FaultField{Path: p.Path, Message: p.Text.In(language)})
			}
		}
	}
	text := ""
	for _, p := range fields {
		_, at, _ := strings.Cut(p.Path, ".")
		text += "  " + table.OneLine(strings.TrimPrefix(at+": "+p.Message, ": ")) + "\n"
	}
	if len(fields) == 0 {
		text = "  " + table.OneLine(told.Detail) + "\n"
	}
	return text
}

// What a terminal says around the entries of a form. They are read-only.
var (
	refused    = text.Of("It was not taken:")
	optional   = text.Of("(optional) ")
	whichOne   = text.Of("Which one? ")
	whichOnes  = text.Of("Which ones, separated by commas? ")
	whichOf    = text.Of("Which one? [y: %s, n: %s] ")
	unlessElse = text.Of(" [%s]")
)

func (a *asker) say(t form.Text) string { return t.In(a.language) }

// entry asks for one value until it can be one. Nil: it was left empty, which only what is not required may be. Enter takes what is
// proposed.
func (a *asker) entry(ctx context.Context, e *form.Entry) (json.RawMessage, error) {
	prompt, above := a.prompt(e)
	if err := a.print(above); err != nil {
		return nil, err
	}
	for {
		line, err := a.line(ctx, prompt)
		if err != nil {
			return nil, err
		}
		if line == "" {
			if !e.Required || e.Default != nil {
				return e.Default, nil
			}
			continue
		}
		value, err := readTyped(e, a.language, line)
		if err == nil {
			return value, nil
		}
		if err := a.print("  " + table.OneLine(err.Error()) + "\n"); err != nil {
			return nil, err
		}
	}
}

// prompt is what is asked on one line, and what stands above it: the choices, or what may be filled in.
func (a *asker) prompt(e *form.Entry) (prompt, above string) {
	prompt = table.OneLine(e.Prompt)
	proposed := ""
	if e.Default != nil {
		proposed = a.say(unlessElse.With(table.OneLine(e.Text(e.Default))))
	}
	switch {
	case e.Kind == form.YesNo && e.Decides:
		prompt += proposed + " [y/n] "
	case e.Kind == form.YesNo || e.Kind == form.Tick:
		prompt += proposed + " [y/n]: "
	case e.Kind == form.One || e.Kind == form.Some:
		if !e.Decides { // else the question itself says what is chosen
			above = prompt + ":\n"
		}
		if e.Kind == form.Some && !e.Decides {
			above += limitLine(e)
		}
		above += listed(e)
		prompt = a.say(whichOne)
		if yes, no, ok := e.EitherOr(); ok {
			prompt = a.say(whichOf.With(table.OneLine(yes.Value), table.OneLine(no.Value)))
		}
		if e.Kind == form.Some {
			prompt = a.say(whichOnes)
		}
		if proposed != "" {
			prompt = strings.TrimSpace(prompt) + proposed + " "
		}
	default:
		if e.Group != form.GroupScores && e.Kind != form.Date && e.Kind != form.File && e.Kind != form.JSON { // these say it in the prompt
			above = limitLine(e)
		}
		prompt += proposed + ": "
	}
	if !e.Required {
		prompt = a.say(optional) + prompt
	}
	return prompt, above
}

func limitLine(e *form.Entry) string {
	if e.Limits == "" {
		return ""
	}
	return "  " + table.OneLine(e.Limits) + "\n"
}

// listed are the choices of an entry, a line each.
func listed(e *form.Entry) string {
	text := ""
	for n, c := range e.Choices {
		number := "  "
		if numbered(e) {
			number = fmt.Sprintf("%4d  ", n+1)
		}
		text += number + table.OneLine(c.Value)
		if c.Label != "" && !strings.EqualFold(c.Label, c.Value) {
			text += "  " + table.OneLine(c.Label)
		}
		text += "\n"
	}
	return text
}

// shownLines is how much of what a question is about is shown where it is asked.
const shownLines = 40

// tellQuestion tells what a question is about, in lines. Of long things no more than most lines are shown; zero: all.
func (q *question) tellQuestion(now time.Time, most int) []string {
	lines := []string{q.title()}
	risk := riskLine(q.request.Risk, q.task.Reason)
	text := strings.TrimSpace(q.request.Description)
	if risk != "" { // the reason is printed with the risk, so that nobody takes it for something else
		text = strings.TrimSpace(strings.TrimSuffix(text, strings.TrimSpace(q.task.Reason)))
	}
	if text != "" && table.OneLine(text) != q.title() {
		lines = append(lines, cut(sheet(text), most)...)
	}
	if text := strings.TrimSpace(q.task.Message); text != "" && text != strings.TrimSpace(q.request.Description) &&
		table.OneLine(text) != q.title() {
		lines = append(lines, cut(sheet(text), most)...)
	}
	if tool := table.OneLine(q.task.Tool); tool != "" && !strings.Contains(q.title(), tool) {
		lines = append(lines, "tool: "+tool)
	}
	for _, line := range slices.Concat(lineage.AgainLines(q.request.Language, q.request.Again),
		lineage.ForkLines(q.request.Language, q.request.Fork)) {
		lines = append(lines, table.OneLine(line))
	}
	changes := q.toolChanges()
	for _, c := range changes {
		lines = append(lines, cut(changeLines(c), most)...)
	}
	if raw := q.request.Content; !empty(raw) && len(changes) == 0 {
		lines = append(lines, cut(indented(raw), most)...)
	}
	if raw := q.request.Arguments; !empty(raw) && q.Purpose != human.PurposeParam { // what is known is not asked for
		var args map[string]json.RawMessage
		if json.Unmarshal(raw, &args) != nil {
			args = map[string]json.RawMessage{"arguments": raw}
		}
		lines = append(lines, cut(named(args), most)...)
	}
	if q.Purpose == human.PurposeParam {
		known := maps.Clone(q.task.Params)
		maps.DeleteFunc(known, func(_ string, raw json.RawMessage) bool { return isNull(raw) })
		lines = append(lines, cut(named(known), most)...)
	}
	if risk != "" {
		lines = append(lines, risk)
	}
	if q.task.Warning != "" {
		lines = append(lines, "WARNING: "+table.OneLine(q.task.Warning))
	}
	if q.MinApprovals > 1 {
		lines = append(lines, fmt.Sprintf("%d people have to agree", q.MinApprovals))
	}
	if left := timeLeft(&q.Interaction, now); left != "" {
		lines = append(lines, "time left: "+left)
	}
	return lines
}

// riskLine is how dangerous something was found and why; a low risk without a reason is not worth a line.
func riskLine(risk, reason string) string {
	reason = strings.TrimSpace(reason)
	switch {
	case risk == "" || risk == "low" && reason == "":
		return ""
	case reason == "":
		return table.OneLine("risk: " + risk)
	}
	return table.OneLine("risk: " + risk + " (" + strings.TrimRight(reason, ".。") + ")")
}

// named are values, a line each, by name.
func named(values map[string]json.RawMessage) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		list = append(list, "  "+table.OneLine(name)+": "+table.OneLine(payload.JSON(values[name])))
	}
	return list
}

func empty(raw json.RawMessage) bool {
	text := string(bytes.TrimSpace(raw))
	return text == "" || text == "null" || text == "{}" || text == `""`
}

// sheet is a text of several lines, made safe to show.
func sheet(text string) []string {
	var lines []string
	for l := range strings.SplitSeq(text, "\n") {
		lines = append(lines, table.OneLine(strings.TrimRight(l, "\r")))
	}
	return lines
}

// indented is a value as a person reads it: a text as it is, anything else as JSON.
func indented(raw json.RawMessage) []string {
	text, _ := payload.Shown(raw)
	lines := sheet(text)
	for n := range lines {
		lines[n] = "  " + lines[n]
	}
	return lines
}

func cut(lines []string, most int) []string {
	if most == 0 || len(lines) <= most {
		return lines
	}
	return append(slices.Clone(lines[:most]), fmt.Sprintf("  … %d more lines; \"tandem inbox show\" has them", len(lines)-most))
}

// line asks for one line.
func (a *asker) line(ctx context.Context, prompt string) (string, error) {
	if err := a.print(prompt); err != nil {
		return "", err
	}
	line, err := a.typed.nextLine(ctx)
	if errors.Is(err, app.ErrAsked) {
		return "", errors.Join(err, a.print("\n"))
	}
	line = strings.TrimSpace(line)
	if err == nil && a.typed.ahead {
		err = a.print(table.OneLine(line) + "\n") // nobody has seen it being typed
	}
	return line, err
}

func (a *asker) print(text string) error {
	if text == "" {
		return nil
	}
	if _, err := io.WriteString(a.out, text); err != nil {
		return fmt.Errorf("write the question: %w", err)
	}
	return nil
}
