package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"tandem/api"
	"tandem/client"
	"tandem/engine"
	"tandem/fault"
	"tandem/payload"
	"tandem/text"
)

var (
	// errLate says that an execution has not ended in time, errLook that it is time to look at it.
	errLate = errors.New("the execution has not ended in time")
	errLook = errors.New("something has to be looked at")
)

const (
	// lookBelow is how often it is looked whether an execution that the followed one has started asks something: its stream does not say
	// so.
	lookBelow = 2 * time.Second
	// Notices of progress are told as they come, progressBurst of them, and then one in progressGap at most; alive is the longest time
	// between two while a person thinks.
	progressBurst = 50
	progressGap   = 200 * time.Millisecond
	alive         = 10 * time.Second
)

// run is one call about one execution. It belongs to the goroutine of the call.
type run struct {
	s   *Server
	req *mcp.CallToolRequest
	// execution is followed from behind the position after; fresh says that it was just started, from its beginning.
	execution string
	after     string
	fresh     bool
	// answered are questions that this call has seen answered; left those that the client or its user does not answer.
	answered, left map[string]bool
	// wrong is what was wrong with the last answer, by question, and tries how many there were.
	wrong map[string]string
	tries map[string]int

	// token is what the client knows progress by; nil: it does not want to hear of any.
	token any
	told  float64
	// room is how many notices may be told at once, and held the last one that was not told because there was none.
	room   float64
	roomAt time.Time
	held   string
}

// state is what a client without sessions carries from one round of a call to the next. It says nothing that the client could not ask for
// as well: what it may see and do with the execution is for the API to say.
type state struct {
	Tool      string   `json:"tool"`
	Execution string   `json:"execution"`
	Left      []string `json:"left,omitempty"`
}

// maxState bounds it.
const maxState = 4 << 10

// call starts something, or goes on with what an earlier round of the same call has started, and answers with what became of it.
func (s *Server) call(ctx context.Context, req *mcp.CallToolRequest,
	start func(context.Context) (string, error)) (*mcp.CallToolResult, error) {
	ctx, done, err := s.beginCall(ctx)
	if err != nil {
		return failure(err, ""), nil
	}
	defer done()
	r := s.newRun(req, "")
	if req.Params.RequestState != "" {
		var was state
		if len(req.Params.RequestState) > maxState || json.Unmarshal([]byte(req.Params.RequestState), &was) != nil ||
			was.Tool != req.Params.Name || was.Execution == "" {
			return failure(fault.New(fault.InvalidInput, "requestState is not what this tool has answered with; call the tool without it"), ""), nil
		}
		for _, id := range was.Left {
			r.left[id] = true
		}
		r.execution = was.Execution
		if err := r.takeAnswers(ctx, req.Params.InputResponses); err != nil {
			return r.broken(ctx, err)
		}
	} else if r.execution, err = start(ctx); err != nil {
		return r.broken(ctx, err)
	} else {
		r.fresh = true
	}
	return r.result(ctx, s.o.Wait)
}

// beginCall counts a call and gives it a context that ends with the server, too.
func (s *Server) beginCall(ctx context.Context) (context.Context, func(), error) {
	select {
	case s.calls <- struct{}{}:
	default:
		return nil, nil, fault.Newf(fault.RateLimited, "%d calls wait already; let some of them end", maxCalls)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.root, func() {
		cancel(fault.New(fault.NetworkError, "the server is stopping; ask again in a moment"))
	})
	return ctx, func() {
		stop()
		cancel(nil)
		<-s.calls
	}, nil
}

func (s *Server) newRun(req *mcp.CallToolRequest, execution string) *run {
	return &run{
		s: s, req: req, execution: execution, answered: map[string]bool{}, left: map[string]bool{},
		wrong: map[string]string{}, tries: map[string]int{},
		token: req.Params.GetProgressToken(), room: progressBurst,
	}
}

