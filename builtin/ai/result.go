package ai

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/builtin/models"
	"tandem/builtin/values"
	"tandem/engine"
	"tandem/fault"
	"tandem/llm"
	"tandem/node"
	"tandem/payload"
)

// agentOutput is the result of a turn.
type agentOutput struct {
	// Content is the answer: a text, or the object that was asked for.
	Content       json.RawMessage `json:"content" doc:"The answer: a text, or the value that was asked for." zh:"回答：文本，或所要求的值。"`
	Response      string          `json:"response" doc:"The answer as text." zh:"回答文本。"`
	ExtractedData json.RawMessage `json:"extracted_data" doc:"The answer as a value, if it is JSON; else null." zh:"回答为 JSON 时的值，否则为 null。"`
	Metadata      turnMetadata    `json:"metadata" doc:"Which model and profile have answered, in how many completions, and what it cost." zh:"调用的情况：所用的模型与配置档、调用次数和费用。"`
	TokenUsage    models.Usage    `json:"token_usage" doc:"The tokens that were used." zh:"所用的令牌数。"`
	Usage         models.Usage    `json:"usage" doc:"The same, by an older name." zh:"同上（旧名称）。"`
	FinishReason  string          `json:"finish_reason" doc:"Why the model has ended." zh:"模型结束的原因。"`
	FunctionCalls []turnCall      `json:"function_calls" doc:"All calls of tools and functions that the model has made." zh:"模型作出的所有工具和函数调用。"`
	ToolCalls     []turnCall      `json:"tool_calls" doc:"The calls of its last answer, which are not run here." zh:"最后一次回答中的调用，此处不执行。"`
	ToolResults   []toolAnswer    `json:"tool_results" doc:"What they have returned." zh:"工具的返回结果。"`
	Reasoning     string          `json:"reasoning,omitempty" doc:"What the model has thought, if it says." zh:"模型的思考过程（若有）。"`
	Sources       []source        `json:"sources,omitempty" doc:"The parts of documents that the answer could draw on: id, document, title, page, section, row, chunk, start and end, and whether the answer names it (cited)." zh:"来源：回答可依据的文档片段，含 id、document、title、page、section、row、chunk、start、end，以及回答是否引用（cited）。"`
	Context       turnContext     `json:"context" doc:"The conversation, as the next turn is told it." zh:"会话内容，供下一轮使用。"`
	// AI_AGENT.LLM has these as well, in the spelling of the workflows that it comes from.
	OldFinishReason string       `json:"finishReason,omitempty" doc:"finish_reason as AI_AGENT.LLM has it besides." zh:"finish_reason（AI_AGENT.LLM 的旧拼写）。"`
	OldToolCalls    []turnCall   `json:"toolCalls,omitzero" doc:"tool_calls as AI_AGENT.LLM has it besides." zh:"tool_calls（AI_AGENT.LLM 的旧拼写）。"`
	OldToolResults  []toolAnswer `json:"toolResults,omitzero" doc:"tool_results as AI_AGENT.LLM has it besides." zh:"tool_results（AI_AGENT.LLM 的旧拼写）。"`
}

type turnMetadata struct {
	Model       string  `json:"model"`
	Profile     string  `json:"profile_id"`
	Completions int     `json:"completions"`
	Cost        float64 `json:"cost"`
}

// turnCall is a tool call that the model wanted.
type turnCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// turnContext is what later turns of the execution read: the conversation with this turn in it. Appended is how many
// messages at its end are this turn's.
type turnContext struct {
	Conversation []llm.Message `json:"conversation"`
	Appended     int           `json:"appended"`
}

// isTurnContext says that a context is what another turn has left: the conversation, which is found by itself.
func isTurnContext(raw json.RawMessage) bool {
	return gjson.GetBytes(raw, "conversation").IsArray() && gjson.GetBytes(raw, "appended").Exists()
}

// maxConversation is how many messages of a conversation are handed on.
const maxConversation = 100

// finishLimit is the finish reason of a turn that wanted more rounds of tools than it may have.
const finishLimit = "max_iterations"

