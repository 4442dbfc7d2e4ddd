// Package task holds the kinds that are about agents: the task of an agent, step by step, and the node that gives an agent a question
// (AI_AGENT.MCP_AGENT). What is done next is decided by the program in package agent; this package does it.
//
// The package that puts a program together imports it; nothing else does, except for what it has to know of agents ([Agents]).
package task

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"tandem/agent"
	"tandem/api"
	"tandem/builtin/models"
	"tandem/builtin/toolset"
	"tandem/builtin/values"
	"tandem/fault"
	"tandem/llm"
	"tandem/mcp"
	"tandem/node"
	"tandem/payload"
	"tandem/text"
	"tandem/workflow"
)

// taskConfig is the configuration of a task: an [agent.Spec].
type taskConfig struct {
	Name        string      `json:"name" doc:"What the agent is called." zh:"智能体的名称。"`
	Description string      `json:"description" doc:"What the agent is for." zh:"智能体的用途。"`
	LLMProfile  string      `json:"llm_profile" names:"profile" required:"true" doc:"The model profile that it plans with." zh:"规划所用的模型配置档。"`
	MCPServers  []string    `json:"mcp_servers" names:"tool_server" doc:"The tool servers that it may use." zh:"可使用的工具服务器。"`
	AutoExecute bool        `json:"auto_execute" doc:"Whether plans are carried out without asking first." zh:"是否不经询问直接执行计划。"`
	Policy      node.Object `json:"policy" doc:"What it may do without asking." zh:"无需询问即可执行的范围。"`
	Limits      node.Object `json:"limits" doc:"How much a task may use." zh:"一次任务的用量上限。"`
	Language    string      `json:"language" enum:"zh|en" doc:"The language in which it speaks." zh:"使用的语言。"`
}

// spec is the agent that the configuration describes.
func (c taskConfig) spec() (agent.Spec, error) {
	s := agent.Spec{
		Name: c.Name, Description: c.Description, LLMProfile: c.LLMProfile, MCPServers: c.MCPServers,
		AutoExecute: c.AutoExecute, Language: c.Language,
	}
	for _, part := range []struct {
		name string
		raw  node.Object
		to   any
	}{{"policy", c.Policy, &s.Policy}, {"limits", c.Limits, &s.Limits}} {
		if values.IsNull(json.RawMessage(part.raw)) {
			continue
		}
		if err := json.Unmarshal(part.raw, part.to); err != nil {
			return s, fault.Newf(fault.InvalidConfig, "%q cannot be read: %w", part.name, err).With("path", "configurations."+part.name)
		}
	}
	if err := s.Check(); err != nil {
		return s, fault.Newf(fault.InvalidConfig, "the agent cannot be used: %s", fault.From(err).Message).With("path", "configurations")
	}
	return s, nil
}

// Bounds of what a task keeps for its steps.
const (
	maxToolDescription = 1_000 // of a description, in characters
	maxOutputSchema    = 4 << 10
	maxToolSchemas     = 4 << 20 // of all tools together, in bytes
	maxTaskTools       = 1_000
	maxDocument        = 8_000 // characters
	maxTaskRounds      = 3
	maxTaskFacts       = 50
)

// taskCallMS is how long a call may take before the engine ends it. The pool ends it first: how long depends on the server's own
// limit and on its progress.
const taskCallMS = int64((100*time.Minute + time.Minute) / time.Millisecond)

// task is the kind that leads a task: the program of package agent decides what is next, the steps here do it.
func task(m *models.Models, tools *mcp.Pool, agents Agents) node.Kind {
	t := &tasks{m, tools, agents}
	return node.Lead(
		node.About{
			Name: agent.TaskKind, Title: node.Says("Task of an agent", "智能体任务"),
			Description: node.Says("Plans and does a task with the tools of an agent. Agents make it.", "使用智能体的工具规划并执行任务，由智能体生成。"),
			Effect:      workflow.Idempotent, Inner: true,
			Keys: []node.Key{{Name: "result", Meaning: node.Says("The answer, the steps and the tokens used.", "答复、步骤和所用的令牌。")}},
		},
		node.Leader[taskConfig, json.RawMessage]{Program: agent.Name, Open: t.open, Step: t.step, Given: t.given, Close: t.close},
		planTask)
}

