package task

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"tandem/agent"
	"tandem/builtin/models"
	"tandem/builtin/toolset"
	"tandem/builtin/values"
	"tandem/fault"
	"tandem/llm"
	"tandem/mcp"
	"tandem/node"
	"tandem/text"
)

// decision is something that a model decides about a task.
type decision struct {
	// name is what is decided, shape the JSON Schema of the answer.
	name, shape string
	// system says what is to be decided, tell what is known.
	system string
	tell   string
	// read takes an answer of the right shape: the step's result and what the program is told, or what is wrong with it.
	read func(raw json.RawMessage) (result, told any, problem string, err error)
	// otherwise, when it is set, is the result when no answer can be used.
	otherwise func() (result, told any)
}

func (d decision) schema() *llm.Schema {
	return &llm.Schema{Name: d.name, JSON: json.RawMessage(d.shape)}
}

// readAnswer checks the shape of an answer and reads it.
func (d decision) readAnswer(raw json.RawMessage) (result, told any, problem string, err error) {
	if err := d.schema().Check(raw); err != nil {
		return nil, nil, fault.From(err).Message, nil
	}
	return d.read(raw)
}

// decide asks the model for a decision. Every answer that cannot be used is on disk before the next is asked for.
func (t *tasks) decide(ctx context.Context, call *node.Call, p *taskStep, d decision) (node.Outcome, error) {
	a := models.Asking{Most: p.Tries}
	if err := models.ReadMemo(call, &a); err != nil {
		return nil, err
	}
	var result, told any
	messages := []llm.Message{{Role: llm.System, Content: d.system}, {Role: llm.User, Content: d.tell}}
	fit, err := a.Ask(ctx, t.models, call, p.Profile, p.Language, messages, d.schema(),
		func(raw json.RawMessage) (problem string, err error) {
			result, told, problem, err = d.readAnswer(raw)
			return problem, err
		})
	switch {
	case err != nil:
		return models.WaitWith(err, a)
	case fit:
		if choice, ok := told.(agent.Choice); ok && d.name == agent.KindReplan && !choice.None {
			if err := logReplanned(call, p.about.PlanID); err != nil {
				return nil, err
			}
		}
		return stepDone(result, told, a.Usage)
	case !a.Over():
		return models.Again(call, a)
	case d.otherwise == nil:
		return nil, fault.Newf(fault.OutputInvalid, "the model's answers for %q cannot be used: %s", p.Name,
			a.Problem()).With("tries", len(a.Tries)).Final()
	}
	call.Log(node.Warn, "the model's answers could not be used; the step does without", map[string]any{"problem": a.Problem(), "tries": len(a.Tries)})
	result, told = d.otherwise()
	return stepDone(result, told, a.Usage)
}

// logReplanned notes in the log of the task that the rest is planned anew, and that everything that steps have brought stays.
func logReplanned(call *node.Call, previous string) error {
	c, err := call.Context()
	if err != nil {
		return err
	}
	call.Log(node.Notice, "the rest is planned anew; what steps have brought stays", map[string]any{
		"previous_plan_id": previous, "step_results_count": len(c.StepResults),
		"runtime_metadata_count": len(c.RuntimeMetadata), "cleared": 0,
	})
	return nil
}

// The shapes of decisions.
const (
	shapeName = `{"type":"object","required":["flow_name"],"additionalProperties":false,"properties":{"flow_name":{"type":"string"}}}`
	shapeRisk = `{"type":"object","required":["risk","reason"],"additionalProperties":false,"properties":{"risk":{"type":"string","enum":["low","medium","high"]},"reason":{"type":"string"}}}`
	// The tool is not an enumeration: a plan with a tool that does not exist counts as a try, and the next try reads that.
	shapePlan    = `{"type":"object","required":["tool_id","description"],"additionalProperties":false,"properties":{"tool_id":{"type":"string"},"description":{"type":"string"}}}`
	shapeAnalyze = `{"type":"object","required":["is_param_error","reason"],"additionalProperties":false,"properties":{"is_param_error":{"type":"boolean"},"reason":{"type":"string"}}}`
	shapeMissing = `{"type":"object","required":["message","params"],"properties":{"message":{"type":"string"},"params":{"type":"object"}}}`
	shapeReplan  = `{"type":"object","required":["description","steps"],"additionalProperties":false,"properties":{"description":{"type":"string"},"steps":{"type":"array","items":{"type":"object","required":["tool_id","description"],"additionalProperties":false,"properties":{"tool_id":{"type":"string"},"description":{"type":"string"}}}}}}`
)

