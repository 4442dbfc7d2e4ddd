package human

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/engine"
	"tandem/fault"
	"tandem/human/form"
	"tandem/human/lineage"
	"tandem/payload"
	"tandem/store"
	"tandem/text"
)

// Question is a question as an execution asks it.
type Question struct {
	Ref store.Ref
	// Root is the execution at the top of the tree that this one belongs to: the one that was started from outside.
	Root       string
	WorkflowID string
	// User is who started it; empty, or the system, when no user did.
	User string
	// Requesters are the other users who requested what it does; Fork says how it was forked, if it was.
	Requesters []string
	Fork       *api.Fork
	Again      []api.AskedAgain
	Language   string
	Node       string
	// Tool is the tool that was being called, if it was one.
	Tool       string
	Ask        engine.AskID
	Activation engine.ActivationID
	Attempt    int
	Purpose    string
	Begun      *lineage.Begun
	// Why is what is known about an unknown outcome, if the question is about one.
	Why engine.Doubt
	// Request is a [Request] with whatever else the purpose has. For outcome_unknown it is what was being sent.
	Request json.RawMessage
	// Reach says that the people who are asked can have chosen where questions reach them, see [Desk.Reaches].
	Reach bool
	Time  int64
}

// defaultTimeout is how long a node's question waits by default, in seconds.
const defaultTimeout = 3600

// warningBefore is how long before the timeout people are warned. A question that does not wait longer has no warning.
const warningBefore = 15 * 60

// Open makes the record of a question. It is pure. A mistake in a question is an error of the node that asks. The record is still
// usable, so that an operator finds it; it has no approvers.
func (m Media) Open(q Question) (store.Interaction, error) {
	i := store.Interaction{
		Workspace: q.Ref.Workspace, ID: InteractionID(q.Ref, q.Ask), WorkflowID: q.WorkflowID, Execution: q.Ref.Execution,
		Root: cmp.Or(q.Root, q.Ref.Execution),
		Node: q.Node, Activation: string(q.Activation), Ask: string(q.Ask), User: q.User, Requesters: q.Requesters,
		Purpose: cmp.Or(q.Purpose, PurposeNode), Status: store.InteractionPending,
		Attempt: q.Attempt, Created: q.Time, Updated: q.Time, Version: 1,
	}
	q.Purpose = i.Purpose
	r, besides, err := readQuestion(q)
	if err == nil {
		err = r.settle(m, q)
	}
	if err == nil {
		i.Approvers, err = m.approversOf(q, r)
	}
	i.Type, i.Channel, i.Priority = cmp.Or(r.Type, Approval), cmp.Or(r.Channel, InApp), cmp.Or(r.Priority, 1)
	i.MinApprovals, i.ExcludeRequester = max(1, r.MinApprovals), r.ExcludeRequester
	i.ArgumentsHash = argumentsHash(r, besides)
	if i.Channel != InApp {
		i.Credential = cmp.Or(r.InCredential, r.Credential)
	}
	if r.TimeoutSeconds > 0 {
		i.TimeoutAt = q.Time + 1000*r.TimeoutSeconds
	}
	r.Approvers = i.Approvers
	r.showFork(q.Fork, q.Activation)
	r.showAgain(q.Again)
	delete(besides, "fork") // it is set here and nowhere else
	var werr error
	if i.Request, werr = writeQuestion(r, besides); err == nil {
		err = werr
	}
	i.NextAt = nextAt(i, r, progress{Requested: i.Channel == InApp && !q.Reach})
	return i, err
}

// readQuestion reads a request; besides is all of its fields.
func readQuestion(q Question) (Request, map[string]json.RawMessage, error) {
	var r Request
	if q.Purpose == PurposeOutcomeUnknown {
		if len(q.Request) > 0 {
			r.Arguments = q.Request
		}
		return r, nil, nil
	}
	var besides map[string]json.RawMessage
	err := json.Unmarshal(q.Request, &besides)
	if err == nil {
		err = json.Unmarshal(q.Request, &r)
	}
	switch {
	case err == nil:
		return r, besides, nil
	case q.Purpose != PurposeNode: // it is not in the form of a question and shown as it is
		return Request{Arguments: q.Request}, nil, nil
	}
	return Request{}, nil, fault.Newf(fault.InvalidConfig, "what node %q asks cannot be read: %w", q.Node, err)
}