// result follows the execution until it has ended, or can be told no more of than a handle.
func (r *run) result(ctx context.Context, limit time.Duration) (*mcp.CallToolResult, error) {
	until := time.Now().Add(limit)
	for {
		e, late, err := r.wait(ctx, until)
		if err != nil {
			return r.broken(ctx, err)
		}
		if final(e.Status) {
			return r.finished(ctx, &e)
		}
		asked, err := r.askable(ctx, &e)
		switch {
		case err != nil:
			return r.broken(ctx, err)
		case len(asked) > 0 && r.req.ProtocolVersion() >= newest:
			return r.inputRequired(asked), nil
		case len(asked) > 0:
			if err := r.elicit(ctx, asked[0]); err != nil {
				return r.broken(ctx, err)
			}
			until = time.Now().Add(limit) // what a person takes is not the execution's time
		case late || r.stuck(&e):
			return r.handle(ctx, &e)
		}
	}
}

// wait returns the execution when it has ended, stands still or asks something new; late when it has done none of that in time.
func (r *run) wait(ctx context.Context, until time.Time) (e api.Execution, late bool, err error) {
	for ; ; r.fresh = false {
		if !r.fresh {
			if e, err = r.s.api.Execution(ctx, r.execution); err != nil {
				return e, false, err
			}
			r.after = strconv.FormatUint(e.Seq, 10)
			if final(e.Status) || r.stuck(&e) || slices.ContainsFunc(e.Questions, r.isNew) && r.asks() {
				return e, false, nil
			}
		}
		switch err := r.follow(ctx, until); {
		case errors.Is(err, errLate):
			e, err = r.s.api.Execution(ctx, r.execution)
			return e, true, err
		case err != nil && !errors.Is(err, errLook):
			return e, false, err
		}
	}
}

// follow reads the execution's stream until it ends, something has to be looked at or it is late.
func (r *run) follow(ctx context.Context, until time.Time) error {
	ctx, stop := context.WithCancelCause(ctx)
	late := time.AfterFunc(time.Until(until), func() { stop(errLate) })
	var looking sync.WaitGroup
	looking.Go(func() { // it ends with ctx
		every := time.NewTicker(lookBelow)
		defer every.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-every.C:
			}
			if e, err := r.s.api.Execution(ctx, r.execution); err == nil && slices.ContainsFunc(e.Questions, isBelow) {
				stop(errLook)
			}
		}
	})
	err := r.s.api.Watch(ctx, r.execution, r.after, client.VocabularyExecution, func(e api.Event) error {
		if e.Seq > 0 {
			r.after = fmt.Sprintf("%d.%d", e.Seq, e.Part)
		}
		return r.heard(ctx, &e)
	})
	if r.held != "" && err == nil { // the stream is over: nothing later will be told
		r.progress(ctx, true, r.held)
	}
	late.Stop()
	stop(nil)
	looking.Wait()
	return err
}

func isBelow(q api.UserInputRequest) bool { return q.ExecutionID != "" }

// heard takes an event: the client is told of it as progress, and what may be a question ends the following.
func (r *run) heard(ctx context.Context, e *api.Event) error {
	var u api.ExecutionUpdate
	if r.token != nil || e.EventType == "user_input_required" {
		if err := json.Unmarshal(e.Data, &u); err != nil {
			return fault.Newf(fault.RemoteError, "an event of execution %q cannot be read: %w", r.execution, err)
		}
	}
	name := ""
	if n := u.NodeExecution; n != nil {
		name = cmp.Or(n.NodeName, n.NodeID)
	}
	switch e.EventType {
	case "execution_started":
		r.progress(ctx, true, "execution "+r.execution+" has started")
	case "node_started":
		r.progress(ctx, false, name+" begins")
	case "node_completed", "node_failed", "node_skipped", "node_canceled", "node_retrying":
		r.progress(ctx, false, name+" is "+strings.TrimPrefix(e.EventType, "node_"))
	case "user_input_required":
		title := ""
		if u.UserInputRequest != nil {
			title = u.UserInputRequest.Title
		}
		r.progress(ctx, true, "a person is asked: "+cmp.Or(title, name))
		return errLook
	case "execution_paused":
		return errLook
	}
	return nil
}