func planTask(p *node.Planning, _ *taskConfig) {
	p.Whole = true
	// What an agent is called and is for are its author's words, and braces in them are braces.
	p.Shielded = append(p.Shielded, p.At("name"), p.At("description"))
}

// tasks does the steps of tasks.
type tasks struct {
	models *models.Models
	tools  *mcp.Pool
	agents Agents
}

// taskState is what the steps of a task share: everything that was known when it began. It is recorded once.
type taskState struct {
	Agent   string `json:"agent,omitempty"`
	Purpose string `json:"purpose,omitempty"`
	Profile string `json:"profile"`
	// Tries is how often a model is asked for one decision; 0: as often as elsewhere.
	Tries     int               `json:"tries,omitempty"`
	Language  string            `json:"language"`
	Question  string            `json:"question"`
	Metadata  json.RawMessage   `json:"metadata,omitempty"`
	Documents []json.RawMessage `json:"documents,omitempty"`
	Rounds    []Round           `json:"rounds,omitempty"`
	Facts     []string          `json:"facts,omitempty"`
	Tools     []taskTool        `json:"tools,omitempty"`
	// Inactive are the servers that the user has not activated, Unregistered those that are not there or switched off, Unreachable those
	// that did not answer.
	Inactive     []string `json:"inactive,omitempty"`
	Unregistered []string `json:"unregistered,omitempty"`
	Unreachable  []string `json:"unreachable,omitempty"`
}

func (t *tasks) open(ctx context.Context, call *node.Call, cfg taskConfig, input json.RawMessage) (node.Led, error) {
	spec, err := cfg.spec()
	if err != nil {
		return node.Led{}, err
	}
	in, err := readAsked(call, input)
	if err != nil {
		return node.Led{}, err
	}
	state := taskState{Agent: spec.Name, Purpose: spec.Description, Profile: spec.LLMProfile, Tries: spec.Limits.JSONTries,
		Language: taskLanguage(call, in.Language, spec.Language)}
	state.keepAsked(&in)
	if _, err := t.models.ProfileFor(ctx, call, spec.LLMProfile); err != nil {
		return node.Led{}, err
	}
	auto := spec.AutoExecute && (in.AutoExecute == nil || *in.AutoExecute)
	if auto {
		if auto, err = t.agents.Auto(ctx, call.Workspace, call.UserID); err != nil {
			return node.Led{}, err
		}
	}
	if in.ConversationID != "" {
		state.Rounds, err = t.agents.Rounds(ctx, RoundsQuery{
			Workspace: call.Workspace, User: call.UserID, Workflow: call.WorkflowID,
			Conversation: in.ConversationID, Before: call.ExecutionID,
			Limit: cmp.Or(spec.Limits.HistoryRounds, maxTaskRounds),
		})
		if err != nil {
			return node.Led{}, err
		}
		var facts []string
		for i, r := range state.Rounds {
			facts = append(facts, r.Facts...)
			state.Rounds[i] = Round{Question: r.Question, Answer: text.Fit(r.Answer, models.MaxPromptValue)}
		}
		state.Facts = models.Distinct(facts, maxTaskFacts)
	}
	if err := t.gather(ctx, call, spec.MCPServers, &state); err != nil {
		return node.Led{}, err
	}
	config, err := json.Marshal(agent.Config{
		Limits: spec.Limits, Auto: auto, AutoApprove: spec.Policy.AutoApprove, Language: state.Language,
		Timeouts: agent.Timeouts{DecisionMS: (llm.DefaultTotal + time.Minute).Milliseconds(), CallMS: taskCallMS},
	})
	if err != nil {
		return node.Led{}, err
	}
	raw, err := payload.Encode(state)
	if err != nil {
		return node.Led{}, fault.New(fault.InvalidInput, "what the task was given cannot be kept").WithCause(err)
	}
	return node.Led{Config: config, State: raw}, nil
}

// readAsked reads what the task was asked: what its trigger was given. The input of the node has the values by name only; it is read where
// there is no trigger.
func readAsked(call *node.Call, input json.RawMessage) (in api.TaskRequest, err error) {
	request := input
	if values.IsObject(call.Trigger) {
		request = call.Trigger
	}
	if err := json.Unmarshal(request, &in); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return in, fault.Newf(fault.InvalidInput, "%s: it is a %s and must not be", wrong.Field, wrong.Value).With("path", wrong.Field)
		}
		return in, fault.New(fault.InvalidInput, "what the task is asked cannot be read; give an object with a question").WithCause(err)
	}
	return in, agent.CheckRequest(&in)
}