// writeQuestion returns the request as it is stored: with its defaults filled in, over the fields that it came with.
func writeQuestion(r Request, besides map[string]json.RawMessage) (json.RawMessage, error) {
	raw, err := json.Marshal(r)
	if err == nil && len(besides) > 0 {
		all := make(map[string]json.RawMessage, len(besides))
		for name, value := range besides { // order does not matter: it becomes a map
			all[name] = value
		}
		if err = json.Unmarshal(raw, &all); err == nil {
			raw, err = json.Marshal(all)
		}
	}
	if err != nil {
		return json.RawMessage(`{}`), fault.Newf(fault.InvalidConfig, "what is asked cannot be kept: %w", err)
	}
	return raw, nil
}

// settle fills in what a request leaves out, and refuses one that cannot be answered.
func (r *Request) settle(m Media, q Question) error {
	kind := map[string]string{PurposeParam: Input, PurposeBudget: Input, PurposeOutcomeUnknown: Selection}[q.Purpose]
	if !slices.Contains([]string{Approval, Input, Selection, Review}, r.Type) {
		if r.Type != "" && q.Purpose == PurposeNode {
			return wrongConfig("interaction_type", "%q is none of approval, input, selection, review", r.Type)
		}
		r.Type = cmp.Or(kind, Approval)
	}
	r.Channel = cmp.Or(r.Channel, InApp)
	r.Language = cmp.Or(r.Language, q.Language)
	r.Language = text.Language(r.Language)
	r.Risk = cmp.Or(strings.ToLower(r.Risk), "low")
	r.MinApprovals, r.MinRejections, r.Priority = max(1, r.MinApprovals), max(1, r.MinRejections), min(max(1, r.Priority), 5)
	if r.TimeoutSeconds < 0 {
		return wrongConfig("timeout_seconds", "%d is in the past", r.TimeoutSeconds)
	}
	if q.Purpose == PurposeNode {
		r.TimeoutSeconds = cmp.Or(r.TimeoutSeconds, defaultTimeout)
	}
	r.TimeoutAction = cmp.Or(r.TimeoutAction, TimeoutFail)
	r.UnrelatedAction = cmp.Or(r.UnrelatedAction, "ignore")
	r.Access = cmp.Or(r.Access, "users")
	if e := r.Escalation; e != nil {
		if e.AfterSeconds <= 0 || len(e.To) == 0 {
			return wrongConfig("escalation", "it needs after_seconds of more than 0 and somebody in to")
		}
		to := make([]string, len(e.To))
		for n, text := range e.To {
			var err error
			if to[n], err = m.normalApprover(text); err != nil {
				return err
			}
		}
		r.Escalation = &Escalation{e.AfterSeconds, to}
	}
	if r.TimeoutAction == TimeoutDefault && payload.IsNull(r.TimeoutResponse) {
		return wrongConfig("timeout_default_response", "the timeout_action is default_response; say what it is")
	}
	if q.Purpose != PurposeNode {
		if q.Purpose == PurposeOutcomeUnknown && q.Tool != "" {
			r.says(&r.Title, form.TitleText, wasDone(q.Tool))
		}
		if q.Purpose == PurposeOutcomeUnknown {
			r.Begun = q.Begun
			if about, known := doubt(q.Why); known && q.Begun == nil {
				r.says(&r.Description, form.DescriptionText, about)
			}
		}
		r.operational(q.Purpose)
		// Those parts check what they ask; the answer has the form of their purpose.
		if options, err := settleOptions("options", r.Type, r.Options); err == nil {
			r.Options = options
		}
		return nil
	}
	if err := r.checkShape(); err != nil {
		return err
	}
	if r.TimeoutAction == TimeoutDefault {
		_, err := r.readAnswer(r.TimeoutResponse, "", "", Came{})
		asked := r.asked(PurposeNode)
		if unknown := asked.Unknown(r.TimeoutResponse); err == nil && len(unknown) > 0 {
			err = wrongAnswers(unknown)
		}
		if err != nil {
			return wrongConfig("timeout_default_response", "it is not an answer to the question: %s", fault.From(err).Message)
		}
	}
	return nil
}