// progress tells the client that something happens, if it wants to hear of it. Of what does not matter the last is told when there is too
// much of it.
func (r *run) progress(ctx context.Context, matters bool, message string) {
	if r.token == nil {
		return
	}
	now := time.Now()
	r.room = min(progressBurst, r.room+float64(now.Sub(r.roomAt))/float64(progressGap))
	r.roomAt = now
	if !matters && r.room < 1 {
		r.held = message
		return
	}
	r.room, r.held = max(0, r.room-1), ""
	r.told++
	err := r.req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.token, Progress: r.told,
		Message: text.ClipBytes(message, 500)})
	if err != nil {
		r.s.o.Log.DebugContext(ctx, "nobody took a notice of progress", "execution", r.execution, "error", err)
	}
}

func final(status string) bool { return engine.Status(status).Final() }

// isNew says that a question was neither answered nor left.
func (r *run) isNew(q api.UserInputRequest) bool {
	return !r.answered[q.InteractionID] && !r.left[q.InteractionID]
}

// stuck says that the execution does nothing before somebody does: a question is open that this call has not seen answered, or an operator
// has paused it.
func (r *run) stuck(e *api.Execution) bool {
	switch engine.Status(e.Status) {
	case engine.StatusPaused:
		return true
	case engine.StatusWaiting, engine.StatusWaitingForHuman:
		return slices.ContainsFunc(e.Questions, func(q api.UserInputRequest) bool { return !r.answered[q.InteractionID] })
	}
	return false
}

// outcome is the structured content of every result.
type outcome struct {
	ExecutionID string                     `json:"execution_id,omitempty"`
	Status      string                     `json:"status,omitempty"`
	Answer      string                     `json:"answer,omitempty"`
	Outputs     map[string]json.RawMessage `json:"outputs,omitempty"`
	// Truncated says that outputs are left out: they stand as {"$omitted": true, "size": bytes}.
	Truncated bool       `json:"truncated,omitempty"`
	Error     *failed    `json:"error,omitempty"`
	Questions []question `json:"questions,omitempty"`
	// Resume and StatusTool are the tools by which it goes on.
	Resume     string `json:"resume,omitempty"`
	StatusTool string `json:"status_tool,omitempty"`
}

type failed struct {
	Code    string `json:"error_code"`
	Message string `json:"error_message"`
	Node    string `json:"error_node_id,omitempty"`
}

func (o *outcome) result(text string, isError bool) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, StructuredContent: raw(o), IsError: isError}
}

// failure is the result of a call that came to nothing.
func failure(err error, execution string) *mcp.CallToolResult {
	f := fault.From(err)
	o := &outcome{ExecutionID: execution, Error: &failed{Code: string(f.Code), Message: err.Error()}}
	text := fmt.Sprintf("%s [%s]", err, f.Code)
	if told, ok := errors.AsType[*client.Error](err); !ok {
		o.Error.Message, text = f.Message, messageOf(err)
	} else if told.RetryAfter > 0 {
		text += fmt.Sprintf("; try again in %v", told.RetryAfter)
	}
	if execution != "" {
		o.StatusTool = toolStatus
		text = fmt.Sprintf("Execution %s goes on, but this call cannot follow it: %s. Ask %s later.", execution, text, toolStatus)
	}
	return o.result(text, true)
}

// broken is the answer when the API failed. A call that the client has given up needs none.
func (r *run) broken(ctx context.Context, err error) (*mcp.CallToolResult, error) {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
		if errors.Is(err, context.Canceled) {
			return nil, err
		}
	}
	if fault.CodeOf(err) == fault.NotFound { // it is not there, or not for this caller: nothing can be said about it
		return failure(err, ""), nil
	}
	return failure(err, r.execution), nil
}

// finished is the answer about an execution that has ended.
func (r *run) finished(ctx context.Context, e *api.Execution) (*mcp.CallToolResult, error) {
	o, text, err := r.ended(ctx, e)
	if err != nil {
		return r.broken(ctx, err)
	}
	return o.result(text, engine.Status(e.Status) != engine.StatusSuccess), nil
}