// taskLanguage is the first that is wished for, else that of the execution.
func taskLanguage(call *node.Call, wishes ...string) string {
	for _, w := range wishes {
		if w != "" {
			return call.Speaks(w)
		}
	}
	return call.Speaks("")
}

// keepAsked keeps what the steps need of what was asked for.
func (s *taskState) keepAsked(in *api.TaskRequest) {
	s.Question = in.Question
	var known []values.Member
	for _, part := range []json.RawMessage{in.Params, in.Metadata} { // the second wins
		known = values.Overlay(known, values.Members(part)...)
	}
	if len(known) > 0 {
		s.Metadata = values.Object(known)
	}
	for _, d := range in.Documents {
		if said := values.Text(d); utf8.RuneCountInString(said) > maxDocument {
			d = values.Encode(text.Fit(said, maxDocument))
		}
		s.Documents = append(s.Documents, d)
	}
}

// taskStep is a step of a task, as the functions here see it.
type taskStep struct {
	taskState
	node.Step
	about agent.About
	// verdict is what the call that is judged meets, besides what a model says of it.
	verdict mcp.Verdict
}

func readTaskStep(s node.Step) (*taskStep, error) {
	p := &taskStep{Step: s}
	if err := json.Unmarshal(s.State, &p.taskState); err != nil {
		return nil, fault.Newf(fault.Internal, "the state of the task cannot be read: %w", err)
	}
	if err := json.Unmarshal(s.Config, &p.about); err != nil {
		return nil, fault.Newf(fault.Internal, "the step %q cannot be read: %w", s.Name, err)
	}
	return p, nil
}

// value is a result of another step, nil when there is none.
func (p *taskStep) value(v agent.Value) json.RawMessage {
	raw, _ := v.In(p.Values)
	return raw
}

// arguments are the present ones.
func (p *taskStep) arguments() json.RawMessage {
	if raw := p.value(p.about.Arguments); values.IsObject(raw) {
		return raw
	}
	return json.RawMessage("{}")
}

func (p *taskStep) say(t text.Text) string { return t.In(p.Language) }

func (p *taskStep) tool(id string) (taskTool, bool) {
	i := slices.IndexFunc(p.Tools, func(t taskTool) bool { return t.ID == id })
	if i < 0 {
		return taskTool{}, false
	}
	return p.Tools[i], true
}

func (t *tasks) step(ctx context.Context, call *node.Call, s node.Step) (node.Outcome, error) {
	p, err := readTaskStep(s)
	if err != nil {
		return nil, err
	}
	switch s.Kind {
	case agent.KindParams, agent.KindFill, agent.KindMissing, agent.KindAskParams, agent.KindToolRisk:
		if err := t.renew(ctx, call, p); err != nil {
			return nil, err
		}
	}
	if s.Kind == agent.KindToolRisk {
		if err := t.weigh(ctx, call, p); err != nil {
			return nil, err
		}
	}
	switch s.Kind {
	case agent.KindConfirmFlow, agent.KindConfirm:
		return p.confirm(call)
	case agent.KindAskParams:
		return p.askParams(call)
	case agent.KindCall:
		return t.call(ctx, call, p)
	case agent.KindParams:
		return t.params(ctx, call, p)
	case agent.KindFill:
		return t.fill(ctx, call, p)
	case agent.KindSummary:
		return t.summary(ctx, call, p)
	}
	d, ok := p.decision(s.Kind)
	if !ok {
		return nil, fault.Newf(fault.Internal, "a task has no step of the kind %q", s.Kind)
	}
	return t.decide(ctx, call, p, d)
}

