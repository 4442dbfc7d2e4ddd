package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"tandem/api"
	"tandem/app"
	"tandem/console/table"
	"tandem/fault"
	"tandem/human"
	"tandem/human/form"
	"tandem/store"
)

// Decide says yes or no to a question, as the outcome says, with a note if there is one.
func Decide(ctx context.Context, tty *Terminal, c *app.Connection, show *table.Listing, id, outcome, note string) error {
	d, err := FindInteraction(ctx, c, id)
	if err != nil {
		return err
	}
	q, err := newQuestion(d.Interaction, UserLanguage())
	if err != nil {
		return err
	}
	answer, err := q.decide(outcome, note)
	if err != nil {
		return err
	}
	return hand(ctx, tty, c, q, answer, show)
}

// AnswerQuestion answers a question: with what the flags give or, if they give nothing, with what the person at the terminal says.
func AnswerQuestion(ctx context.Context, tty *Terminal, c *app.Connection, show *table.Listing, id string, f *Answer) error {
	d, err := FindInteraction(ctx, c, id)
	if err != nil {
		return err
	}
	q, err := newQuestion(d.Interaction, UserLanguage())
	if err != nil {
		return err
	}
	if f.Given() {
		answer, err := f.readAnswer(q)
		if err != nil {
			return err
		}
		return hand(ctx, tty, c, q, answer, show)
	}
	a := newAsker(tty.In, tty.Out, nil)
	if a == nil || show.JSON || f.Note != "" {
		return Usage(fmt.Errorf("say what the answer is; question %q wants: tandem %s", d.ID, q.how()))
	}
	if !d.MayRespond && d.Status == string(store.InteractionPending) {
		return fault.Newf(fault.Forbidden, "you cannot answer question %q: %s", d.ID, d.WhyNot)
	}
	return left(ctx, respond(ctx, tty, c, a, &d.Interaction, show))
}

// OverrideQuestion decides a question in the place of those who are asked.
func OverrideQuestion(ctx context.Context, c *app.Connection, d api.InteractionDetail, f *Answer, reason string) (api.Interaction, error) {
	q, err := newQuestion(d.Interaction, UserLanguage())
	if err != nil {
		return api.Interaction{}, err
	}
	if !f.Given() {
		return api.Interaction{}, Usage(fmt.Errorf("say what is decided; question %q wants: tandem %s", d.ID,
			strings.Replace(q.how(), "inbox answer", "inbox override", 1)))
	}
	answer, err := f.readAnswer(q)
	if err != nil {
		return api.Interaction{}, err
	}
	return c.Override(ctx, d.ID, api.OverrideRequest{ResponseData: answer, ArgumentsHash: d.ArgumentsHash, Reason: reason})
}

// hand hands an answer in and says what became of the question.
func hand(ctx context.Context, tty *Terminal, c *app.Connection, q *question, answer json.RawMessage, show *table.Listing) error {
	after, err := c.Respond(ctx, q.ID, api.RespondRequest{ResponseData: answer, ArgumentsHash: q.ArgumentsHash})
	if err != nil {
		return err
	}
	return responded(tty, c, show, after)
}

// decide is the answer that says yes or no.
func (q *question) decide(outcome, note string) (json.RawMessage, error) {
	decision, n := q.form.Decision()
	if decision == nil || decision.Kind != form.YesNo && decision.Name != form.NameAction {
		return nil, fault.Newf(fault.Conflict, "question %q wants more than a yes or no; answer it with: tandem %s", q.ID, q.how())
	}
	chosen := decision.Outcome(outcome)
	if len(chosen) != 1 {
		return nil, fault.Newf(fault.Conflict, "question %q has %d options that mean this; choose with: tandem %s", q.ID, len(chosen), q.how())
	}
	return q.noted(form.Values{n: chosen[0].Raw}, note)
}

// noted is an answer with a note, where questions of the sort have one.
func (q *question) noted(given form.Values, note string) (json.RawMessage, error) {
	answer := q.form.Answer(given)
	if note == "" {
		return answer, nil
	}
	return withNote(answer, q.Purpose, note)
}

