package node

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/dataflow"
	"tandem/engine"
	"tandem/fault"
	"tandem/node/shape"
	"tandem/node/slot"
	"tandem/payload"
	"tandem/text"
	"tandem/workflow"
)

// SlotKind is the kind that fills missing inputs of other nodes.
const SlotKind = "CALL.SLOT"

// DefaultProfile is the profile that a workspace may have for fillings of nodes that name none.
const DefaultProfile = "default"

// Slots describes a filling: what is to be filled, and with what help. It is shown as the input of the step.
type Slots struct {
	Data   json.RawMessage `json:"data"`
	Schema json.RawMessage `json:"schema"`
	// Question is what a person asked the execution for.
	Question string `json:"question,omitempty"`
	// ProfileID is the profile of the model that is asked; with Wished only if it exists. Empty: none.
	ProfileID string `json:"profile_id,omitempty"`
	Wished    bool   `json:"profile_optional,omitempty"`
	// Problem is why the model could not be asked.
	Problem string `json:"problem,omitempty"`
}

// FillingTitle is the title of the step of a filling.
func FillingTitle() text.Text { return text.Of("Parameter filling") }

// Filler fills slots. It ends with the output of the kind under "result", or waits.
type Filler func(ctx context.Context, c *Call, s Slots) (Outcome, error)

// fills says how the input of a node is filled.
type fills struct {
	slots  *slot.Schema
	schema json.RawMessage
	fill   Filler
	// profile is what its configurations say, as written.
	profile string
}

// fillsOf reads whether a node wants its input filled. Kinds that run a body do not.
func fillsOf(def *workflow.Node, kind *Kind, overrides map[string]Override, kinds *Registry) (*fills, error) {
	config := objectOr(def.Configurations)
	if kind.Scope != nil || !configured(config, "enable_filling").Bool() {
		return nil, nil
	}
	filler, ok := kinds.Get(SlotKind)
	if !ok || filler.Fill == nil {
		return nil, fault.Newf(fault.Unsupported, "configurations.enable_filling: this installation cannot run %s, which fills; set it to false", SlotKind)
	}
	f := &fills{fill: filler.Fill}
	for _, name := range []string{"filling_profile", "profile_id", "llm_profile"} {
		if text := configured(config, name); text.Type == gjson.String && text.Str != "" && f.profile == "" {
			f.profile = text.Str
		}
	}
	var err error
	f.slots, f.schema, err = slot.Read(kind.InputSchema.JSON(), overrides[configured(config, "template_id").Str].Input)
	return f, err
}

// NothingToFill is the warning for a node that asks for filling although nothing describes its input.
func NothingToFill() text.Text {
	return text.Of("enable_filling does nothing here: neither the kind nor a template says what the input may have; name a template with override_input in template_id, or leave it out")
}

// Fillable says whether a filling could find anything for an input of these schemas. Mistakes in the schemas are reported elsewhere.
func Fillable(schemas ...json.RawMessage) bool {
	slots, _, err := slot.Read(schemas...)
	return err != nil || !slots.IsEmpty()
}

// configured is a configuration by its name, also in its camel-cased spelling.
func configured(config json.RawMessage, name string) (found gjson.Result) {
	gjson.ParseBytes(config).ForEach(func(key, value gjson.Result) bool {
		if key.Str == name || shape.Snake(key.Str) == name {
			found = value
			return false
		}
		return true
	})
	return found
}

// looks says whether a run only looks for missing inputs: the kind itself runs after that.
func (n *readyNode) looks(run engine.RunNode) bool {
	return n.fills != nil && run.Step == nil && run.Cause.Kind == engine.CauseRun && run.Cause.Filled == nil && run.Cause.Wake == nil
}

// filled lays what was found for the input under it.
func (x *run) filled() error {
	filling := x.job.Run.Cause.Filled
	if filling == nil || filling.Ref == "" || x.job.Run.Step != nil || x.owner != x.job.Run.Node {
		return nil
	}
	value, err := x.job.Value(filling.Ref)
	if err != nil {
		return err
	}
	x.call.Input, err = lay(x.call.Input, value)
	return err
}