// stepDone is the end of a step: its result, what the program decides by, and what its model has used.
func stepDone(result, told any, used llm.Usage) (node.Replied, error) {
	raw, err := payload.Encode(result)
	if err != nil {
		return node.Replied{}, fault.New(fault.OutputInvalid, "the step made a result that JSON cannot hold").WithCause(err)
	}
	var fields []values.Member
	if told != nil {
		reply, err := payload.Encode(told)
		if err != nil {
			return node.Replied{}, fault.New(fault.OutputInvalid, "the step made a reply that JSON cannot hold").WithCause(err)
		}
		fields = values.Members(reply)
	}
	if used.Total() > 0 {
		fields = append(fields, values.Field("usage", agent.Usage{InputTokens: used.InputTokens, OutputTokens: used.OutputTokens,
			CachedTokens: used.CachedTokens}))
	}
	out := node.Replied{Result: raw}
	if len(fields) > 0 {
		out.Reply = values.Object(fields)
	}
	return out, nil
}

// given makes what a person gave instead of a step's work the end of it. What a call would have brought is taken as it is, a decision is
// read as that of a model would be. A confirmation cannot be given this way: it is for those who may answer the question.
func (t *tasks) given(_ *node.Call, s node.Step, output json.RawMessage) (node.Replied, error) {
	p, err := readTaskStep(s)
	if err != nil {
		return node.Replied{}, err
	}
	refused := func(problem string) (node.Replied, error) {
		return node.Replied{}, fault.Newf(fault.InvalidInput, "output: it cannot stand for the step %q: %s", s.Name,
			problem).With("path", "output")
	}
	switch s.Kind {
	case agent.KindConfirmFlow, agent.KindConfirm:
		return stepDone(map[string]any{"confirm": false, "reason": "a skipped question is not a confirmation"},
			agent.ConfirmReply{}, llm.Usage{})
	case agent.KindAskParams:
		answer, told := readGivenParams(output)
		return stepDone(answer, told, llm.Usage{})
	case agent.KindCall:
		return stepDone(givenResult(output), nil, llm.Usage{})
	case agent.KindParams, agent.KindFill:
		if !values.IsObject(output) {
			return refused("the arguments are an object")
		}
		if tool, ok := p.tool(p.about.Tool); ok {
			fixed, missing, problem := toolset.CheckArguments(tool.InputSchema, output)
			if len(missing) > 0 {
				problem = "missing: " + strings.Join(missing, ", ")
			}
			if problem != "" {
				return refused(problem)
			}
			output = fixed
		}
		return stepDone(output, nil, llm.Usage{})
	case agent.KindSummary:
		a := taskAnswer{Facts: []string{}}
		if values.IsObject(output) {
			if json.Unmarshal(output, &a) != nil {
				return refused(`an answer is a text, or an object with "answer"`)
			}
		} else {
			a.Answer = values.Text(output)
		}
		if strings.TrimSpace(a.Answer) == "" {
			return refused("the answer is empty")
		}
		return stepDone(a, nil, llm.Usage{})
	}
	d, ok := p.decision(s.Kind)
	if !ok {
		return node.Replied{}, fault.Newf(fault.Internal, "a task has no step of the kind %q", s.Kind)
	}
	result, told, problem, err := d.readAnswer(output)
	if err != nil {
		return node.Replied{}, err
	}
	if problem != "" {
		return refused(problem)
	}
	if s.Kind == agent.KindFlowRisk || s.Kind == agent.KindToolRisk {
		told = agent.RiskReply{} // who skips a judgement does not open the gate behind it: the person whose task it is will be asked
	}
	return stepDone(result, told, llm.Usage{})
}

// givenResult is what somebody says that a tool has brought: an object with a message.
func givenResult(output json.RawMessage) json.RawMessage {
	if values.IsNull(output) {
		return values.Object([]values.Member{values.Field("message", "")})
	}
	if !values.IsObject(output) {
		return values.Object([]values.Member{{Key: "result", Value: output}, values.Field("message", values.Text(output))})
	}
	fields := values.Members(output)
	if !slices.ContainsFunc(fields, func(m values.Member) bool { return m.Key == "message" }) {
		fields = append(fields, values.Field("message", payload.JSON(output)))
	}
	return values.Object(fields)
}

// taskOutput is the result of a task.
type taskOutput struct {
	Answer       string                     `json:"answer"`
	Status       string                     `json:"status"`
	FlowName     string                     `json:"flow_name"`
	FlowRisk     *agent.RiskReply           `json:"flow_risk,omitempty"`
	Steps        []taskDone                 `json:"steps"`
	PlanIDs      []string                   `json:"plan_ids"`
	StepCount    int                        `json:"step_count"`
	FailureCount int                        `json:"failure_count"`
	Facts        []string                   `json:"facts"`
	FilledSlots  map[string]json.RawMessage `json:"filled_slots"`
	Reasoning    string                     `json:"reasoning"`
	TokenUsage   models.Usage               `json:"token_usage"`
}

