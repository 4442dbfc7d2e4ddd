package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"tandem/api"
	"tandem/fault"
	"tandem/human/form"
	"tandem/payload"
	"tandem/text"
)

// maxTries is how often one question is put to a client whose answers are not taken.
const maxTries = 3

// lookAgain is how often it is looked whether a question that a client puts to its user was answered elsewhere.
const lookAgain = 2 * time.Second

// question is an open question, as results have it.
type question struct {
	InteractionID string                     `json:"interaction_id"`
	ExecutionID   string                     `json:"execution_id,omitempty"`
	Purpose       string                     `json:"purpose"`
	Type          string                     `json:"interaction_type"`
	Title         string                     `json:"title,omitempty"`
	Description   string                     `json:"description,omitempty"`
	Tool          string                     `json:"tool,omitempty"`
	Risk          string                     `json:"risk,omitempty"`
	Reason        string                     `json:"reason,omitempty"`
	Warning       string                     `json:"warning,omitempty"`
	Arguments     json.RawMessage            `json:"arguments,omitempty"`
	Content       json.RawMessage            `json:"content,omitempty"`
	Changes       json.RawMessage            `json:"changes,omitempty"`
	Params        map[string]json.RawMessage `json:"params,omitempty"`
	TimeoutAt     int64                      `json:"timeout_at,omitempty"`
	// Fork is how the execution came of another, and Again why the question is asked again.
	Fork  *api.Fork        `json:"fork,omitempty"`
	Again []api.AskedAgain `json:"again,omitempty"`
	// MayRespond says whether the caller may answer; WhyNot why they may not.
	MayRespond   bool            `json:"may_respond"`
	WhyNot       string          `json:"why_not,omitempty"`
	AnswerSchema json.RawMessage `json:"answer_schema"`

	form *drawing
	// hash is that of what is approved; the answer is for nothing else.
	hash   string
	status string
	// long says that what is approved does not fit into what a client puts to its user.
	long bool
}

const (
	// maxShown bounds values of a question in a result, maxAsked what a client is to put to its user.
	maxShown = 20_000
	maxAsked = 8_000
)

func shown(value json.RawMessage) json.RawMessage {
	if len(value) > maxShown {
		return raw(map[string]any{"$omitted": true, "size": len(value)})
	}
	return value
}

// readQuestion reads all there is to know about a question.
func (r *run) readQuestion(ctx context.Context, q *api.UserInputRequest) (question, error) {
	d, err := r.s.api.Interaction(ctx, q.InteractionID)
	if err != nil {
		return question{}, err
	}
	// What agents say besides, when they ask.
	var more struct {
		Message string                     `json:"message"`
		Tool    string                     `json:"tool"`
		Reason  string                     `json:"reason"`
		Warning string                     `json:"warning"`
		Params  map[string]json.RawMessage `json:"params"`
		// Changes are those of a tool that is not what was accepted.
		Changes json.RawMessage  `json:"changes"`
		Again   []api.AskedAgain `json:"again"`
	}
	if err := json.Unmarshal(d.RequestData, &more); err != nil {
		r.s.o.Log.DebugContext(ctx, "a question is not in the form of one", "interaction", q.InteractionID, "error", err)
	}
	f := drawQuestion(q, more.Params, r.req.ProtocolVersion())
	told := question{
		InteractionID: q.InteractionID, ExecutionID: q.ExecutionID, Purpose: q.Purpose, Type: q.InteractionType, Title: q.Title,
		Description: cmp.Or(q.Description, more.Message),
		Tool:        more.Tool, Risk: q.Risk, Reason: more.Reason, Warning: more.Warning, Arguments: shown(q.Arguments),
		Content: shown(q.Content),
		Changes: shown(more.Changes), Params: more.Params, TimeoutAt: q.TimeoutAt, Fork: q.Fork, Again: more.Again,
		MayRespond: d.MayRespond, WhyNot: d.WhyNot, AnswerSchema: shown(f.answerSchema()), form: f, hash: d.ArgumentsHash, status: d.Status,
	}
	about := len(q.Arguments) + len(q.Content) + len(more.Changes)
	if told.long = about > maxAsked-4*maxText; about > maxShown && told.MayRespond {
		// Nobody can agree here to what cannot be shown here.
		told.MayRespond, told.WhyNot = false, "what it is about is too long to be shown here; answer it in the inbox of Tandem"
	}
	return told, nil
}

// maxText bounds the words of a question, one by one.
const maxText = 1_000

// text is the question in words.
func (q *question) text() string {
	lines := []string{text.ClipBytes(cmp.Or(q.Title, "A person is asked."), maxText)}
	add := func(before, said string, most int) {
		if said != "" {
			lines = append(lines, before+text.ClipBytes(said, most))
		}
	}
	if q.Fork != nil {
		add("It is a fork: ", string(raw(q.Fork)), maxText)
	}
	add("Warning: ", q.Warning, maxText)
	add("Tool: ", q.Tool, maxText)
	// What is approved stands as a whole, before what others say about it.
	add("With: ", payload.JSON(q.Arguments), maxAsked)
	add("About: ", payload.Text(q.Content), maxAsked)
	add("Changes: ", payload.JSON(q.Changes), maxAsked)
	add("Risk: ", strings.TrimSuffix(q.Risk+", "+q.Reason, ", "), maxText)
	add("", q.Description, maxText)
	return strings.Join(lines, "\n")
}

// asks says that the client puts questions to its user by a form.
func (r *run) asks() bool {
	c := r.req.ClientCapabilities()
	return c != nil && c.Elicitation != nil && (c.Elicitation.Form != nil || c.Elicitation.URL == nil)
}