// lay lays what a filling has found under an input.
func lay(input, value json.RawMessage) (json.RawMessage, error) {
	var found slot.Output
	if err := json.Unmarshal(value, &found); err != nil {
		return nil, fault.New(fault.InvalidInput, `what was given instead of a filling must be an object with "slot_data"`)
	}
	data, err := slot.ReadObject(found.SlotData)
	if err != nil {
		return nil, err
	}
	fields, err := slot.ReadObject(input)
	if err != nil {
		return nil, err
	}
	for _, name := range found.FilledFields {
		more, ok := data[name]
		if !ok {
			continue
		}
		if fields[name], err = slot.Within(fields[name], more, 0); err != nil {
			return nil, err
		}
	}
	return payload.Encode(fields)
}

// LayerFilled is the layer of values that a filling has found.
const LayerFilled dataflow.Layer = "filled"

// filledOrigins lists the origins of the fields that a filling has found.
func filledOrigins(id engine.ActivationID, value json.RawMessage) []dataflow.Origin {
	var found slot.Output
	if json.Unmarshal(value, &found) != nil { // lay has read it
		return nil
	}
	var list []dataflow.Origin
	for _, name := range found.FilledFields {
		list = append(list, dataflow.Origin{Path: name, Sources: []dataflow.Source{{Layer: LayerFilled,
			Activation: string(id) + "[0]/" + engine.FillingName, Name: name}}})
	}
	return list
}

// wants says how the input is filled, with what its kind asks for in this run.
func (x *run) wants() (*fills, error) {
	f := x.node.fills
	if f == nil || x.node.kind.Wants == nil {
		return f, nil
	}
	more, err := x.node.kind.Wants(x.ctx, &x.call)
	if err != nil || len(more) == 0 {
		return f, err
	}
	with := *f
	with.slots, with.schema, err = slot.Read(f.schema, more)
	return &with, err
}

// look opens the filling of a node whose input lacks something. It returns nil when the kind can run.
func (x *run) look() (factOf, error) {
	f, err := x.wants()
	if err != nil {
		return nil, err
	}
	if f != nil && f.slots.IsEmpty() {
		x.warn("configurations.enable_filling", NothingToFill().String())
	}
	if !x.node.looks(x.job.Run) {
		if f != nil && x.job.Run.Cause.Filled != nil {
			return nil, f.slots.MissingError(x.call.Input)
		}
		return nil, nil
	}
	context, err := x.job.Data.Context()
	if err != nil {
		return nil, err
	}
	remaining, err := f.slots.Remaining(x.call.Input)
	if err != nil {
		return nil, err
	}
	found, err := f.slots.Found(x.call.Input, context)
	if err != nil {
		return nil, err
	}
	if remaining == nil && string(found) == "{}" {
		if x.unready != nil || x.effect() != workflow.Once {
			return nil, x.unready
		}
		// The attempt was not recorded as begun, since the input may have needed filling.
		return func(Put) engine.Fact {
			return engine.ScopeOpened{Attempt: x.job.Run.Attempt, Program: engine.ProgramFilling, Discard: true}
		}, nil
	}
	slots := Slots{Data: x.call.Input, Schema: f.schema, Question: QuestionOf(x.call.Input, context)}
	slots.ProfileID, slots.Wished = x.fillingProfile()
	state, err := payload.Encode(slots)
	if err != nil {
		return nil, err
	}
	return func(put Put) engine.Fact {
		return engine.ScopeOpened{Attempt: x.job.Run.Attempt, Program: engine.ProgramFilling, Count: 1, Discard: true, State: put(state)}
	}, nil
}

// fillingProfile is the profile that a filling uses: that of the node, or the default of the workspace.
func (x *run) fillingProfile() (id string, wished bool) {
	id = x.node.fills.profile
	if strings.ContainsAny(id, "{$") { // a placeholder
		id = ""
		for _, name := range []string{"filling_profile", "profile_id", "llm_profile"} {
			if text := configured(x.call.Config, name); text.Type == gjson.String && text.Str != "" && id == "" {
				id = text.Str
			}
		}
	}
	if id == "" {
		return DefaultProfile, true
	}
	return id, false
}