func (t *turns) close(call *node.Call, e node.Ending) (node.Done, error) {
	p := &progress{values: e.Values}
	var end engine.LoopEnd
	if err := json.Unmarshal(e.Result, &end); err != nil {
		return nil, fault.Newf(fault.Internal, "the end of the turn cannot be read: %w", err)
	}
	if err := json.Unmarshal(e.State, &p.turnState); err != nil {
		return nil, fault.Newf(fault.Internal, "the state of the turn cannot be read: %w", err)
	}
	p.about.Log = end.Log
	last, err := p.last()
	if err != nil {
		return nil, err
	}
	structured := p.Request.Schema != nil || p.Request.JSON
	if end.Unfit || structured && last.Data == nil && len(last.Message.ToolCalls) == 0 {
		return nil, fault.Newf(fault.OutputInvalid, "the model's answer has not the shape that was asked for: %s", last.Problem).
			With("finish_reason", last.Finish).With("answer", values.Excerpt(last.Message.Content))
	}
	out := agentOutput{
		Response: last.Message.Content, FinishReason: string(last.Finish), Reasoning: last.Message.Reasoning,
		ExtractedData: json.RawMessage("{}"),
		FunctionCalls: []turnCall{}, ToolResults: []toolAnswer{}, ToolCalls: []turnCall{},
	}
	if end.Limit {
		out.FinishReason = finishLimit
	}
	if err := p.sum(&out); err != nil {
		return nil, err
	}
	if out.Sources, err = p.sources(last.Message.Content); err != nil {
		return nil, err
	}
	out.Metadata.Model, out.Metadata.Profile = last.Model, last.Profile
	if out.Context, err = p.conversation(structured); err != nil {
		return nil, err
	}
	keys := node.Done{}
	if out.Content, err = payload.Encode(last.Message.Content); err != nil {
		return nil, err
	}
	if last.Data != nil {
		out.Content = last.Data
		if values.IsObject(last.Data) {
			out.ExtractedData = last.Data
		}
	}
	call.Detail(map[string]any{
		"ai_model": last.Model, "prompt_tokens": out.Usage.InputTokens, "completion_tokens": out.Usage.OutputTokens,
		"model_response": values.Excerpt(last.Message.Content),
	})
	if t.kind.Name == anyModel {
		out.OldFinishReason, out.OldToolCalls, out.OldToolResults = out.FinishReason, out.ToolCalls, out.ToolResults
	}
	payload, err := payload.Encode(out)
	if err != nil {
		return nil, fault.New(fault.OutputInvalid, "the model's answer cannot be handed on").WithCause(err)
	}
	keys["result"] = payload
	if values.IsObject(last.Data) {
		keys["structured_data"] = payload
	}
	return keys, nil
}

// sum adds up what the completions used and what the tools were asked and answered.
func (p *progress) sum(out *agentOutput) error {
	var usage llm.Usage
	var cost int64
	for _, e := range p.about.Log {
		switch e.Kind {
		case engine.StepComplete:
			if e.Value < 0 {
				continue
			}
			a, err := read[answer](p, e)
			if err != nil {
				return err
			}
			usage, cost = usage.Add(a.Usage), cost+a.Cost
			out.Metadata.Completions++
			out.ToolCalls = out.ToolCalls[:0]
			for _, c := range a.Message.ToolCalls {
				one := turnCall{c.ID, c.Name, json.RawMessage(c.Arguments)}
				if !json.Valid(one.Arguments) {
					one.Arguments, _ = json.Marshal(c.Arguments) // a text is always JSON
				}
				out.FunctionCalls, out.ToolCalls = append(out.FunctionCalls, one), append(out.ToolCalls, one)
			}
		case engine.StepCall:
			m, err := p.toolMessage(e)
			if err != nil {
				return err
			}
			result := toolAnswer{ID: m.ToolCallID, Name: m.ToolName, Failed: m.Failed}
			if e.Value >= 0 && !e.Denied {
				if result, err = read[toolAnswer](p, e); err != nil {
					return err
				}
			} else if result.Result, err = payload.Encode(m.Content); err != nil {
				return err
			}
			out.ToolResults = append(out.ToolResults, result)
		}
	}
	out.Usage = models.Usage{InputTokens: usage.InputTokens, OutputTokens: usage.OutputTokens, TotalTokens: usage.Total(),
		CachedTokens: usage.CachedTokens}
	out.TokenUsage, out.Metadata.Cost = out.Usage, float64(cost)/1e6
	return nil
}

