package agent

import (
	"encoding/json"
	"strings"

	"tandem/engine"
	"tandem/fault"
	"tandem/workflow"
)

// Name is what events call the program.
const Name = "agent"

// The kinds of steps: what the runtime is asked to do. Each has the [About] of its step as its configuration, and its reply is
// the type named here. A step leaves its whole result as its output; a reply is only what the program decides by.
const (
	// KindFlowName finds a name for the task. It has no reply, and the task goes on without a name if it fails.
	KindFlowName = "flow_name"
	// KindFlowRisk judges the task as a whole. Reply: [RiskReply].
	KindFlowRisk = "flow_risk"
	// KindConfirmFlow asks a person whether the task may begin; About.Risk is the task's. Reply: [ConfirmReply].
	KindConfirmFlow = "confirm_flow"
	// KindPlan chooses the next tool, or FINAL. Reply: [Choice].
	KindPlan = "plan"
	// KindParams derives arguments for the tool; its result is the arguments, as far as they are known. After a failed call it does so
	// knowing the failure. Reply: [ArgumentsReply].
	KindParams = "params"
	// KindToolRisk judges the tool with these arguments. Reply: [RiskReply].
	KindToolRisk = "tool_risk"
	// KindConfirm asks a person about the tool with these arguments, which are also the step's input. Reply: [ConfirmReply].
	KindConfirm = "confirm"
	// KindCall calls the tool with About.Arguments, which are also the step's input. It fails with an error of [Failure].
	// Anyone who finds another input than these arguments (a fork may have put it there) has no confirmation for it.
	// No reply.
	KindCall = "call"
	// KindAnalyze says whether the failure was one of parameters. Reply: [AnalyzeReply].
	KindAnalyze = "analyze"
	// KindMissing makes the request for parameters: a friendly text and what is missing. No reply.
	KindMissing = "missing"
	// KindAskParams puts About.Missing to a person; its result is the answer. Reply: [GivenReply].
	KindAskParams = "ask_params"
	// KindFill merges About.Given into About.Arguments; its result is the arguments, as far as they are known. Reply:
	// [ArgumentsReply].
	KindFill = "fill"
	// KindAlternative looks for another tool that does the same; the log tells which were tried. Reply: [Choice], with None.
	KindAlternative = "alternative"
	// KindRepair rewrites the single step, with the same tool (no Tool in the reply) or another. Reply: [Choice], with None.
	KindRepair = "repair"
	// KindReplan thinks the rest of the task over; its result is About.Outline of what follows. Reply: [Choice], of which
	// only None counts.
	KindReplan = "replan"
	// KindSummary writes the answer from all that was done; About.Final says why it is time. No reply.
	KindSummary = "summary"
)

// FinalTool is the virtual tool that ends a task.
const FinalTool = "FINAL"

// IsFinal says that a tool id means the virtual tool, in whatever case; a misspelling that older agents know it by is read as well.
func IsFinal(tool string) bool {
	return strings.EqualFold(tool, FinalTool) || strings.EqualFold(tool, "FIANL")
}

// Risk is how dangerous a task or a call is.
type Risk string

// The levels.
const (
	Low    Risk = "low"
	Medium Risk = "medium"
	High   Risk = "high"
)

// RiskReply is what a judgement tells the program. Reason is for those who read the journal.
type RiskReply struct {
	Risk   Risk   `json:"risk"`
	Reason string `json:"reason,omitempty"`
	// Gate is what a person has decided about the tool, whatever its risk; of a call only.
	Gate Gate `json:"gate,omitempty"`
}

// Gate is what a person has decided about calls of a tool. Without one their risk decides.
type Gate string

// The gates.
const (
	// GateOpen: the call needs no confirmation where calls run by themselves.
	GateOpen Gate = "open"
	// GateAsk: it is confirmed, whatever runs by itself.
	GateAsk Gate = "ask"
	// GateShut: it is not made.
	GateShut Gate = "shut"
)

// ConfirmReply is how a person decided. An empty answer, a withdrawn question and one that ran out are not confirmed.
type ConfirmReply struct {
	Confirmed bool `json:"confirmed"`
}

// GivenReply says whether a person has given parameters; an empty answer gives none.
type GivenReply struct {
	Given bool `json:"given"`
}

// AnalyzeReply says whether other arguments could help.
type AnalyzeReply struct {
	IsParamError bool `json:"is_param_error"`
}

// ArgumentsReply says that required arguments are missing among those that were made; without one they are complete.
type ArgumentsReply struct {
	Missing []string `json:"missing,omitempty"`
}