// maxReason is how much is kept of what a model says in its own words, in characters.
const maxReason = 2_000

// decision is what a model decides in a step of a kind.
func (p *taskStep) decision(kind string) (decision, bool) {
	d := decision{name: kind, system: p.system(kind), tell: p.promptFor(kind)}
	switch kind {
	case agent.KindFlowName:
		d.shape, d.read = shapeName, p.readName
	case agent.KindFlowRisk:
		d.shape, d.read = shapeRisk, p.readRisk
	case agent.KindToolRisk:
		d.shape, d.read = shapeRisk, p.readToolRisk
	case agent.KindPlan:
		d.shape, d.read = shapePlan, p.readPlan
	case agent.KindAlternative, agent.KindRepair:
		d.shape, d.read = shapePlan, p.readOther
	case agent.KindReplan:
		d.shape, d.read = shapeReplan, p.readReplan
	case agent.KindAnalyze:
		d.shape, d.read = shapeAnalyze, p.readAnalyze
	case agent.KindMissing:
		d.shape, d.read, d.otherwise = shapeMissing, p.readMissing, func() (any, any) { return p.plainMissing(), nil }
	default:
		return d, false
	}
	return d, true
}

func (p *taskStep) readName(raw json.RawMessage) (result, told any, problem string, err error) {
	var said struct {
		FlowName string `json:"flow_name"`
	}
	if err := json.Unmarshal(raw, &said); err != nil {
		return nil, nil, "", err
	}
	if said.FlowName = text.Fit(strings.Join(strings.Fields(said.FlowName), " "), 200); said.FlowName == "" {
		return nil, nil, p.say(text.Of("flow_name is empty")), nil
	}
	return said, nil, "", nil
}

func (p *taskStep) readRisk(raw json.RawMessage) (result, told any, problem string, err error) {
	var said agent.RiskReply
	if err := json.Unmarshal(raw, &said); err != nil {
		return nil, nil, "", err
	}
	said.Reason = text.Fit(said.Reason, maxReason)
	return riskResult(said), said, "", nil
}

// riskResult is a judgement as the step leaves it; the reason is always there.
func riskResult(r agent.RiskReply) any {
	return map[string]any{"risk": r.Risk, "reason": r.Reason}
}

// maxJudged is how many characters of arguments are judged. More would not be read with care, so a person is asked, whatever the policy.
const maxJudged = models.MaxPromptData / 2

// readToolRisk reads the judgement of a call. The model may find it riskier than is known of the tool, and never less: a tool that
// destroys, or of which nobody has said that it does not, is not of low risk, whatever the model was told. A person's policy stands above
// both.
func (p *taskStep) readToolRisk(raw json.RawMessage) (result, told any, problem string, err error) {
	var said agent.RiskReply
	if err := json.Unmarshal(raw, &said); err != nil {
		return nil, nil, "", err
	}
	said.Reason, said.Gate = text.Fit(said.Reason, maxReason), "" // which is not a model's to say
	p.heed(&said)
	if utf8.RuneCount(p.arguments()) > maxJudged { // what a judge has not seen is not judged
		said.Risk = agent.High
		said.Reason = values.JoinTexts(said.Reason, p.say(text.Of("The arguments are too long to be judged as a whole, so the risk counts as high.")))
		return p.judged(said), agent.RiskReply{Reason: said.Reason, Gate: said.Gate}, "", nil
	}
	return p.judged(said), said, "", nil
}

