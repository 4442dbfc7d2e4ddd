package ai

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tidwall/gjson"

	"tandem/builtin/models"
	"tandem/builtin/values"
	"tandem/engine"
	"tandem/fault"
	"tandem/llm"
	"tandem/node"
	"tandem/payload"
	"tandem/text"
	"tandem/workflow"
)

// answer is what a completion leaves.
type answer struct {
	llm.Completion
	Profile string `json:"profile"`
	Cost    int64  `json:"cost,omitempty"`
	// Data is the object that was asked for; Problem why there is none, for the next try.
	Data    json.RawMessage `json:"data,omitempty"`
	Problem string          `json:"problem,omitempty"`
}

// toolAnswer is what a tool call leaves.
type toolAnswer struct {
	ID        string          `json:"tool_call_id"`
	Name      string          `json:"name"`
	Node      string          `json:"node,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Result    json.RawMessage `json:"result"`
	Failed    bool            `json:"failed,omitempty"`
}

// memory is what a memory has said before the turn.
type memoryAnswer struct {
	Node    string `json:"node"`
	Context string `json:"context"`
	// Sources are where what it has said comes from.
	Sources []source `json:"sources,omitempty"`
}

// progress is a turn as a step finds it.
type progress struct {
	turnState
	about  engine.LoopStep
	values []json.RawMessage
}

func readProgress(s node.Step) (*progress, error) {
	p := &progress{values: s.Values}
	if err := json.Unmarshal(s.State, &p.turnState); err != nil {
		return nil, fault.Newf(fault.Internal, "the state of the turn cannot be read: %w", err)
	}
	if err := json.Unmarshal(s.Config, &p.about); err != nil {
		return nil, fault.Newf(fault.Internal, "the step %q cannot be read: %w", s.Name, err)
	}
	return p, nil
}

// read decodes the result of an entry.
func read[T any](p *progress, e engine.LoopEntry) (out T, err error) {
	if e.Value < 0 || e.Value >= len(p.values) {
		return out, fault.Newf(fault.Internal, "the %s has left no result", e.Kind)
	}
	if err := json.Unmarshal(p.values[e.Value], &out); err != nil {
		return out, fault.Newf(fault.Internal, "the result of a %s cannot be read: %w", e.Kind, err)
	}
	return out, nil
}

func (t *turns) step(ctx context.Context, call *node.Call, s node.Step) (node.Outcome, error) {
	p, err := readProgress(s)
	if err != nil {
		return nil, err
	}
	switch s.Kind {
	case engine.StepLoad:
		return p.load(ctx, call)
	case engine.StepComplete:
		return t.complete(ctx, call, p)
	case engine.StepApprove:
		return p.approve(call)
	case engine.StepCall:
		return t.callTool(ctx, call, p)
	case engine.StepStore:
		return p.store(ctx, call)
	}
	return nil, fault.Newf(fault.Internal, "a turn has no step of the kind %q", s.Kind)
}

// shows tells what the model was asked by a completion: which model, what it was told, and the tools that it may call. Should the
// conversation have been too long for the model, what was left out for that is in it.
func shows(s node.Step) (any, error) {
	if s.Kind != engine.StepComplete {
		return nil, nil
	}
	p, err := readProgress(s)
	if err != nil {
		return nil, err
	}
	asked := struct {
		Profile  string        `json:"profile_id"`
		Model    string        `json:"model,omitempty"`
		Messages []llm.Message `json:"messages"`
		Tools    []string      `json:"tools,omitempty"`
	}{Profile: p.Profiles[p.about.Profile].ID, Model: p.Profiles[p.about.Profile].Model}
	if asked.Messages, err = p.messages(leaveNothing); err != nil {
		return nil, err
	}
	for _, tool := range p.Request.Tools {
		asked.Tools = append(asked.Tools, tool.Name)
	}
	return asked, nil
}

// given makes what a person gave instead of a step its end. A call's result is taken as it is, a completion as what the
// model says. Approval cannot be given this way: it is for those who may answer the question.
func (t *turns) given(_ *node.Call, s node.Step, output json.RawMessage) (node.Replied, error) {
	p, err := readProgress(s)
	if err != nil {
		return node.Replied{}, err
	}
	switch s.Kind {
	case engine.StepLoad:
		text := gjson.GetBytes(output, "context")
		if text.Type == gjson.String {
			return reply(memoryAnswer{Node: p.Memories[p.about.Index], Context: text.Str}, nil)
		}
		return reply(memoryAnswer{Node: p.Memories[p.about.Index], Context: values.Text(output)}, nil)
	case engine.StepComplete:
		a := givenAnswer(output)
		a.Profile = p.Profiles[p.about.Profile].ID
		told := p.plan(&a)
		return reply(a, told)
	case engine.StepCall:
		wanted, err := p.wanted(p.about.Completion, p.about.Index)
		if err != nil {
			return node.Replied{}, err
		}
		tool, _ := p.tool(wanted.Name)
		args, err := arguments(wanted)
		if err != nil {
			args = nil // the person has dealt with that
		}
		return reply(toolAnswer{ID: wanted.ID, Name: wanted.Name, Node: tool.Node, Arguments: args, Result: output}, nil)
	}
	return node.Replied{Result: output}, nil
}

// givenAnswer reads what a model would have said: a completion as one is recorded, {content}, or just what it says.
func givenAnswer(output json.RawMessage) answer {
	var a answer
	if gjson.GetBytes(output, "message").IsObject() && json.Unmarshal(output, &a) == nil {
		a.Usage, a.Cost, a.Data, a.Problem = llm.Usage{}, 0, nil, "" // nobody was paid for it
	} else {
		a = answer{}
		content := output
		if field := gjson.GetBytes(output, "content"); field.Exists() {
			content = json.RawMessage(field.Raw)
		}
		a.Message.Content = values.Text(content)
	}
	a.Message.Role, a.Finish = llm.Assistant, cmp.Or(a.Finish, llm.FinishStop)
	return a
}

// load asks a memory what is known about the question.
func (p *progress) load(ctx context.Context, call *node.Call) (node.Outcome, error) {
	id := p.Memories[p.about.Index]
	call.Detail(map[string]any{"attached_node": id})
	out, err := useMemory(ctx, call, id, map[string]any{"operation": "load_context", "query": p.Query})
	if err != nil {
		call.Log(node.Warn, "a memory could not be read; the turn goes on without it", map[string]any{"node": id, "error": fault.From(err).Message})
		return nil, err
	}
	var found struct {
		Context string   `json:"context"`
		Sources []source `json:"sources"`
	}
	if err := json.Unmarshal(out, &found); err != nil {
		return nil, fault.Newf(fault.OutputInvalid, "memory %q answered with something else than a context", id)
	}
	return reply(memoryAnswer{id, found.Context, found.Sources}, nil)
}

// store hands the exchange to a memory.
func (p *progress) store(ctx context.Context, call *node.Call) (node.Outcome, error) {
	id := p.Memories[p.about.Index]
	call.Detail(map[string]any{"attached_node": id})
	last, err := p.last()
	if err != nil {
		return nil, err
	}
	out, err := useMemory(ctx, call, id, map[string]any{"operation": "remember", "user": p.Query, "assistant": last.Message.Content})
	if err != nil {
		call.Log(node.Warn, "a memory could not store the exchange", map[string]any{"node": id, "error": fault.From(err).Message})
		return nil, err
	}
	return reply(out, nil)
}

// useMemory runs an operation of an attached memory.
func useMemory(ctx context.Context, call *node.Call, id string, input map[string]any) (json.RawMessage, error) {
	raw, err := payload.Encode(input)
	if err != nil {
		return nil, err
	}
	return useNode(ctx, call, id, raw)
}

// useNode runs an attached node that must not wait, and returns its result.
func useNode(ctx context.Context, call *node.Call, id string, input json.RawMessage) (json.RawMessage, error) {
	outcome, err := call.Attached(node.Directed(ctx), id, input)
	if err != nil {
		return nil, err
	}
	done, ok := outcome.(node.Done)
	if !ok {
		return nil, fault.Newf(fault.Unsupported, "node %q waits, which an attached node cannot", id)
	}
	return done["result"], nil
}

// last is the last completion that has ended well.
func (p *progress) last() (answer, error) {
	for i := len(p.about.Log) - 1; i >= 0; i-- {
		if e := p.about.Log[i]; e.Kind == engine.StepComplete && e.Value >= 0 {
			return read[answer](p, e)
		}
	}
	return answer{}, fault.New(fault.Internal, "the turn has no completion")
}

// messages are the conversation so far: what the turn began with, what memories know, answers and results of tools.
// What does not fit goes in the order in which it matters least: history first, then what memories know.
func (p *progress) messages(left leaving) ([]llm.Message, error) {
	list := append([]llm.Message(nil), p.Request.Messages[:p.System]...)
	asked := p.Request.Messages[p.System:]
	if left >= leaveHistory {
		asked = asked[p.History:]
	}
	var later []llm.Message
	for _, e := range p.about.Log {
		switch {
		case e.Kind == engine.StepLoad && e.Value >= 0 && left < leaveMemories:
			m, err := read[memoryAnswer](p, e)
			if err != nil {
				return nil, err
			}
			if m.Context != "" {
				list = append(list, llm.Message{Role: llm.System, Content: m.Context})
			}
		case e.Kind == engine.StepComplete && e.Value >= 0:
			a, err := read[answer](p, e)
			if err != nil {
				return nil, err
			}
			later = append(later, a.Message)
			if a.Problem != "" {
				later = append(later, llm.Repair(a.Problem, p.Language))
			}
		case e.Kind == engine.StepCall:
			m, err := p.toolMessage(e)
			if err != nil {
				return nil, err
			}
			later = append(later, m)
		}
	}
	return append(append(list, asked...), later...), nil
}

// leaving is what is left out of a conversation that is too long for a model.
type leaving int

const (
	leaveNothing leaving = iota
	leaveHistory
	leaveMemories
)

// toolMessage is what the model is told of a call.
func (p *progress) toolMessage(e engine.LoopEntry) (llm.Message, error) {
	wanted, err := p.wanted(e.Completion, e.Index)
	if err != nil {
		return llm.Message{}, err
	}
	m := llm.Message{Role: llm.ToolRole, ToolCallID: wanted.ID, ToolName: wanted.Name}
	switch {
	case e.Denied:
		m.Failed, m.Content = true, p.say(text.Of("A person has refused this call."))
	case e.Value < 0:
		m.Failed, m.Content = true, fmt.Sprintf("%s: %s", e.Code, e.Message)
	default:
		a, err := read[toolAnswer](p, e)
		if err != nil {
			return llm.Message{}, err
		}
		m.Content = values.Text(a.Result)
	}
	return m, nil
}

// say puts a text into the language of the turn.
func (p *progress) say(t text.Text) string { return t.In(p.Language) }

// wanted is a tool call that a completion wants.
func (p *progress) wanted(completion, index int) (llm.ToolCall, error) {
	for _, e := range p.about.Log {
		if e.Kind != engine.StepComplete || e.Completion != completion || e.Value < 0 {
			continue
		}
		a, err := read[answer](p, e)
		if err != nil {
			return llm.ToolCall{}, err
		}
		if index < len(a.Message.ToolCalls) {
			return a.Message.ToolCalls[index], nil
		}
	}
	return llm.ToolCall{}, fault.Newf(fault.Internal, "completion %d wants no call %d", completion, index)
}

// complete asks the model.
func (t *turns) complete(ctx context.Context, call *node.Call, p *progress) (node.Outcome, error) {
	which := p.Profiles[p.about.Profile]
	profile := llm.Profile{}
	if which.Own != nil {
		profile = *which.Own
	} else {
		stored, err := t.models.ProfileFor(ctx, call, which.ID)
		if err != nil {
			return nil, err
		}
		stored.Model = cmp.Or(which.Model, stored.Model)
		profile = stored
	}
	var done models.Spoken
	var err, tooLong error
	request := p.Request
	for left := leaveNothing; ; left++ {
		before := len(request.Messages)
		if request.Messages, err = p.messages(left); err != nil {
			return nil, err
		}
		if left > leaveNothing && len(request.Messages) == before {
			if err = tooLong; left == leaveMemories {
				break
			}
			continue // nothing went that could: asking the same again does not help
		}
		done, err = t.say(ctx, call, p, profile, request)
		if fault.CodeOf(err) != fault.ContextTooLong || left == leaveMemories {
			break
		}
		tooLong = err
		call.Log(node.Warn, "the conversation is too long for the model; the oldest of it is left out", map[string]any{"profile_id": profile.ID})
	}
	if err != nil {
		return models.WaitOrFail(err)
	}
	if text := done.Message.Content; text != "" && !request.Stream && p.ToUser {
		call.Emit(text) // nobody has seen it come, and it is for the user
	}
	a := answer{Completion: done.Completion, Profile: profile.ID, Cost: done.Cost}
	told := p.plan(&a)
	raw, err := payload.Encode(a)
	if err != nil {
		t.models.GiveBack(ctx, call, done.Reserved, done.Usage, profile)
		return nil, fault.New(fault.OutputInvalid, "the model's answer cannot be kept").WithCause(err)
	}
	out := node.Replied{Result: raw, Reply: told}
	if done.Reserved != "" {
		out.Settle = []node.Settlement{{ID: done.Reserved, Tokens: a.Usage.Total(), Cost: a.Cost}}
	}
	return out, nil
}

// say does the completion, and lets the text be seen as it comes.
func (t *turns) say(ctx context.Context, call *node.Call, p *progress, profile llm.Profile, request llm.Request) (models.Spoken, error) {
	return t.models.Complete(ctx, call, t.kind.Name, profile, llm.Call{
		Request: request, Snapshot: snapshotOf(p.Snapshot),
		FirstToken: time.Duration(p.FirstTokenMS) * time.Millisecond, Total: time.Duration(p.TotalMS) * time.Millisecond,
		Sink: func(d llm.Delta) {
			if d.Text != "" && request.Stream {
				call.Emit(d.Text)
			}
		},
	})
}

// plan is what the program has to know of an answer. The shape of one that is final is checked here.
func (p *progress) plan(a *answer) engine.LoopReply {
	if calls := a.Message.ToolCalls; len(calls) > 0 {
		var list []engine.LoopCall
		for _, c := range calls {
			tool, ok := p.tool(c.Name)
			if ok && tool.Node == "" && tool.Server == "" {
				return engine.LoopReply{} // the workflow does it, with what the turn hands on
			}
			one := engine.LoopCall{Effect: tool.effect(c), TimeoutMS: tool.TimeoutMS}
			one.Approve = tool.asked(c)
			if one.Effect != workflow.Once {
				one.MaxRetries = 2
			}
			list = append(list, one)
		}
		return engine.LoopReply{Calls: list}
	}
	var err error
	switch {
	case p.Request.Schema != nil:
		a.Data, err = p.Request.Schema.Read(a.Message.Content)
	case p.Request.JSON:
		a.Data, err = llm.FindJSON(a.Message.Content)
	default:
		return engine.LoopReply{}
	}
	if err != nil {
		a.Problem = fault.From(err).Message
	}
	// More of the same would be cut off again.
	return engine.LoopReply{Unfit: err != nil, Final: err != nil && a.Finish == llm.FinishLength}
}

func (p *progress) tool(name string) (turnTool, bool) {
	for _, t := range p.Tools {
		if t.Name == name {
			return t, true
		}
	}
	return turnTool{}, false
}

func snapshotOf(raw json.RawMessage) llm.Snapshot {
	var s llm.Snapshot
	if json.Unmarshal(raw, &s) != nil {
		return llm.Snapshot{} // it is for observers only
	}
	return s
}

// reply ends a step with its result and what the program is told of it.
func reply(result, told any) (node.Replied, error) {
	raw, err := payload.Encode(result)
	if err != nil {
		return node.Replied{}, fault.New(fault.OutputInvalid, "the step made a result that JSON cannot hold").WithCause(err)
	}
	return node.Replied{Result: raw, Reply: told}, nil
}