// taskDone is a step of a task that has ended.
type taskDone struct {
	StepID      string          `json:"step_id"`
	Tool        string          `json:"tool"`
	Description string          `json:"description,omitempty"`
	Arguments   json.RawMessage `json:"arguments,omitempty"`
	Result      json.RawMessage `json:"result,omitempty"`
	Risk        agent.Risk      `json:"risk,omitempty"`
	Status      agent.Status    `json:"status"`
	Rung        agent.Rung      `json:"rung,omitempty"`
	PlanID      string          `json:"plan_id"`
	Error       string          `json:"error,omitempty"`
}

// maxTaskResult is how large a tool's result may be to stand in the task's own once more; the step's output has it in any case.
const maxTaskResult = 256 << 10

func (t *tasks) close(_ context.Context, call *node.Call, _ taskConfig, e node.Ending) (node.Done, error) {
	var end agent.End
	if err := json.Unmarshal(e.Result, &end); err != nil {
		return nil, fault.Newf(fault.Internal, "the end of the task cannot be read: %w", err)
	}
	read := func(v agent.Value, to any) error {
		raw, ok := v.In(e.Values)
		if !ok {
			return nil
		}
		if err := json.Unmarshal(raw, to); err != nil {
			return fault.Newf(fault.Internal, "a result of the task cannot be read: %w", err)
		}
		return nil
	}
	var name struct {
		FlowName string `json:"flow_name"`
	}
	var answer taskAnswer
	out := taskOutput{
		Status: "SUCCESS", Steps: []taskDone{}, PlanIDs: end.PlanIDs, StepCount: end.Steps, FailureCount: end.Failures, Facts: []string{},
		FilledSlots: map[string]json.RawMessage{},
		TokenUsage: models.Usage{InputTokens: end.Usage.InputTokens, OutputTokens: end.Usage.OutputTokens,
			TotalTokens: end.Usage.InputTokens + end.Usage.OutputTokens, CachedTokens: end.Usage.CachedTokens},
	}
	if err := errors.Join(read(end.FlowName, &name), read(end.FlowRisk, &out.FlowRisk), read(end.Answer, &answer)); err != nil {
		return nil, err
	}
	out.FlowName, out.Answer, out.Reasoning = name.FlowName, answer.Answer, answer.Reasoning
	if answer.Facts != nil {
		out.Facts = answer.Facts
	}
	for _, l := range end.Log {
		one := taskDone{StepID: l.Step, Tool: l.Tool, Risk: l.Risk, Status: l.Status, Rung: l.Rung, PlanID: l.PlanID, Error: l.Message}
		var chosen struct {
			Description string `json:"description"`
		}
		var filled givenParams
		if err := read(l.Choice, &chosen); err != nil {
			return nil, err
		}
		if err := read(l.Given, &filled); err != nil {
			return nil, err
		}
		if values.IsObject(filled.Content) {
			out.FilledSlots[l.Step] = filled.Content
		}
		one.Description = chosen.Description
		one.Arguments, _ = l.Arguments.In(e.Values)
		if one.Result, _ = l.Result.In(e.Values); len(one.Result) > maxTaskResult {
			one.Result = values.Encode(map[string]any{"message": values.Excerpt(payload.JSON(one.Result)),
				"truncated": true, "size": len(one.Result)})
		}
		out.Steps = append(out.Steps, one)
	}
	call.Detail(map[string]any{
		"prompt_tokens": end.Usage.InputTokens, "completion_tokens": end.Usage.OutputTokens,
		"model_response": values.Excerpt(answer.Answer),
	})
	payload, err := payload.Encode(out)
	if err != nil {
		return nil, fault.New(fault.OutputInvalid, "the result of the task cannot be handed on").WithCause(err)
	}
	return node.Done{"result": payload}, nil
}

// failureText names a failure for a model.
func failureText(code fault.Code, message string) string {
	if code == "" {
		return message
	}
	return fmt.Sprintf("%s: %s", code, message)
}