// heed adds to a judgement what the call meets in any case.
func (p *taskStep) heed(said *agent.RiskReply) {
	because := func(t text.Text) { said.Reason = values.JoinTexts(said.Reason, p.say(t)) }
	v := p.verdict
	switch v.Decision {
	case mcp.Refused:
		server, tool, _ := mcp.SplitToolID(p.about.Tool)
		said.Gate = agent.GateShut
		said.Reason = mcp.NotAllowedBy(server, tool, v).Message.String()
	case mcp.Asks:
		said.Gate = agent.GateAsk
		because(text.Of("%s wants calls of this tool confirmed.", v.By).For("each of them"))
		if v.Detail != "" {
			because(text.Of("(%s)", v.Detail))
		}
	case mcp.Runs:
		said.Gate = agent.GateOpen
		because(text.Of("%s has classed this tool as one that only reads.", v.By))
	case mcp.Destroys:
		if said.Risk != agent.Low {
			return
		}
		said.Risk = agent.Medium
		if v.From == mcp.FromNobody {
			because(text.Of("Nobody has said what this tool does to the world, so it counts as one that destroys: the risk is medium at least."))
		} else {
			because(text.Of("The tool says that it destroys, so the risk is medium at least."))
		}
	}
}

// judgedResult is the judgement of a call as its step leaves it: the call that follows is held against what was known then.
type judgedResult struct {
	Risk   agent.Risk   `json:"risk"`
	Reason string       `json:"reason"`
	Policy *mcp.Verdict `json:"policy,omitempty"`
}

func (p *taskStep) judged(r agent.RiskReply) judgedResult {
	out := judgedResult{Risk: r.Risk, Reason: r.Reason}
	if p.verdict.Decision != "" {
		out.Policy = &p.verdict
	}
	return out
}

// planned is a chosen tool as a step leaves it.
type planned struct {
	ToolID      string `json:"tool_id"`
	Description string `json:"description"`
	// Inactive are the servers whose tools there would be, had the user activated them.
	Inactive []string `json:"inactive_servers,omitempty"`
	// Unregistered are those that are not there, or switched off.
	Unregistered []string `json:"unregistered_servers,omitempty"`
	// Unreachable are those that did not answer.
	Unreachable []string `json:"unreachable_servers,omitempty"`
}

func (p *taskStep) readPlan(raw json.RawMessage) (result, told any, problem string, err error) {
	var said planned
	if err := json.Unmarshal(raw, &said); err != nil {
		return nil, nil, "", err
	}
	said.ToolID, said.Description = strings.TrimSpace(said.ToolID), text.Fit(said.Description, maxReason)
	said.Inactive, said.Unregistered, said.Unreachable = p.Inactive, p.Unregistered, p.Unreachable
	switch {
	case agent.IsFinal(said.ToolID):
		said.ToolID = agent.FinalTool
		return said, agent.Choice{Tool: agent.FinalTool, Final: true, Description: said.Description}, "", nil
	case said.ToolID == "":
		return nil, nil, p.say(text.Of("tool_id is empty; write FINAL when nothing is left to do")), nil
	}
	if problem := p.forbidden(said.ToolID); problem != "" {
		return nil, nil, problem, nil
	}
	return said, p.choice(said), "", nil
}

// forbidden tells a model that a tool is not for it.
func (p *taskStep) forbidden(id string) string {
	tool, ok := p.tool(id)
	if !ok || tool.Forbidden == "" {
		return ""
	}
	return p.say(text.Of("%q: %s; choose another tool, or FINAL", id, tool.Forbidden))
}

// choice is what the program is told of a chosen tool.
func (p *taskStep) choice(said planned) agent.Choice {
	tool, ok := p.tool(said.ToolID)
	return agent.Choice{Tool: said.ToolID, UnknownTool: !ok, Effect: tool.Effect, Description: said.Description}
}

// readOther reads a way out of a failure with a tool: another one, or the same in another way. None is one, too.
func (p *taskStep) readOther(raw json.RawMessage) (result, told any, problem string, err error) {
	var said planned
	if err := json.Unmarshal(raw, &said); err != nil {
		return nil, nil, "", err
	}
	said.ToolID, said.Description = strings.TrimSpace(said.ToolID), text.Fit(said.Description, maxReason)
	if said.ToolID == "" || strings.EqualFold(said.ToolID, "none") || agent.IsFinal(said.ToolID) {
		said.ToolID = ""
		return said, agent.Choice{None: true, Description: said.Description}, "", nil
	}
	if _, ok := p.tool(said.ToolID); !ok {
		return nil, nil, p.say(text.Of("there is no tool %q; leave tool_id empty when none is of use", said.ToolID)), nil
	}
	if problem := p.forbidden(said.ToolID); problem != "" {
		return nil, nil, problem, nil
	}
	return said, p.choice(said), "", nil
}