// conversation is that of the execution with this turn appended: the person's words, rounds of tools, the answer. Tries that
// did not have the right shape are not part of it.
func (p *progress) conversation(structured bool) (turnContext, error) {
	list := slices.Concat(p.Before, p.Request.Messages[p.System:])
	unanswered := map[string]bool{}
	for _, e := range p.about.Log {
		switch {
		case e.Kind == engine.StepComplete && e.Value >= 0:
			a, err := read[answer](p, e)
			if err != nil {
				return turnContext{}, err
			}
			if structured && a.Problem != "" {
				continue
			}
			for _, c := range a.Message.ToolCalls {
				unanswered[c.ID] = true
			}
			list = append(list, a.Message)
		case e.Kind == engine.StepCall:
			m, err := p.toolMessage(e)
			if err != nil {
				return turnContext{}, err
			}
			delete(unanswered, m.ToolCallID)
			list = append(list, m)
		}
	}
	if len(unanswered) > 0 { // a service refuses calls without results in what came before
		if last := &list[len(list)-1]; last.Content != "" {
			last.ToolCalls = nil
		} else {
			list = list[:len(list)-1] // nor does it take a message that says nothing
		}
	}
	for i := range list {
		list[i].Images, list[i].Opaque, list[i].Reasoning = nil, nil, ""
	}
	appended := len(list) - p.History - len(p.Before)
	if over := len(list) - maxConversation; over > 0 {
		for over < len(list) && list[over].Role != llm.User {
			over++ // it begins with somebody's words
		}
		list = list[over:]
	}
	return turnContext{list, min(appended, len(list))}, nil
}

// conversation reads what earlier turns of the execution have left: the messages of the last rounds, those before them, and
// a snapshot for observers.
func conversation(call *node.Call, rounds int) (before, last []llm.Message, snapshot json.RawMessage, err error) {
	data, err := call.Context()
	if err != nil {
		return nil, nil, nil, err
	}
	type told struct {
		Context turnContext `json:"context"`
		ordinal uint64
	}
	var turns []told
	for _, r := range data.StepResults { // order does not matter: sorted below
		if !r.IsSuccess || !strings.HasPrefix(r.ToolID, "AI_AGENT.") {
			continue
		}
		one := told{ordinal: r.Ordinal}
		if json.Unmarshal(r.Output, &one) == nil && len(one.Context.Conversation) > 0 { // one that a person gave instead may be anything
			turns = append(turns, one)
		}
	}
	slices.SortFunc(turns, func(a, b told) int { return cmp.Compare(a.ordinal, b.ordinal) })
	var all []llm.Message
	for _, t := range turns {
		all = t.Context.after(all)
	}
	list := lastRounds(all, rounds)
	before = all[:len(all)-len(list)]
	results := make(map[string]json.RawMessage, len(data.StepResults))
	for id, r := range data.StepResults { // order does not matter: one entry per node
		if len(r.Output) <= models.MaxSnapshotValue {
			results[id] = r.Output
		}
	}
	variables := make(map[string]json.RawMessage, len(data.Merged))
	for name, value := range data.Merged { // order does not matter: one entry per name
		if len(value) <= models.MaxSnapshotValue {
			variables[name] = value
		}
	}
	snapshot, err = payload.Encode(map[string]any{"conversation": list, "variable_values": variables, "node_results": results})
	if err != nil {
		return nil, nil, nil, fault.Newf(fault.Internal, "the snapshot of the conversation: %w", err)
	}
	return before, list, snapshot, nil
}

// after is the conversation with a turn in it that ended after all of it: the turn's own, if that has all of it; else, since
// the turn ran beside others, what it has said comes after what they have.
func (c turnContext) after(all []llm.Message) []llm.Message {
	known := len(c.Conversation) - max(0, min(c.Appended, len(c.Conversation)))
	if len(all) <= known && reflect.DeepEqual(all, c.Conversation[:len(all):len(all)]) || len(all) == 0 {
		return c.Conversation
	}
	return append(slices.Clip(all), c.Conversation[known:]...)
}

// lastRounds are the last so many rounds: what somebody said with everything that followed it.
func lastRounds(list []llm.Message, rounds int) []llm.Message {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].Role != llm.User {
			continue
		}
		if rounds--; rounds < 0 {
			return list[i+1+trailing(list[i+1:]):]
		}
	}
	if rounds < 0 {
		return nil
	}
	return list
}

// trailing is how many messages still belong to the round before.
func trailing(list []llm.Message) int {
	for i, m := range list {
		if m.Role == llm.User {
			return i
		}
	}
	return len(list)
}
