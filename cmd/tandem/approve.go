package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"tandem/api"
	"tandem/app"
	"tandem/fault"
	"tandem/human"
	"tandem/human/form"
	"tandem/store"
)

// newApprove and newReject are the short way to say yes or no.
func newApprove() *cobra.Command {
	return newDecide("approve", "Say yes to a question", human.Confirmed)
}

func newReject() *cobra.Command {
	return newDecide("reject", "Say no to a question", human.Rejected)
}

func newDecide(name, short, outcome string) *cobra.Command {
	var at connectFlags
	var show listing
	var note string
	cmd := &cobra.Command{
		Use: name + " QUESTION", Short: short,
		Long: short + `: an approval, a tool that a model wants to call, a confirmation. Of the id as many characters are
enough as make it unique; "tandem inbox" lists them. Other questions are answered with "tandem inbox answer".`,
		Example: "  tandem " + name + " 3f2a --note 'looks right'",
		Args:    one("question"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				d, err := findInteraction(ctx, c, args[0])
				if err != nil {
					return err
				}
				q, err := newQuestion(d.Interaction, userLanguage())
				if err != nil {
					return err
				}
				answer, err := q.decide(outcome, note)
				if err != nil {
					return err
				}
				return hand(ctx, cmd, c, q, answer, &show)
			})
		},
	}
	at.add(cmd)
	show.add(cmd, false)
	cmd.Flags().StringVar(&note, "note", "", "what to add, for those who look at it later")
	return cmd
}

// hand hands an answer in and says what became of the question.
func hand(ctx context.Context, cmd *cobra.Command, c *app.Connection, q *question, answer json.RawMessage, show *listing) error {
	after, err := c.Respond(ctx, q.ID, api.RespondRequest{ResponseData: answer, ArgumentsHash: q.ArgumentsHash})
	if err != nil {
		return err
	}
	return responded(cmd, c, show, after)
}

// decide is the answer that says yes or no.
func (q *question) decide(outcome, note string) (json.RawMessage, error) {
	decision, n := q.form.Decision()
	if decision == nil || decision.Kind != form.YesNo && decision.Name != form.NameAction {
		return nil, fault.Newf(fault.Conflict, "question %q wants more than a yes or no; answer it with: tandem %s", q.ID, q.how())
	}
	chosen := decision.Outcome(outcome)
	if len(chosen) != 1 {
		return nil, fault.Newf(fault.Conflict, "question %q has %s that mean this; choose with: tandem %s", q.ID, count(len(chosen), "option", "options"), q.how())
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
		return nil, usageError{fmt.Errorf("--note is for answers that are JSON objects; leave it out")}
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
		line := "  " + oneLine(e.Name) + ":"
		if e.Prompt != e.Name {
			line += " " + oneLine(e.Prompt)
		}
		switch e.Kind {
		case form.Number:
			line += ", a number"
		case form.YesNo, form.Tick:
			line += ", yes or no"
		case form.One:
			line += ", one of " + oneLine(e.ChoiceNames())
		case form.Some:
			line += ", some of " + oneLine(e.ChoiceNames())
		case form.JSON:
			line += ", JSON"
		}
		if e.Limits != "" && (e.Kind == form.Number || e.Kind == form.Line || e.Kind == form.Area) && e.Group != form.GroupScores {
			line += " (" + oneLine(e.Limits) + ")"
		}
		if e.Default != nil {
			line += ", " + oneLine(e.Text(e.Default)) + " unless you say otherwise"
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
		return command + " --choose OPTION (" + oneLine(decision.ChoiceNames()) + ")"
	}
	for n := range q.form.Entries {
		switch e := &q.form.Entries[n]; {
		case e.Name == "":
			return command + " --value JSON"
		case remarks(e), e.Known:
		case e.Group == form.GroupEvidence:
			command += fmt.Sprintf(" --evidence '%s=...'", oneLine(e.Name))
		case e.Kind == form.One:
			command += fmt.Sprintf(" --set '%s=OPTION'", oneLine(e.Name))
		case e.Kind == form.File:
			command += fmt.Sprintf(" --set '%s=@FILE'", oneLine(e.Name))
		default:
			command += fmt.Sprintf(" --set '%s=...'", oneLine(e.Name))
		}
	}
	return command
}

// answerFlags are an answer on a command line.
type answerFlags struct {
	value, note           string
	set, choose, evidence []string
}

func (f *answerFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.value, "value", "", "the whole answer, as JSON")
	flags.StringArrayVar(&f.set, "set", nil, "what is filled in, as name=value; a file as name=@path (repeatable)")
	flags.StringArrayVar(&f.choose, "choose", nil, "an option (repeatable, where several may be chosen)")
	flags.StringArrayVar(&f.evidence, "evidence", nil, "what a score of a review rests on, as criterion=text (repeatable)")
}