func (p *taskStep) readReplan(raw json.RawMessage) (result, told any, problem string, err error) {
	var said struct {
		Description string `json:"description"`
		Steps       []struct {
			ToolID      string `json:"tool_id"`
			Description string `json:"description"`
		} `json:"steps"`
	}
	if err := json.Unmarshal(raw, &said); err != nil {
		return nil, nil, "", err
	}
	said.Description = text.Fit(said.Description, maxReason)
	const most = 100
	said.Steps = said.Steps[:min(len(said.Steps), most)]
	for i := range said.Steps {
		said.Steps[i].Description = text.Fit(said.Steps[i].Description, maxReason)
	}
	return said, agent.Choice{None: len(said.Steps) == 0, Description: said.Description}, "", nil
}

func (p *taskStep) readAnalyze(raw json.RawMessage) (result, told any, problem string, err error) {
	var said struct {
		IsParamError bool   `json:"is_param_error"`
		Reason       string `json:"reason"`
	}
	if err := json.Unmarshal(raw, &said); err != nil {
		return nil, nil, "", err
	}
	said.Reason = text.Fit(said.Reason, maxReason)
	return said, agent.AnalyzeReply{IsParamError: said.IsParamError}, "", nil
}

// paramRequest asks a person for parameters: null is what is missing.
type paramRequest struct {
	Message string          `json:"message"`
	Params  json.RawMessage `json:"params"`
	Schema  json.RawMessage `json:"schema"`
}

// readMissing reads what a person is to be asked for. What is required and not there is always among it.
func (p *taskStep) readMissing(raw json.RawMessage) (result, told any, problem string, err error) {
	var said paramRequest
	if err := json.Unmarshal(raw, &said); err != nil {
		return nil, nil, "", err
	}
	if said.Message = text.Fit(strings.TrimSpace(said.Message), maxReason); said.Message == "" {
		return nil, nil, p.say(text.Of("message is empty")), nil
	}
	tool, _ := p.tool(p.about.Tool)
	known := tool.properties()
	var asked []values.Member
	for _, m := range values.Members(said.Params) {
		if len(known) > 0 && !slices.ContainsFunc(known, func(k values.Member) bool { return k.Key == m.Key }) {
			return nil, nil, p.say(text.Of("the tool has no parameter %q", m.Key)), nil
		}
		asked = append(asked, m)
	}
	for _, name := range toolset.MissingArguments(tool.InputSchema, p.arguments()) {
		asked = values.Overlay(asked, values.Member{Key: name, Value: json.RawMessage("null")})
	}
	if len(asked) == 0 {
		return nil, nil, p.say(text.Of("params is empty; name the parameters that the user has to give, with null")), nil
	}
	return p.request(tool, said.Message, asked), nil, "", nil
}

func (p *taskStep) request(tool taskTool, message string, asked []values.Member) paramRequest {
	names := make([]string, len(asked))
	for i, m := range asked {
		names[i] = m.Key
	}
	return paramRequest{Message: message, Params: values.Object(asked), Schema: tool.form(names)}
}

// plainMissing is the request when no model has made one: what is required and not there, else everything.
func (p *taskStep) plainMissing() paramRequest {
	tool, _ := p.tool(p.about.Tool)
	var asked []values.Member
	for _, name := range toolset.MissingArguments(tool.InputSchema, p.arguments()) {
		asked = append(asked, values.Member{Key: name, Value: json.RawMessage("null")})
	}
	if len(asked) == 0 {
		for _, m := range tool.properties() {
			value, ok := values.Path{m.Key}.Walk(p.arguments())
			if !ok {
				value = json.RawMessage("null")
			}
			asked = append(asked, values.Member{Key: m.Key, Value: value})
		}
	}
	message := p.say(text.Of("The tool %s cannot work with its parameters: %s. Please give what is missing or wrong.", p.about.Tool, p.about.Message))
	return p.request(tool, text.Fit(message, maxReason), asked)
}
