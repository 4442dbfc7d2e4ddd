package ai

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"tandem/builtin/models"
	"tandem/builtin/values"
	"tandem/engine"
	"tandem/fault"
	"tandem/human/form"
	"tandem/node"
	"tandem/node/shape"
	"tandem/node/slot"
	"tandem/payload"
	"tandem/text"
	"tandem/workflow"
)

type slotConfig struct {
	Schema        node.Object `json:"schema" required:"true" doc:"The JSON Schema of what is to be filled in." zh:"待填内容的模式：JSON Schema。"`
	ProfileID     string      `json:"profile_id" names:"profile" older:"llm_profile" doc:"The model profile that fills in what the data does not have." zh:"填补缺失内容的模型配置档。"`
	OverrideInput node.Object `json:"override_input" doc:"A schema that is laid over schema." zh:"覆盖的模式：覆盖在 schema 之上。"`
	Ask           bool        `json:"ask" doc:"Whether a person is asked for what is still missing." zh:"是否就仍缺的内容询问人员。"`
}

func (c *slotConfig) Defaults() { c.Ask = true }

type slotInput struct {
	Data     json.RawMessage `json:"data,omitempty" doc:"What is known already." zh:"已知的数据。"`
	Question string          `json:"question,omitempty" doc:"The text from which the rest is read." zh:"用以提取其余内容的文本。"`
}

// callSlot fills a schema: from the data it is given, from what the execution knows by name, from a model, from a person. The
// same is done for every node that wants its input filled.
func callSlot(m *models.Models) node.Kind {
	f := &filler{m}
	k := node.Raw(
		node.About{
			Name: node.SlotKind, Title: node.Says("Fill parameters", "参数填充"),
			Description: node.Says("Fills a schema from data, from what the execution knows, with a model, and asks a person for the rest.", "依据数据、执行上下文和模型填充参数，其余部分向用户询问。"),
			Effect:      workflow.Idempotent, Older: []string{"SLOT"},
			Keys: []node.Key{{Name: "result", Meaning: node.Says("slot_data, the names of what was filled in, and what is still missing.", "slot_data、已填字段和仍缺的内容。"), Fields: []node.Value{
				node.Meaning("slot_data", "The values, by the names of the schema.", "按 schema 名称给出的值。"),
				node.Meaning("filled_fields", "What was filled in.", "已填充的字段。"),
				node.Meaning("remaining_schema", "What is still missing, as a schema; null if nothing is.", "仍缺内容的 schema；没有时为 null。"),
			}}},
			Examples: []node.Example{
				{
					Shows:   node.Says("Finds the city that a text names.", "找出文本中提到的城市。"),
					Config:  `{"profile_id": "writer", "ask": false, "schema": {"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}}`,
					Input:   `{"question": "What is the weather in Bern?"}`,
					Replies: []string{`{"city": "Bern"}`},
					Output:  `{"result": {"slot_data": {"city": "Bern"}, "filled_fields": ["city"], "remaining_schema": null}}`,
				},
			},
		},
		func(ctx context.Context, call *node.Call, cfg slotConfig, in slotInput) (node.Outcome, error) {
			_, schema, err := slot.Read(json.RawMessage(cfg.Schema), json.RawMessage(cfg.OverrideInput))
			if err != nil {
				return nil, err
			}
			s := node.Slots{Data: in.Data, Schema: schema, Question: in.Question, ProfileID: cfg.ProfileID}
			if values.IsNull(s.Data) {
				s.Data = json.RawMessage("{}")
			}
			return f.fill(ctx, call, s, cfg.Ask)
		})
	k.OutputSchema = shape.SchemaText(`{"type":"object","required":["slot_data","filled_fields","remaining_schema"],"properties":{"slot_data":{"type":"object"},"filled_fields":{"type":"array","items":{"type":"string"}},"remaining_schema":{"type":["object","null"]}}}`)
	k.Fill = func(ctx context.Context, call *node.Call, s node.Slots) (node.Outcome, error) {
		return f.fill(ctx, call, s, true)
	}
	return k
}

// filler fills slots with the models that there are.
type filler struct{ models *models.Models }

// slotProgress is how far a filling has come. It is kept while the filling waits, so that what a model or a person has said
// is not asked for again.
type slotProgress struct {
	Data   json.RawMessage `json:"data"`
	Filled []string        `json:"filled"`
	Model  models.Asking   `json:"model,omitzero"`
	// Through says that the model is not asked any more, Asked that a person was.
	Through bool `json:"through,omitempty"`
	Asked   bool `json:"asked,omitempty"`
	// Problems are what was wrong with what the person said last.
	Problems []string `json:"problems,omitempty"`
}

func (f *filler) fill(ctx context.Context, call *node.Call, s node.Slots, ask bool) (node.Outcome, error) {
	slots, _, err := slot.Read(s.Schema)
	if err != nil {
		return nil, err
	}
	p := &slotProgress{Filled: []string{}}
	if len(call.Memo) == 0 {
		err = p.begin(call, slots, s)
	} else if err = models.ReadMemo(call, p); err == nil && p.Asked && call.Wake != nil && call.Wake.By == engine.WakeAnswer {
		err = p.answered(call, slots)
	}
	if err != nil {
		return nil, err
	}
	remaining, err := slots.Remaining(p.Data)
	if err != nil {
		return nil, err
	}
	if remaining != nil && !p.Through && !p.Asked && s.ProfileID != "" {
		if out, err := f.askModel(ctx, call, slots, s, p, remaining); out != nil || err != nil {
			return out, err
		}
		if remaining, err = slots.Remaining(p.Data); err != nil {
			return nil, err
		}
	}
	if remaining != nil && ask {
		return p.askPerson(call, s, remaining)
	}
	payload, err := payload.Encode(slot.Output{SlotData: p.Data, FilledFields: p.Filled, RemainingSchema: remaining})
	if err != nil {
		return nil, fault.New(fault.OutputInvalid, "what was filled cannot be handed on").WithCause(err)
	}
	return node.Done{"result": payload}, nil
}

