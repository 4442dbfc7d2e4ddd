package gateway

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/human"
	"tandem/human/form"
	"tandem/payload"
	"tandem/text"
)

// manyVersion is the first version of the protocol whose forms let somebody choose several things, and choose by titles.
const manyVersion = "2025-11-25"

// drawing draws the form of a question in the words of the protocol: a flat object of simple values for a client to put to its user, and a
// schema of the whole answer for a program. The protocol does not say what language a user reads, so it is English like all that the
// gateway says.
type drawing struct {
	*form.Form
	version string
	// entries are those that a form of the version shows; flat says that it shows all that is needed.
	entries []int
	flat    bool
}

// drawQuestion draws a question for a version of the protocol. Params are what a step wants, null for what it lacks.
func drawQuestion(q *api.UserInputRequest, params map[string]json.RawMessage, version string) *drawing {
	asked, err := questionOf(q)
	if err != nil { // of a newer kind than this program
		asked = form.Question{Purpose: "unknown", Type: "unknown"}
	}
	asked.Params = params
	return draw(form.New(asked, text.English), version)
}

// medium is what a form of the Model Context Protocol can have; several says that its version lets choose several things.
func medium(several bool) form.Medium {
	m := form.Medium{Cannot: []form.Kind{form.File, form.JSON}, LeavesOut: true}
	if !several {
		m.Cannot = append(m.Cannot, form.Some)
	}
	return m
}

func draw(f *form.Form, version string) *drawing {
	d := &drawing{Form: f, version: version}
	d.entries, d.flat = medium(version >= manyVersion).Draw(f)
	return d
}

// questionOf is what the form of a question is made of, as the API tells it.
func questionOf(q *api.UserInputRequest) (form.Question, error) {
	asked := form.Question{Purpose: q.Purpose, Type: q.InteractionType, Multiple: q.AllowMultiple, Schema: q.Schema}
	read := func(raw json.RawMessage, into any) error {
		if len(raw) == 0 {
			return nil
		}
		return json.Unmarshal(raw, into)
	}
	if err := read(q.Options, &asked.Options); err != nil {
		return asked, err
	}
	if err := read(q.InputFields, &asked.Fields); err != nil {
		return asked, err
	}
	return asked, read(q.Review, &asked.Review)
}

// key is the name of an entry in a flat form: its own, unless another has the same.
func (d *drawing) key(n int) string {
	e := &d.Entries[n]
	if e.Group == form.GroupEvidence { // a criterion has a score by the same name
		return e.Group + ": " + e.Name
	}
	for other := range d.Entries {
		if o := &d.Entries[other]; e.Group != "" && other != n && o.Name == e.Name && o.Group != form.GroupEvidence {
			return e.Path()
		}
	}
	return e.Name
}

// simple is an entry as forms of the protocol say it: type, title, description, format, bounds, choices.
func (d *drawing) simple(e *form.Entry) map[string]any {
	schema := map[string]any{"type": "string"}
	if e.Label != e.Name && e.Label != "" {
		schema["title"] = e.Label
	}
	about := []string{e.About}
	switch e.Kind {
	case form.Number:
		schema["type"] = map[bool]string{true: "integer", false: "number"}[e.Whole]
		put(schema, "minimum", e.Min)
		put(schema, "maximum", e.Max)
	case form.Email, form.Date:
		schema["format"] = string(e.Kind)
	case form.YesNo, form.Tick:
		schema["type"] = "boolean"
		if e.Group == form.GroupScores {
			about = append(about, e.Written(d.Language))
		}
	case form.One:
		maps.Copy(schema, d.choice(e.Choices, gjson.GetBytes(e.Schema, "enumNames").Exists()))
	case form.Some:
		schema["type"], schema["items"] = "array", itemsOf(d.choice(e.Choices, false))
		if put(schema, "minItems", e.MinItems); e.Required && e.MinItems == nil {
			schema["minItems"] = 1
		}
		put(schema, "maxItems", e.MaxItems)
	case form.Score:
		about = append(about, e.Limits)
	default:
		put(schema, "minLength", e.MinLength)
		put(schema, "maxLength", e.MaxLength)
	}
	if text := strings.TrimSpace(strings.Join(about, " ")); text != "" {
		schema["description"] = text
	}
	if value := proposed(e); value != nil {
		schema["default"] = value
	}
	return schema
}

func put[T any](schema map[string]any, name string, value *T) {
	if value != nil {
		schema[name] = *value
	}
}

// proposed is the default of an entry as a form has it; nil: none.
func proposed(e *form.Entry) any {
	if e.Kind == form.Tick {
		return false
	}
	if e.Default == nil {
		return nil
	}
	var names []string
	for _, c := range e.Choices {
		if e.Picked(c, e.Default) {
			names = append(names, c.Value)
		}
	}
	switch {
	case e.Kind == form.Some && len(names) > 0:
		return names
	case e.Kind == form.One && len(names) == 1:
		return names[0]
	case e.Kind == form.Some, e.Kind == form.One:
		return nil
	}
	value, err := payload.Decode(e.Default)
	if err != nil || !fits(e, value) {
		return nil // a client might refuse the form
	}
	return value
}

// fits says that a value is of the type that an entry has in a form.
func fits(e *form.Entry, value any) bool {
	switch value.(type) {
	case bool:
		return e.Kind == form.YesNo
	case json.Number:
		return e.Kind == form.Number
	case string:
		return e.Kind == form.Line || e.Kind == form.Area || e.Kind == form.Email || e.Kind == form.Date || e.Kind == form.Score
	}
	return false
}