// operational fills in the texts of questions of other purposes, where they are empty.
func (r *Request) operational(purpose string) {
	shape := ""
	switch purpose {
	case PurposeOutcomeUnknown:
		r.says(&r.Title, form.TitleText, text.Of("Was it done?"))
		if r.Begun != nil {
			r.says(&r.Description, form.DescriptionText, r.Begun.Text())
		}
		r.says(&r.Description, form.DescriptionText, text.Of("The node was interrupted at work, and its outcome is not known. Look where it would show, then answer: done (it was; give its result), not_done (do it now) or stop (let the node fail)."))
		r.Options = []Option{{Value: engine.ChoiceDone, Outcome: Neither}, {Value: engine.ChoiceNotDone, Outcome: Neither},
			{Value: engine.ChoiceStop, Outcome: Neither}}
		for n, label := range []text.Text{text.Of("done"), text.Of("not done"), text.Of("stop")} {
			r.says(&r.Options[n].Label, form.OptionText(r.Options[n].Value), label)
		}
		shape = `{"type":"object","required":["outcome"],"properties":{"outcome":{"enum":["done","not_done","stop"]},"result":{}}}`
	case PurposeConfirm:
		r.says(&r.Title, form.TitleText, text.Of("Go on?"))
		shape = `{"type":"object","properties":{"confirm":{"type":"boolean"}}}`
	case PurposeBudget:
		shape = `{"type":"object","required":["raise_by"],"properties":{"raise_by":{"type":"number","exclusiveMinimum":0}}}`
	case PurposeDrift, PurposeActivation:
		r.says(&r.Title, form.TitleText, text.Of("Accept it?"))
		shape = `{"type":"object","required":["accept"],"properties":{"accept":{"type":"boolean"}}}`
	case PurposeToolApproval:
		if len(r.Options) == 0 {
			r.Options = []Option{{Value: "approve"}, {Value: "reject"}}
		}
	}
	if payload.IsNull(r.Schema) && shape != "" {
		r.Schema = json.RawMessage(shape)
	}
}

// checkShape refuses a request that cannot be answered, and writes out what its options mean.
func (r *Request) checkShape() error {
	if r.Type == Approval && len(r.Options) == 0 {
		r.Options = []Option{{Value: "approve"}, {Value: "reject"}}
	}
	var err error
	if r.Options, err = settleOptions("options", r.Type, r.Options); err != nil {
		return err
	}
	if r.Type == Selection && len(r.Options) == 0 {
		return wrongConfig("selection_options", "there is nothing to select from")
	}
	if !payload.IsNull(r.Schema) {
		if _, err := payload.CompileSchema(r.Schema); err != nil {
			return wrongConfig("form_schema", "it is not a usable JSON Schema: %s", err)
		}
		if kind := gjson.GetBytes(r.Schema, "type"); kind.Exists() &&
			!slices.ContainsFunc(kind.Array(), func(k gjson.Result) bool { return k.Str == "object" }) {
			return wrongConfig("form_schema", "its type is %s, and what is filled in is an object", kind.Raw)
		}
	}
	fields := slices.Clone(r.Fields)
	for n := range fields {
		f := &fields[n]
		at := fmt.Sprintf("input_fields[%d]", n)
		f.Type = cmp.Or(f.Type, "text")
		f.Label = cmp.Or(f.Label, f.Name)
		switch {
		case f.Name == "":
			return wrongConfig(at+".name", "it is empty")
		case slices.ContainsFunc(fields[:n], func(o Field) bool { return o.Name == f.Name }):
			return wrongConfig(at+".name", "two fields are named %q", f.Name)
		case !slices.Contains([]string{"text", "number", "email", "date", "select", "boolean", "file"}, f.Type):
			return wrongConfig(at+".type", "%q is none of text, number, email, date, select, boolean, file", f.Type)
		case f.Type == "select" && len(f.Options) == 0:
			return wrongConfig(at+".options", "there is nothing to select from")
		case f.Type != "select" && len(f.Options) > 0:
			return wrongConfig(at+".options", `they are for a field of the type "select", and this is %q`, f.Type)
		}
		if f.Options, err = settleOptions(at+".options", Selection, f.Options); err != nil {
			return err
		}
		rule, err := form.ReadRule(f.Validation)
		if err != nil {
			return wrongConfig(at+".validation", "%s", err.Error())
		}
		if why := rule.Fits(f.Type); why != "" {
			return wrongConfig(at+".validation", "%s", why)
		}
	}
	r.Fields = fields
	switch {
	case r.Type == Input && len(r.Fields) == 0 && payload.IsNull(r.Schema):
		return wrongConfig("input_fields", "there is nothing to fill in")
	case r.Type == Review:
		return r.settleReview()
	}
	return nil
}