// withNote adds a note to an answer.
func withNote(answer json.RawMessage, purpose, note string) (json.RawMessage, error) {
	name := form.NameNotes
	if purpose == human.PurposeParam {
		name = form.NameDescription
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(answer, &object); err != nil {
		return nil, Usage(fmt.Errorf("--note is for answers that are JSON objects; leave it out"))
	}
	raw, err := json.Marshal(note)
	if err != nil {
		return nil, err
	}
	object[name] = raw
	return json.Marshal(object)
}

// wants describes what is to be filled in by name, a line for each. A decision has its options in how.
func (q *question) wants() []string {
	if decision, _ := q.form.Decision(); decision != nil {
		return nil
	}
	var lines []string
	for n := range q.form.Entries {
		e := &q.form.Entries[n]
		if e.Name == "" || e.Group == form.GroupEvidence || remarks(e) || e.Known {
			continue
		}
		line := "  " + table.OneLine(e.Name) + ":"
		if e.Prompt != e.Name {
			line += " " + table.OneLine(e.Prompt)
		}
		switch e.Kind {
		case form.Number:
			line += ", a number"
		case form.YesNo, form.Tick:
			line += ", yes or no"
		case form.One:
			line += ", one of " + table.OneLine(e.ChoiceNames())
		case form.Some:
			line += ", some of " + table.OneLine(e.ChoiceNames())
		case form.JSON:
			line += ", JSON"
		}
		if e.Limits != "" && (e.Kind == form.Number || e.Kind == form.Line || e.Kind == form.Area) && e.Group != form.GroupScores {
			line += " (" + table.OneLine(e.Limits) + ")"
		}
		if e.Default != nil {
			line += ", " + table.OneLine(e.Text(e.Default)) + " unless you say otherwise"
		}
		if e.Required {
			line += ", required"
		}
		lines = append(lines, strings.Replace(line, ":,", ":", 1))
	}
	return lines
}

// how is the command line that answers a question.
func (q *question) how() string {
	command := "inbox answer " + q.ID
	if decision, _ := q.form.Decision(); decision != nil {
		if decision.Kind == form.YesNo {
			return fmt.Sprintf("approve %s, or reject", q.ID)
		}
		return command + " --choose OPTION (" + table.OneLine(decision.ChoiceNames()) + ")"
	}
	for n := range q.form.Entries {
		switch e := &q.form.Entries[n]; {
		case e.Name == "":
			return command + " --value JSON"
		case remarks(e), e.Known:
		case e.Group == form.GroupEvidence:
			command += fmt.Sprintf(" --evidence '%s=...'", table.OneLine(e.Name))
		case e.Kind == form.One:
			command += fmt.Sprintf(" --set '%s=OPTION'", table.OneLine(e.Name))
		case e.Kind == form.File:
			command += fmt.Sprintf(" --set '%s=@FILE'", table.OneLine(e.Name))
		default:
			command += fmt.Sprintf(" --set '%s=...'", table.OneLine(e.Name))
		}
	}
	return command
}

// Answer is an answer in flags. Value is the whole of it, as JSON; or Set, Choose and Evidence fill in what the question asks for, the
// first and the last as name=value. Note is what to add.
type Answer struct {
	Value, Note           string
	Set, Choose, Evidence []string
}

// Given says that there is an answer.
func (f *Answer) Given() bool {
	return f.Value != "" || len(f.Set) > 0 || len(f.Choose) > 0 || len(f.Evidence) > 0
}

// Check refuses flags that cannot go together, before anything is opened.
func (f *Answer) Check() error {
	if f.Value != "" && (len(f.Set) > 0 || len(f.Choose) > 0 || len(f.Evidence) > 0) {
		return Usage(fmt.Errorf("--value is the whole answer; leave --set, --choose and --evidence out, or use them instead"))
	}
	if f.Value != "" {
		if _, err := ParseValue("value", f.Value, true); err != nil {
			return err
		}
	}
	return nil
}

// readAnswer makes the answer to a question.
func (f *Answer) readAnswer(q *question) (json.RawMessage, error) {
	if f.Value != "" {
		raw, err := ParseValue("value", f.Value, true)
		if err != nil || f.Note == "" {
			return raw, err
		}
		return withNote(raw, q.Purpose, f.Note)
	}
	given := form.Values{}
	if len(f.Choose) > 0 {
		decision, n := q.form.Decision()
		if decision == nil {
			return nil, Usage(fmt.Errorf("question %q has nothing to choose from; answer it with: tandem %s", q.ID, q.how()))
		}
		var err error
		if given[n], err = chosen(decision, q.form.Language, f.Choose); err != nil {
			return nil, Usage(fmt.Errorf("--choose: %w", err))
		}
	}
	wrong := q.fillIn(given, "set", f.Set, func(e *form.Entry) bool { return e.Group != form.GroupEvidence })
	wrong = append(wrong, q.fillIn(given, "evidence", f.Evidence, func(e *form.Entry) bool { return e.Group == form.GroupEvidence })...)
	if len(wrong) > 0 {
		return nil, Usage(errors.New(strings.Join(wrong, "; ")))
	}
	return q.noted(given, f.Note)
}

// chosen is a choice by names or numbers.
func chosen(e *form.Entry, language string, names []string) (json.RawMessage, error) {
	if len(names) == 1 {
		return readTyped(e, language, names[0])
	}
	for n, name := range names {
		if one, ok := byNumbers(&form.Entry{Choices: e.Choices}, name); ok {
			names[n] = one[0]
		}
	}
	value, wrong := e.Choose(names...)
	if wrong != nil {
		return nil, errors.New(wrong.In(language))
	}
	return value, nil
}

// fillIn fills in entries from name=value pairs and returns everything that is wrong with them.
func (q *question) fillIn(given form.Values, flag string, pairs []string, of func(*form.Entry) bool) (wrong []string) {
	for _, pair := range pairs {
		name, text, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			wrong = append(wrong, fmt.Sprintf("--%s %q: write it as name=value", flag, pair))
			continue
		}
		at := -1
		var names []string
		for n := range q.form.Entries {
			if e := &q.form.Entries[n]; of(e) && e.Name != "" {
				if names = append(names, e.Name); e.Name == name && at < 0 {
					at = n
				}
			}
		}
		if at < 0 {
			hint := "answer it with: tandem " + q.how()
			if near := fault.Nearest(name, names); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			wrong = append(wrong, fmt.Sprintf("--%s: question %q has no %q to fill in; %s", flag, q.ID, name, hint))
			continue
		}
		value, err := readTyped(&q.form.Entries[at], q.form.Language, text)
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("--%s %s: %v", flag, name, err))
			continue
		}
		given[at] = value
	}
	return wrong
}