// Usage is what a step has used of its model. Every reply may have one under "usage", beside what the program decides by; the
// end has their sum.
type Usage struct {
	InputTokens  int64 `json:"input_tokens,omitempty"`
	OutputTokens int64 `json:"output_tokens,omitempty"`
	CachedTokens int64 `json:"cached_tokens,omitempty"`
}

// addReply counts what a reply says. One that cannot be read says nothing here: what decides by it refuses it.
func (u *Usage) addReply(reply json.RawMessage) {
	var said struct {
		Usage Usage `json:"usage"`
	}
	if len(reply) == 0 || json.Unmarshal(reply, &said) != nil {
		return
	}
	u.InputTokens += said.Usage.InputTokens
	u.OutputTokens += said.Usage.OutputTokens
	u.CachedTokens += said.Usage.CachedTokens
}

// Choice is a chosen tool, as far as the program has to know it.
type Choice struct {
	// Tool is the tool's id. Final says, as the tool FINAL does, that nothing is left to do.
	Tool  string `json:"tool,omitempty"`
	Final bool   `json:"final,omitempty"`
	// UnknownTool says that there is no such tool.
	UnknownTool bool `json:"unknown_tool,omitempty"`
	// None says that there is no alternative, no repair, no other plan.
	None bool `json:"none,omitempty"`
	// Effect is the tool's; without one it counts as once.
	Effect    workflow.Effect    `json:"effect,omitempty"`
	OnUnknown workflow.OnUnknown `json:"on_unknown,omitempty"`
	// Description says why, for those who read the journal.
	Description string `json:"description,omitempty"`
}

func (c Choice) final() bool {
	return c.Final || IsFinal(c.Tool)
}

// Class is what a failed call means for the task.
type Class string

// The classes of failures.
const (
	// Connection: the tool was not reached; one call more if the tool's effect allows it.
	Connection Class = "connection"
	// Parameters: the arguments are certainly wrong. Unclear: a model has to say whether they are.
	Parameters Class = "parameters"
	Unclear    Class = "unclear"
	// Permission and TimedOut are recorded; the task goes on without counting them.
	Permission Class = "permission"
	TimedOut   Class = "timeout"
	// Other counts on the task.
	Other Class = "other"
)

// The facts of a failed call, in the details of its error.
const (
	detailClass     = "class"
	detailMayRepeat = "may_repeat"
)

// Failure is how the runtime fails a call: err with its class. MayRepeat says that the same call may be made again; it is
// heeded for a connection only, and never for a tool whose effect is once. The error of a call without a class is classed
// by its code.
func Failure(err *fault.Error, class Class, mayRepeat bool) *fault.Error {
	return err.With(detailClass, string(class)).With(detailMayRepeat, mayRepeat)
}

// ClassOf is the class of a call's failure, before a model has said more about one that is unclear.
func ClassOf(err *fault.Error) Class {
	class, _ := classOf(err)
	return class
}

// classOf reads what Failure has written, or tells the class from the code.
func classOf(err *fault.Error) (class Class, mayRepeat bool) {
	if text, ok := err.Details[detailClass].(string); ok {
		switch c := Class(text); c {
		case Connection, Parameters, Unclear, Permission, TimedOut, Other:
			may, _ := err.Details[detailMayRepeat].(bool)
			return c, may
		}
	}
	switch err.Code {
	case fault.NetworkError, fault.RemoteError:
		return Connection, true
	case fault.InvalidInput, fault.ParameterMissing, fault.UnresolvedPlaceholder:
		return Parameters, false
	case fault.ToolError, fault.RemoteRejected, fault.ValidationFailed:
		return Unclear, false
	case fault.Timeout:
		return TimedOut, false
	}
	if err.Code.Class() == fault.ClassForbidden || err.Code == fault.CredentialMissing || err.Code == fault.Unauthorized {
		return Permission, false
	}
	return Other, false
}

// Rung is how a step came to be: planned, or one of the ways out of a failure, in their order.
type Rung string

// The rungs.
const (
	Planned     Rung = ""
	Alternative Rung = "alternative"
	Repaired    Rung = "repair"
	Replanned   Rung = "replan"
)

// Status is what has become of a step.
type Status string

// The ends of a step.
const (
	Succeeded Status = "completed"
	Failed    Status = "failed"
	LeftOut   Status = "skipped"
	Refused   Status = "canceled"
)

// Value is the number of a value among those that come with it (a step's values, or the values of the end), from 1. Zero:
// there is none.
type Value int

// In returns the value.
func (v Value) In(values []json.RawMessage) (json.RawMessage, bool) {
	if v < 1 || int(v) > len(values) {
		return nil, false
	}
	return values[v-1], true
}