func (r *Request) settleReview() error {
	if r.Review == nil {
		return wrongConfig("review_criteria", "there is nothing to judge by")
	}
	v := *r.Review
	v.Scoring = cmp.Or(v.Scoring, "pass_fail")
	if v.Min == 0 && v.Max == 0 {
		v.Min, v.Max = 1, 5
	}
	switch {
	case len(v.Criteria) == 0 || slices.Contains(v.Criteria, ""):
		return wrongConfig("review_criteria", "there must be some, and none empty")
	case len(slices.Compact(slices.Sorted(slices.Values(v.Criteria)))) != len(v.Criteria):
		return wrongConfig("review_criteria", "one is named twice")
	case !slices.Contains([]string{"pass_fail", "numeric_scale", "letter_grade", "checklist", "custom"}, v.Scoring):
		return wrongConfig("scoring_system", "%q is none of pass_fail, numeric_scale, letter_grade, checklist, custom", v.Scoring)
	case v.Min >= v.Max:
		return wrongConfig("score_range", "it ends at %g, before it begins at %g", v.Max, v.Min)
	}
	r.Review = &v
	return nil
}

// settleOptions writes out the labels and outcomes of options.
func settleOptions(at, kind string, options []Option) ([]Option, error) {
	list, seen := slices.Clone(options), make(map[string]bool, len(options))
	for n := range list {
		o := &list[n]
		o.Label = cmp.Or(o.Label, o.Value)
		switch {
		case o.Value == "":
			return nil, wrongConfig(fmt.Sprintf("%s[%d]", at, n), "it is empty")
		case seen[o.Value]:
			return nil, wrongConfig(fmt.Sprintf("%s[%d]", at, n), "%q is there twice", o.Value)
		case o.Outcome == "":
			o.Outcome = outcomeByName(kind, o.Value)
		case !slices.Contains([]string{Confirmed, Rejected, Neither}, o.Outcome):
			return nil, wrongConfig(fmt.Sprintf("%s[%d].outcome", at, n), "%q is none of confirmed, rejected, none", o.Outcome)
		}
		seen[o.Value] = true
	}
	return list, nil
}

// outcomeByName is the outcome of an option by its name. Any selection confirms.
func outcomeByName(kind, value string) string { return form.OutcomeOf(kind, value) }

func wrongConfig(path, format string, args ...any) *fault.Error {
	return fault.Newf(fault.InvalidConfig, "%s: "+format, append([]any{path}, args...)...).With("path", "configurations."+path)
}

// hexHash is what a hash looks like. read-only
var hexHash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// argumentsHash is the hash of what is approved. A question may bring its own, which covers more: the name of the tool.
func argumentsHash(r Request, besides map[string]json.RawMessage) string {
	var own string
	if json.Unmarshal(besides["arguments_hash"], &own) == nil && hexHash.MatchString(own) {
		return own
	}
	if payload.IsNull(r.Arguments) {
		return ""
	}
	sum := sha256.Sum256(canonical(r.Arguments))
	return hex.EncodeToString(sum[:])
}

// canonical writes a value in its one form: members sorted, no blanks, numbers as they were written.
func canonical(raw json.RawMessage) []byte {
	one, err := payload.Canonical(raw)
	if err != nil {
		return raw
	}
	return one
}

// nextAt is when a pending question has to be looked at.
func nextAt(i store.Interaction, r Request, p progress) int64 {
	if !p.Requested {
		return i.Created
	}
	next := i.TimeoutAt
	earlier := func(at int64) {
		if next == 0 || at < next {
			next = at
		}
	}
	if r.ReminderSeconds > 0 {
		earlier(max(i.Created, p.Reminded) + 1000*r.ReminderSeconds)
	}
	if i.TimeoutAt > 0 && r.TimeoutSeconds > warningBefore && !i.WarningSent {
		earlier(i.TimeoutAt - 1000*warningBefore)
	}
	if r.Escalation != nil && p.Escalated == 0 {
		earlier(i.Created + 1000*r.Escalation.AfterSeconds)
	}
	return next
}