// fillStep does a step of a filling.
func (x *run) fillStep() (factOf, error) {
	s, f := x.job.Run.Step, x.node.fills
	if f == nil {
		return nil, fault.Newf(fault.Internal, "%s has the step %q and is not to be filled", x.call.NodeID, s.Name)
	}
	var slots Slots
	if err := json.Unmarshal(x.job.State, &slots); err != nil {
		return nil, fault.Newf(fault.Internal, "what is to be filled cannot be read: %w", err)
	}
	if s.Kind == engine.StepAsk {
		var why engine.AskConfig
		if err := json.Unmarshal(s.Config, &why); err != nil {
			return nil, fault.Newf(fault.Internal, "the step %q cannot be read: %w", s.Name, err)
		}
		slots.ProfileID, slots.Problem = "", why.Message
	}
	if err := x.wake(); err != nil {
		return nil, err
	}
	x.call.Kind, x.call.Input, x.begun = SlotKind, x.job.State, true
	if x.job.Stand != nil {
		return x.stood(&Step{Name: s.Name, Kind: s.Kind, Config: s.Config, State: x.job.State, LastTry: x.job.Run.LastTry})
	}
	outcome, err := f.fill(x.ctx, &x.call, slots)
	if err != nil {
		return nil, err
	}
	if done, ok := outcome.(Done); ok {
		return x.replied(Replied{Result: done[dataflow.DefaultKey]})
	}
	return x.outcome(outcome)
}

// QuestionOf returns what a person asked for, if the input of a node or of the execution has it.
func QuestionOf(input json.RawMessage, c dataflow.Context) string {
	names := []string{"question", "user_input", "user_prompt", "message"}
	own, err := slot.ReadObject(input)
	if err != nil {
		own = nil // no object has no question
	}
	for _, fields := range []map[string]json.RawMessage{own, c.InitialMetadata, c.RuntimeMetadata} {
		for _, name := range names {
			var text string
			if json.Unmarshal(fields[name], &text) == nil && strings.TrimSpace(text) != "" { // others are not questions
				return text
			}
		}
	}
	return ""
}

// Facts returns the sentences that nodes of the execution have put out under the name of facts.
func Facts(c dataflow.Context) []string {
	var list []string
	if json.Unmarshal(c.Merged["facts"], &list) != nil { // something else has the name
		return nil
	}
	return slices.DeleteFunc(list, func(s string) bool { return strings.TrimSpace(s) == "" })
}

// Past is an activation that has ended, as prompts describe it.
type Past struct {
	// Step counts from 1, the oldest in the list.
	Step     int             `json:"step"`
	NodeID   string          `json:"node_id"`
	NodeName string          `json:"node_name,omitempty"`
	NodeType string          `json:"node_type"`
	Status   string          `json:"status"`
	Output   json.RawMessage `json:"output"`
	Error    string          `json:"error,omitempty"`
}

// history lists the last activations that have ended, the oldest first: the latest of each node. What programs do for a
// node is part of that node.
func (x *run) history(n int) ([]Past, error) {
	context, err := x.job.Data.Context()
	if err != nil {
		return nil, err
	}
	return History(context, n), nil
}

// History returns the last n activations, as the layers have them.
func History(c dataflow.Context, n int) []Past {
	list := make([]dataflow.StepResult, 0, len(c.StepResults))
	for _, r := range c.StepResults { // order does not matter: sorted below
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b dataflow.StepResult) int {
		if a.Ordinal < b.Ordinal {
			return -1
		}
		return 1
	})
	first := max(0, len(list)-max(n, 0))
	out := make([]Past, 0, len(list)-first)
	for i, r := range list[first:] {
		p := Past{Step: first + i + 1, NodeID: r.StepID, NodeName: r.StepName, NodeType: r.ToolID, Status: string(engine.NodeDone),
			Output: r.Output, Error: r.ErrorMessage}
		if !r.IsSuccess {
			p.Status = string(engine.NodeFailure)
		}
		if len(p.Output) == 0 {
			p.Output = json.RawMessage("null")
		}
		out = append(out, p)
	}
	return out
}