// Entry is a step of the task that has ended. A step has one entry, that of its last call.
type Entry struct {
	// Step is its id: step_3, or step_3_2 for the second that was tried in that place.
	Step   string `json:"step"`
	Tool   string `json:"tool,omitempty"`
	PlanID string `json:"plan_id"`
	Rung   Rung   `json:"rung,omitempty"`
	Status Status `json:"status"`
	// Activation is the name of its last call; empty if none was made.
	Activation string `json:"activation,omitempty"`
	// Choice is the result of the decision for the tool (plan, alternative or repair), Arguments what it was called with, Result
	// what it gave.
	Choice    Value `json:"choice,omitempty"`
	Arguments Value `json:"arguments,omitempty"`
	Result    Value `json:"result,omitempty"`
	// Given is what a person has filled in last.
	Given Value `json:"given,omitempty"`
	Risk  Risk  `json:"risk,omitempty"`
	// Class, Code and Message say why it failed.
	Class   Class      `json:"class,omitempty"`
	Code    fault.Code `json:"code,omitempty"`
	Message string     `json:"message,omitempty"`
}

// About tells the runtime about a step. Which fields are set follows from how far the task has come.
type About struct {
	// Step is the id of the step of the task that this belongs to, Number its place (3 of step_3_2), Try the how-manieth
	// of its kind this is: for calls within the step, for decisions within the place.
	Step   string `json:"step,omitempty"`
	Number int    `json:"number,omitempty"`
	Try    int    `json:"try,omitempty"`
	PlanID string `json:"plan_id"`
	Tool   string `json:"tool,omitempty"`
	Rung   Rung   `json:"rung,omitempty"`
	// Choice is the decision that chose the tool, Arguments the present ones, Judged the judgement of them.
	Choice    Value `json:"choice,omitempty"`
	Arguments Value `json:"arguments,omitempty"`
	Judged    Value `json:"judged,omitempty"`
	Risk      Risk  `json:"risk,omitempty"`
	// Unassessed says that nobody could judge; the risk counts as high, and no policy approves of it.
	Unassessed bool `json:"unassessed,omitempty"`
	// Confirmed says that a person has agreed to this tool with exactly these arguments, Confirmation how.
	Confirmed    bool  `json:"confirmed,omitempty"`
	Confirmation Value `json:"confirmation,omitempty"`
	// Class, Code and Message are the last failure: of the step, or of a try to plan it.
	Class   Class      `json:"class,omitempty"`
	Code    fault.Code `json:"code,omitempty"`
	Message string     `json:"message,omitempty"`
	// Missing is the request for parameters, Given what a person answered.
	Missing Value `json:"missing,omitempty"`
	Given   Value `json:"given,omitempty"`
	// FlowName and FlowRisk are what was found at the beginning, Outline the last replanning.
	FlowName Value `json:"flow_name,omitempty"`
	FlowRisk Value `json:"flow_risk,omitempty"`
	Outline  Value `json:"outline,omitempty"`
	// Final is why the summary is written.
	Final Final `json:"final,omitempty"`
	// Failures counts the failures of the task so far.
	Failures int     `json:"failures,omitempty"`
	Auto     bool    `json:"auto,omitempty"`
	Language string  `json:"language,omitempty"`
	Log      []Entry `json:"log,omitempty"`
}

// Final is why no further step is planned.
type Final string

// The reasons.
const (
	// FinalPlanned: the plan says so. FinalLimit: there were enough steps. FinalUnplanned: no try to plan ended well.
	// FinalLeftOut: an operator has skipped the planning.
	FinalPlanned   Final = "planned"
	FinalLimit     Final = "limit"
	FinalUnplanned Final = "unplanned"
	FinalLeftOut   Final = "left_out"
)

// End is the result of the scope. Its values come with it.
type End struct {
	// Final is empty for a task that was canceled or has failed.
	Final    Final    `json:"final,omitempty"`
	Canceled bool     `json:"canceled,omitempty"`
	Failed   bool     `json:"failed,omitempty"`
	Steps    int      `json:"steps"`
	Failures int      `json:"failures"`
	PlanIDs  []string `json:"plan_ids"`
	FlowName Value    `json:"flow_name,omitempty"`
	FlowRisk Value    `json:"flow_risk,omitempty"`
	Usage    Usage    `json:"usage,omitzero"`
	// Answer is the summary; none if it was left out.
	Answer Value   `json:"answer,omitempty"`
	Log    []Entry `json:"log,omitempty"`
}

// resultRef is what a step has left.
func resultRef(outputs []engine.Output) engine.Ref {
	for _, o := range outputs {
		if o.Key == workflow.DefaultKey {
			return o.Ref
		}
	}
	return ""
}
