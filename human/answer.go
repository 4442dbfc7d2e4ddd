package human

import (
	"cmp"
	"encoding/json"
	"errors"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/fault"
	"tandem/human/form"
	"tandem/store"
	"tandem/text"
)

// understood is an answer that has passed all checks.
type understood struct {
	// data is the answer as the execution gets it, kept the same as it is recorded: files are recorded without their content.
	data, kept json.RawMessage
	// outcome is confirmed, rejected or none.
	outcome string
	// options are what was chosen.
	options []string
	// average is the mean score of a review with numbers.
	average *float64
	// choice decides an unknown outcome for the engine; raise is by how much a budget is raised.
	choice string
	raise  float64
}

// FormOf is the form of a question, in the language of the request: what every medium draws.
func FormOf(i store.Interaction, r Request) *form.Form {
	return form.New(r.question(i), r.Language)
}

// question returns what the form of a question is made of. What a step lacks and knows is in the record only.
func (r *Request) question(i store.Interaction) form.Question {
	q := r.asked(i.Purpose)
	q.Type = cmp.Or(r.Type, i.Type)
	if params := gjson.GetBytes(i.Request, "params"); params.IsObject() {
		if json.Unmarshal([]byte(params.Raw), &q.Params) != nil {
			q.Params = nil // it belongs to another part, which uses it for something else
		}
	}
	return q
}

// asked is what the rules of an answer depend on.
func (r *Request) asked(purpose string) form.Question {
	return form.Question{
		Purpose: cmp.Or(purpose, PurposeNode), Type: r.Type, Options: r.Options, Multiple: r.AllowMultiple, Fields: r.Fields,
		Schema: r.Schema, Review: r.Review,
	}
}

// option finds an option by its value, in whatever case it is written.
func (r *Request) option(value string) Option {
	q := r.asked(PurposeNode)
	return q.Option(value)
}

// wrongAnswers is the error for all that is wrong with an answer. It keeps the problems, which people see in their
// language: see [ProblemsOf].
func wrongAnswers(err error) error {
	problems, ok := errors.AsType[form.Problems](err)
	if !ok {
		return err
	}
	fields := make([]api.FaultField, len(problems))
	for n, p := range problems {
		fields[n] = api.FaultField{Path: p.Path, Message: p.Text.In(text.English)}
		if zh := p.Text.In(text.Chinese); p.Schema || zh != fields[n].Message {
			fields[n].MessageZH = zh
		}
	}
	return fault.Say(fault.InvalidInput, problems).With("fields", fields).WithCause(problems).WithDetail("")
}

// wrongAnswer is the error for one problem with what somebody sends about a question.
func wrongAnswer(path string, words text.Text) error {
	return wrongAnswers(form.Problems{{Path: path, Text: words}})
}

// Check returns everything that is wrong with an answer, before anything of it is stored. It does not check who may give it.
func (r *Request) Check(purpose string, data json.RawMessage) error {
	_, err := r.readByPurpose(purpose, data, "somebody", "", Came{}) // without an author a review would need no evidence
	return err
}

// readByPurpose reads an answer to a question of a purpose. The caller says who answered, when and how; the answer itself
// cannot. Without an author it is a default that stands for an answer: such a review needs no evidence.
func (r *Request) readByPurpose(purpose string, raw json.RawMessage, who, at string, how Came) (understood, error) {
	q := r.asked(purpose)
	got, err := q.Read(raw, who != "")
	if err != nil {
		return understood{}, wrongAnswers(err)
	}
	u := understood{data: got.Data, kept: got.Kept, outcome: got.Outcome, options: got.Options, average: got.Average,
		choice: got.Unknown, raise: got.Raise}
	if q.Purpose != PurposeNode {
		return u, nil
	}
	kept := Answer{Action: got.Action, Fields: got.Fields, Chosen: got.Chosen, Scores: got.Scores, Evidence: got.Evidence,
		Notes: got.Notes, UserID: who, Timestamp: at, Came: how}
	if u.data, err = json.Marshal(kept); err != nil {
		return u, fault.Newf(fault.Internal, "an answer cannot be kept: %w", err)
	}
	if u.kept = u.data; got.Bare == nil {
		return u, nil
	}
	kept.Fields = got.Bare
	if u.kept, err = json.Marshal(kept); err != nil {
		return u, fault.Newf(fault.Internal, "an answer cannot be kept: %w", err)
	}
	return u, nil
}

// readAnswer reads the response_data of a node's question.
func (r *Request) readAnswer(raw json.RawMessage, who, at string, how Came) (understood, error) {
	return r.readByPurpose(PurposeNode, raw, who, at, how)
}