func (f *answerFlags) given() bool {
	return f.value != "" || len(f.set) > 0 || len(f.choose) > 0 || len(f.evidence) > 0
}

// check refuses flags that cannot go together, before anything is opened.
func (f *answerFlags) check() error {
	if f.value != "" && (len(f.set) > 0 || len(f.choose) > 0 || len(f.evidence) > 0) {
		return usageError{fmt.Errorf("--value is the whole answer; leave --set, --choose and --evidence out, or use them instead")}
	}
	if f.value != "" {
		if _, err := parseValue("value", f.value, true); err != nil {
			return err
		}
	}
	return nil
}

// read makes the answer to a question.
func (f *answerFlags) read(q *question) (json.RawMessage, error) {
	if f.value != "" {
		raw, err := parseValue("value", f.value, true)
		if err != nil || f.note == "" {
			return raw, err
		}
		return withNote(raw, q.Purpose, f.note)
	}
	given := form.Values{}
	if len(f.choose) > 0 {
		decision, n := q.form.Decision()
		if decision == nil {
			return nil, usageError{fmt.Errorf("question %q has nothing to choose from; answer it with: tandem %s", q.ID, q.how())}
		}
		var err error
		if given[n], err = chosen(decision, q.form.Language, f.choose); err != nil {
			return nil, usageError{fmt.Errorf("--choose: %w", err)}
		}
	}
	wrong := q.fillIn(given, "set", f.set, func(e *form.Entry) bool { return e.Group != form.GroupEvidence })
	wrong = append(wrong, q.fillIn(given, "evidence", f.evidence, func(e *form.Entry) bool { return e.Group == form.GroupEvidence })...)
	if len(wrong) > 0 {
		return nil, usageError{errors.New(strings.Join(wrong, "; "))}
	}
	return q.noted(given, f.note)
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

func newInboxAnswer(at *connectFlags) *cobra.Command {
	var show listing
	var f answerFlags
	cmd := &cobra.Command{
		Use: "answer QUESTION", Short: "Answer a question",
		Long: `Answer fills in what a question asks. Without an answer in flags it asks for it, on a terminal; "tandem inbox show" says
which flags a question wants. Everything that is wrong with an answer is told at once, and nothing is taken then.`,
		Example: `  tandem inbox answer 3f2a --choose approve --note 'as agreed'
  tandem inbox answer 3f2a --choose red --choose blue
  tandem inbox answer 3f2a --set amount=120 --set receipt=@receipt.pdf
  tandem inbox answer 3f2a --set accuracy=4 --evidence accuracy='checked 20 rows'
  tandem inbox answer 3f2a --value '{"field_values": {"amount": 120}}'`,
		Args: one("question"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				d, err := findInteraction(ctx, c, args[0])
				if err != nil {
					return err
				}
				q, err := newQuestion(d.Interaction, userLanguage())
				if err != nil {
					return err
				}
				if f.given() {
					answer, err := f.read(q)
					if err != nil {
						return err
					}
					return hand(ctx, cmd, c, q, answer, &show)
				}
				a := newAsker(cmd.InOrStdin(), cmd.OutOrStdout(), nil)
				if a == nil || show.json || f.note != "" {
					return usageError{fmt.Errorf("say what the answer is; question %q wants: tandem %s", d.ID, q.how())}
				}
				if !d.MayRespond && d.Status == string(store.InteractionPending) {
					return fault.Newf(fault.Forbidden, "you cannot answer question %q: %s", d.ID, d.WhyNot)
				}
				return left(ctx, respond(ctx, cmd, c, a, &d.Interaction, &show))
			})
		},
	}
	show.add(cmd, false)
	f.add(cmd)
	cmd.Flags().StringVar(&f.note, "note", "", "what to add, for those who look at it later")
	return cmd
}