// askable are the questions that the client can put to its user, and that they may answer. The others are left to those who may.
func (r *run) askable(ctx context.Context, e *api.Execution) ([]question, error) {
	if !r.asks() {
		return nil, nil
	}
	var list []question
	for i := range e.Questions {
		id := e.Questions[i].InteractionID
		if !r.isNew(e.Questions[i]) || len(list) == maxQuestions {
			continue
		}
		q, err := r.readQuestion(ctx, &e.Questions[i])
		switch {
		case err != nil:
			return nil, err
		case q.status != "pending":
			r.answered[id] = true
		case !q.MayRespond || q.long || !q.form.flat:
			r.left[id] = true
		default:
			list = append(list, q)
		}
	}
	return list, nil
}

// elicitation is the question in the protocol's form.
func (r *run) elicitation(q *question) *mcp.ElicitParams {
	message := q.text()
	if wrong := r.wrong[q.InteractionID]; wrong != "" {
		message = "The last answer was not taken: " + wrong + "\n" + message
	}
	return &mcp.ElicitParams{Mode: "form", Message: text.ClipBytes(message, maxAsked), RequestedSchema: q.form.flatSchema()}
}

// inputRequired is the answer that asks a client without sessions: it calls again, with the answers.
func (r *run) inputRequired(asked []question) *mcp.CallToolResult {
	requests := mcp.InputRequestMap{}
	for i := range asked {
		requests[asked[i].InteractionID] = r.elicitation(&asked[i])
	}
	s := state{Tool: r.req.Params.Name, Execution: r.execution, Left: slices.Sorted(maps.Keys(r.left))}
	if len(s.Left) > maxQuestions {
		s.Left = s.Left[:maxQuestions] // they are looked at again
	}
	return &mcp.CallToolResult{InputRequests: requests, RequestState: string(raw(s))}
}

// takeAnswers takes the answers that such a client came back with. Only open questions of the execution are answered.
func (r *run) takeAnswers(ctx context.Context, answers mcp.InputResponseMap) error {
	if len(answers) == 0 {
		return nil
	}
	e, err := r.s.api.Execution(ctx, r.execution)
	if err != nil {
		return err
	}
	for i := range e.Questions {
		q := &e.Questions[i]
		answer, given := answers[q.InteractionID].(*mcp.ElicitResult)
		if !given {
			continue
		}
		asked, err := r.readQuestion(ctx, q)
		if err != nil {
			return err
		}
		if asked.long || !asked.form.flat {
			return fault.Newf(fault.InvalidInput, "question %q is none that a form answers; use %s", q.InteractionID, toolResume)
		}
		if err := r.answer(ctx, &asked, answer); err != nil {
			return err
		}
	}
	return nil
}

// elicit puts a question to the client's user and hands the answer on. It is withdrawn when somebody else was faster.
func (r *run) elicit(ctx context.Context, q question) error {
	asking, stop := context.WithTimeoutCause(ctx, r.s.o.Patience, errLate)
	defer stop()
	type reply struct {
		result *mcp.ElicitResult
		err    error
	}
	replied := make(chan reply, 1)
	go func() { // it ends with the answer or with asking, before this function does: replied is read, or has room
		result, err := r.req.Session.Elicit(asking, r.elicitation(&q))
		replied <- reply{result, err}
	}()
	look, breath := time.NewTicker(lookAgain), time.NewTicker(alive)
	defer look.Stop()
	defer breath.Stop()
	for {
		select {
		case a := <-replied:
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case a.err != nil: // the client cannot, or nobody has answered in time
				r.s.o.Log.DebugContext(ctx, "a question was not answered by the client", "interaction", q.InteractionID, "error", a.err)
				r.left[q.InteractionID] = true
				return nil
			}
			return r.answer(ctx, &q, a.result)
		case <-breath.C:
			r.progress(ctx, true, "the answer to "+strconv.Quote(text.ClipBytes(q.Title, 100))+" is waited for")
		case <-look.C:
			d, err := r.s.api.Interaction(ctx, q.InteractionID)
			if err != nil || d.Status == "pending" {
				continue // an error that lasts is met again when the answer is there
			}
			r.answered[q.InteractionID] = true
			stop()
			<-replied
			return nil
		}
	}
}

// answer hands on what the client's user has answered. What is not taken is asked again, a few times.
func (r *run) answer(ctx context.Context, q *question, a *mcp.ElicitResult) error {
	var data json.RawMessage
	var wrong form.Problems
	switch a.Action {
	case "accept":
		data, wrong = q.form.answer(a.Content)
	default:
		if data = q.form.refusal(a.Action); data == nil {
			r.left[q.InteractionID] = true
			return nil
		}
	}
	var err error
	if len(wrong) > 0 {
		err = fault.New(fault.InvalidInput, wrong.Error())
	} else {
		err = r.respond(ctx, q.InteractionID, q.hash, data)
	}
	switch fault.CodeOf(err) {
	case fault.Conflict: // somebody was faster, or time was
		r.answered[q.InteractionID] = true
		return nil
	case fault.InvalidInput:
		r.wrong[q.InteractionID] = err.Error()
		if r.tries[q.InteractionID]++; r.tries[q.InteractionID] >= maxTries {
			r.left[q.InteractionID] = true
		}
		return nil
	case fault.Forbidden, fault.NotFound:
		r.wrong[q.InteractionID], r.left[q.InteractionID] = err.Error(), true
		return nil
	}
	return err
}