// choice is one of several texts, with what they are called for people: earlier versions have the names beside the values, and so has every
// version where the author wrote them that way.
func (d *drawing) choice(choices []form.Choice, beside bool) map[string]any {
	constants, values, labels, labelled := make([]any, len(choices)), make([]any, len(choices)), make([]any, len(choices)), false
	for n, c := range choices {
		constants[n] = map[string]any{"const": c.Value, "title": c.Label}
		values[n], labels[n] = c.Value, c.Label
		labelled = labelled || c.Label != c.Value
	}
	switch {
	case !labelled:
		return map[string]any{"enum": values}
	case d.version < manyVersion, beside:
		return map[string]any{"enum": values, "enumNames": labels}
	}
	return map[string]any{"oneOf": constants}
}

// itemsOf is a choice of one thing as what a choice of several is made of.
func itemsOf(one map[string]any) map[string]any {
	if list, ok := one["oneOf"]; ok {
		return map[string]any{"anyOf": list}
	}
	one["type"] = "string"
	return one
}

// fields are what an object is made of, in the order of a form.
type fields struct {
	members  []payload.Member
	required []string
}

// put adds a field, or puts it in the place of one by the same name.
func (f *fields) put(name string, schema json.RawMessage, required bool) {
	if at := slices.IndexFunc(f.members, func(m payload.Member) bool { return m.Key == name }); at >= 0 {
		f.members[at].Value = schema
	} else {
		f.members = append(f.members, payload.Member{Key: name, Value: schema})
	}
	if required && !slices.Contains(f.required, name) {
		f.required = append(f.required, name)
	}
}

// object is the schema of an object with the fields.
func (f *fields) object(required []string) json.RawMessage {
	schema := map[string]any{"type": "object", "properties": json.RawMessage(payload.AppendObject(nil, f.members))}
	if required != nil {
		schema["required"] = required
	}
	return raw(schema)
}

// flatSchema is the form as a client shows it: its fields are in the order of the form.
func (d *drawing) flatSchema() json.RawMessage {
	all := fields{required: []string{}}
	for _, n := range d.entries {
		all.put(d.key(n), raw(d.simple(&d.Entries[n])), d.Entries[n].Required)
	}
	return all.object(all.required)
}

// answerSchema is the schema of the whole answer, for a program: what an author has written of a value stands as it is, and fields are in
// the order of the form.
func (d *drawing) answerSchema() json.RawMessage {
	all, groups := fields{required: []string{}}, map[string]*fields{}
	for n := range d.Entries {
		e := &d.Entries[n]
		if e.Name == "" {
			return json.RawMessage(`{"type":"object"}`)
		}
		schema := raw(d.whole(e))
		if e.Group == "" {
			all.put(e.Name, schema, e.Required)
			continue
		}
		group := groups[e.Group]
		if group == nil {
			group = &fields{}
			groups[e.Group] = group
		}
		group.put(e.Name, schema, e.Required)
		all.put(e.Group, group.object(group.required), len(group.required) > 0)
	}
	return all.object(all.required)
}

// whole is the schema of a value in an answer.
func (d *drawing) whole(e *form.Entry) any {
	switch {
	case len(e.Schema) > 0:
		return e.Schema
	case e.Kind == form.File:
		return map[string]any{"type": "object", "description": "A file: {base64, name, content_type?}"}
	case e.Kind == form.Score:
		return map[string]any{"description": e.Limits}
	case e.Kind == form.JSON && e.Name == e.Path() && (e.Name == form.GroupFields || e.Name == form.GroupContent):
		return map[string]any{"type": "object"}
	case e.Kind == form.JSON:
		return map[string]any{"description": strings.TrimSpace(e.About)}
	case e.Name == form.NameChosen && e.Kind == form.One:
		one := d.simple(e)
		delete(one, "title")
		return map[string]any{"type": "array", "minItems": 1, "maxItems": 1, "items": one}
	}
	return d.simple(e)
}

// answer makes the answer of what a form was filled in with. What cannot be a value is told; whether the answer is right is for the API to
// say.
func (d *drawing) answer(content map[string]any) (json.RawMessage, form.Problems) {
	values := form.Values{}
	var wrong form.Problems
	for _, n := range d.entries {
		e := &d.Entries[n]
		value, no := readContent(e, content[d.key(n)])
		if no != nil {
			wrong = append(wrong, form.Problem{Path: e.Path(), Text: *no})
		}
		values[n] = value
	}
	return d.Answer(values), wrong
}

// readContent reads what a client sends for an entry.
func readContent(e *form.Entry, value any) (json.RawMessage, *form.Text) {
	switch v := value.(type) {
	case nil:
		return nil, nil
	case string:
		return e.Read(v)
	case []any:
		var names []string
		for _, one := range v {
			text, ok := one.(string)
			if !ok {
				text = string(raw(one))
			}
			names = append(names, text)
		}
		return e.Choose(names...)
	}
	return e.Read(string(raw(value)))
}

// refusal is the answer when somebody does not fill in the form: of what runs only with a yes it is a no. Who only closes the form has
// refused nothing but a confirmation, which is one of what was just asked for. Nil: none.
func (d *drawing) refusal(action string) json.RawMessage {
	decision, n := d.Decision()
	if d.Purpose != human.PurposeConfirm && (d.Purpose != human.PurposeToolApproval || action != "decline") {
		return nil
	}
	return d.Answer(form.Values{n: decision.Outcome(form.Rejected)[0].Raw})
}