// noteTaken notes what was taken from an answer.
func (p *slotProgress) noteTaken(t slot.Taken) {
	p.Data = t.Data
	for _, name := range t.Fields {
		if !slices.Contains(p.Filled, name) {
			p.Filled = append(p.Filled, name)
		}
	}
	slices.Sort(p.Filled)
}

// begin takes what the execution knows by name.
func (p *slotProgress) begin(call *node.Call, slots *slot.Schema, s node.Slots) error {
	c, err := call.Context()
	if err != nil {
		return err
	}
	found, err := slots.Found(s.Data, c)
	if err != nil {
		return err
	}
	taken, err := slots.Take(s.Data, found)
	if err != nil {
		return err
	}
	p.noteTaken(taken)
	return nil
}

// askModel asks the model once. It returns nothing when the model is through: it has told what it knows, or was asked often
// enough.
func (f *filler) askModel(ctx context.Context, call *node.Call, slots *slot.Schema, s node.Slots, p *slotProgress,
	remaining json.RawMessage) (node.Outcome, error) {
	if s.Wished {
		if _, err := f.models.ProfileFor(ctx, call, s.ProfileID); fault.CodeOf(err) == fault.NotFound ||
			fault.CodeOf(err) == fault.Unsupported {
			p.Through = true
			return nil, nil
		}
	}
	c, err := call.Context()
	if err != nil {
		return nil, err
	}
	if s.Question == "" {
		s.Question = node.QuestionOf(nil, c)
	}
	shape, err := slotShape(remaining)
	if err != nil {
		return nil, fault.Newf(fault.Internal, "what remains to be filled cannot be asked for: %w", err)
	}
	language := call.Speaks("")
	fit, err := p.Model.Ask(ctx, f.models, call, s.ProfileID, language, slotMessages(language, s, p.Data, remaining, c), shape,
		func(raw json.RawMessage) (string, error) {
			if !values.IsObject(raw) {
				return text.Of("a JSON object was expected").In(language), nil
			}
			taken, err := slots.Take(p.Data, raw)
			if err != nil {
				return "", err
			}
			p.noteTaken(taken)
			problems := taken.Problems
			for _, name := range taken.Unsaid {
				problems = append(problems, text.Of("%s: it is missing; write null when it is not known", name).In(language))
			}
			return strings.Join(problems, "; "), nil
		})
	switch {
	case err != nil:
		return models.WaitWith(err, p)
	case fit || p.Model.Over():
		p.Through = true
		if !fit {
			call.Log(node.Warn, "the model's answers could not be used; a person is asked", map[string]any{"problem": p.Model.Problem(), "tries": models.MaxTries})
		}
		return nil, nil
	}
	return models.Again(call, p)
}

// askPerson waits for somebody to tell the rest.
func (p *slotProgress) askPerson(call *node.Call, s node.Slots, remaining json.RawMessage) (node.Outcome, error) {
	params, names, err := slot.Params(remaining)
	if err != nil {
		return nil, err
	}
	language := call.Speaks("")
	message := text.Of("The step %q lacks: %s.", call.NodeName, strings.Join(names, ", ")).In(language)
	if len(p.Problems) > 0 {
		message += " " + text.Of("What was answered could not be used: ").In(language) + strings.Join(p.Problems, "; ")
	}
	if s.Problem != "" {
		message += " " + text.Of("It could not be filled automatically: ").In(language) + s.Problem
	}
	asked := map[string]any{
		"interaction_type": "form", "description": message, "message": message, "params": params, "schema": remaining, "arguments": p.Data,
	}
	form.Say(asked, language, form.TitleText, node.FillingTitle())
	request, err := payload.Encode(asked)
	if err != nil {
		return nil, fault.Newf(fault.Internal, "the question about what is missing: %w", err)
	}
	p.Asked, p.Problems = true, nil
	memo, err := payload.Encode(p)
	if err != nil {
		return nil, fault.Newf(fault.Internal, "what was filled so far: %w", err)
	}
	return node.Wait{Ask: &node.Question{Purpose: "param", Request: request}, Memo: memo}, nil
}

// answered takes what a person has said.
func (p *slotProgress) answered(call *node.Call, slots *slot.Schema) error {
	if call.Wake.Outcome != engine.AskDone {
		return slots.MissingError(p.Data)
	}
	content, note := answerOf(call.Wake.Payload)
	if note != "" {
		call.Log(node.Notice, "a person has answered", map[string]any{"description": note})
	}
	if !values.IsObject(content) {
		p.Problems = []string{text.Of("an object was expected").For("of a model").In(call.Speaks(""))}
		return nil
	}
	taken, err := slots.Take(p.Data, content)
	if err != nil {
		return err
	}
	p.noteTaken(taken)
	p.Problems = taken.Problems
	return nil
}

// answerOf takes an answer apart: {"content": …, "description": …}, or the content by itself.
func answerOf(raw json.RawMessage) (content json.RawMessage, note string) {
	var form struct {
		Content     json.RawMessage `json:"content"`
		Description string          `json:"description"`
	}
	if json.Unmarshal(raw, &form) != nil || !values.IsObject(form.Content) { // then it is the content itself
		return raw, ""
	}
	for _, m := range values.Members(raw) {
		if m.Key != "content" && m.Key != "description" && m.Key != "confirm" {
			return raw, ""
		}
	}
	return form.Content, form.Description
}