func (r *run) ended(ctx context.Context, e *api.Execution) (*outcome, string, error) {
	o := &outcome{ExecutionID: e.ExecutionID, Status: e.Status}
	if engine.Status(e.Status) != engine.StatusSuccess {
		text := fmt.Sprintf("Execution %s ended as %s.", e.ExecutionID, e.Status)
		if x := e.Error; x != nil {
			o.Error = &failed{x.ErrorCode, x.ErrorMessage, x.ErrorNodeID}
			text += fmt.Sprintf(" %s [%s]", x.ErrorMessage, x.ErrorCode)
		}
		return o, text, nil
	}
	if err := r.outputs(ctx, o, e.Outputs); err != nil {
		return nil, "", err
	}
	if e.Task != nil && e.Task.FullAnswer != "" { // it is told apart from the outputs, which may be too large to be
		o.Answer = text.ClipBytes(e.Task.FullAnswer, r.s.o.MaxOutput)
		return o, o.Answer, nil
	}
	text := string(raw(o.Outputs))
	if o.Truncated {
		text += fmt.Sprintf("\nNot all of it fits here; GET /executions/%s of the API has the rest.", e.ExecutionID)
	}
	return o, text, nil
}

// outputs adds as much of the outputs as a result may have. Large values, which stand as references, are fetched when they fit.
func (r *run) outputs(ctx context.Context, o *outcome, all map[string]json.RawMessage) error {
	o.Outputs = make(map[string]json.RawMessage, len(all))
	room := r.s.o.MaxOutput
	for _, name := range slices.Sorted(maps.Keys(all)) {
		value := all[name]
		size := len(value)
		var large struct {
			Blob string `json:"$blob"`
			Size int    `json:"size"`
		}
		if json.Unmarshal(value, &large) == nil && large.Blob != "" {
			size = large.Size
		}
		if size > room {
			o.Truncated = true
			o.Outputs[name] = raw(map[string]any{"$omitted": true, "size": size})
			continue
		}
		if large.Blob != "" {
			fetched, err := r.fetch(ctx, large.Blob, room)
			if err != nil {
				return err
			}
			value = fetched
		}
		room -= len(value)
		o.Outputs[name] = value
	}
	return nil
}

// handle is the answer about an execution that has not ended: how it stands, what it asks, and how it goes on.
func (r *run) handle(ctx context.Context, e *api.Execution) (*mcp.CallToolResult, error) {
	o := &outcome{ExecutionID: e.ExecutionID, Status: e.Status, StatusTool: toolStatus}
	var said strings.Builder
	fmt.Fprintf(&said, "Execution %s of %s is %s.", e.ExecutionID, cmp.Or(e.WorkflowName, e.WorkflowID), e.Status)
	mine := false
	for i := range e.Questions {
		id := e.Questions[i].InteractionID
		if len(o.Questions) == maxQuestions {
			continue
		}
		q, err := r.readQuestion(ctx, &e.Questions[i])
		if err != nil {
			return r.broken(ctx, err)
		}
		if q.status != "pending" {
			continue
		}
		o.Questions = append(o.Questions, q)
		fmt.Fprintf(&said, "\n\nQuestion %s: %s", id, text.ClipBytes(q.text(), 4000))
		if q.MayRespond {
			mine = true
			fmt.Fprintf(&said, "\nThe schema of its answer: %s", text.ClipBytes(payload.JSON(q.AnswerSchema), 4000))
		} else {
			fmt.Fprintf(&said, "\nIt is for others to answer: %s", q.WhyNot)
		}
		if wrong := r.wrong[id]; wrong != "" {
			fmt.Fprintf(&said, "\nThe last answer was not taken: %s", wrong)
		}
	}
	switch {
	case mine:
		o.Resume = toolResume
		fmt.Fprintf(&said, "\n\nPut it to the user, and call %s with execution_id, interaction_id and their answer. Do not answer for them.", toolResume)
	case engine.Status(e.Status) == engine.StatusPaused:
		o.Resume = toolResume
		fmt.Fprintf(&said, " An operator has paused it; %s without an answer lets it go on.", toolResume)
	default:
		fmt.Fprintf(&said, "\n\nIt goes on by itself; ask %s later.", toolStatus)
	}
	return o.result(said.String(), false), nil
}

// maxQuestions is how many questions a result lists.
const maxQuestions = 20
