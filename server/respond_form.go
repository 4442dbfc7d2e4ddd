package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"mime/multipart"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/fault"
	"tandem/human"
	"tandem/store"
)

// form is the form of a question: its controls, and the buttons that send it. Where a control's value stands in the answer
// is its path.
type form struct {
	lang string
	// complete says that the page itself sees to what is required: nobody else does before the answer is taken.
	complete bool
	Controls []*control
	Buttons  []button
}

// The kinds of controls. What a template shows follows from it.
const (
	controlText    = "text"
	controlArea    = "area"
	controlNumber  = "number"
	controlEmail   = "email"
	controlDate    = "date"
	controlSelect  = "select"
	controlRadio   = "radio"
	controlChecks  = "checks"
	controlChecked = "checked" // one box: true or false
	controlFile    = "file"
	controlJSON    = "json"
)

// control is one thing to fill in.
type control struct {
	ID       string
	Kind     string
	Label    string
	Hint     string
	Required bool
	Choices  []choice
	// Value is what was typed; Sealed stands for a file that is kept.
	Value  string
	Sealed string
	Error  string

	path []string
	// file is the file as the answer has it; upload is it as long as it is not stored.
	file   *answerFile
	upload *multipart.FileHeader
}

// Described are the ids of what is said about the control.
func (c *control) Described() string {
	var ids []string
	if c.Hint != "" {
		ids = append(ids, c.ID+"-hint")
	}
	if c.Error != "" {
		ids = append(ids, c.ID+"-error")
	}
	return strings.Join(ids, " ")
}

// Grouped says that it is several inputs under one legend.
func (c *control) Grouped() bool { return c.Kind == controlRadio || c.Kind == controlChecks }

// Blame is what is wrong with it as a sentence of its own.
func (c *control) Blame() string {
	first, size := utf8.DecodeRuneInString(c.Error)
	text := string(unicode.ToUpper(first)) + c.Error[size:]
	if strings.HasSuffix(text, ".") || strings.HasSuffix(text, "。") || strings.HasSuffix(text, "!") || strings.HasSuffix(text, "！") || first > unicode.MaxLatin1 {
		return text
	}
	return text + "."
}

// Short says that its choices have room beside each other.
func (c *control) Short() bool {
	return !slices.ContainsFunc(c.Choices, func(o choice) bool { return utf8.RuneCountInString(o.Label) > 8 })
}

// Target is the id of what a link to the control leads to.
func (c *control) Target() string {
	if c.Grouped() {
		return c.ID + "-0"
	}
	return c.ID
}

// choice is something to choose. Raw is its value in the answer.
type choice struct {
	Value, Label string
	Chosen       bool
	raw          json.RawMessage
}

// button sends the form. Raw is what it adds to the answer at its path.
type button struct {
	Value, Label string
	// Tone is good, bad or plain.
	Tone string
	path string
	raw  json.RawMessage
}

// buttonName is the name under which a browser sends the button.
const buttonName = "answer"

func newForm(lang string, i store.Interaction, r human.Request) *form {
	f := &form{lang: lang}
	switch i.Purpose {
	case human.PurposeConfirm:
		f.press("confirm", "true", f.say("确认", "Confirm"), "good", json.RawMessage("true"))
		f.press("confirm", "false", f.say("取消", "Cancel"), "bad", json.RawMessage("false"))
	case human.PurposeParam:
		f.complete = true
		f.schema(r.Schema, "content")
		f.add(&control{Kind: controlArea, Label: f.say("说明（可选）", "Note (optional)"), path: []string{"description"}})
	case human.PurposeOutcomeUnknown:
		f.add(&control{Kind: controlJSON, Label: f.say("结果（JSON，可选）", "Result (JSON, optional)"), Hint: f.say("仅当选择“已完成”时需要：该步骤本应给出的结果。", "Only with “It was done”: what the step would have returned."), path: []string{"result"}})
		f.press("outcome", "done", f.say("已完成", "It was done"), "plain", nil)
		f.press("outcome", "not_done", f.say("未完成，现在执行", "It was not: do it now"), "plain", nil)
		f.press("outcome", "stop", f.say("停止", "Stop"), "bad", nil)
	case human.PurposeBudget:
		f.add(&control{Kind: controlNumber, Label: f.say("预算增加多少", "Raise the budget by"), Required: true, path: []string{"raise_by"}})
	case human.PurposeDrift, human.PurposeActivation:
		f.press("accept", "true", f.say("接受", "Accept"), "good", json.RawMessage("true"))
		f.press("accept", "false", f.say("不接受", "Do not accept"), "bad", json.RawMessage("false"))
	default:
		f.byType(i.Type, r)
	}
	if len(f.Buttons) == 0 {
		f.Buttons = []button{{Label: f.say("提交", "Send"), Tone: "good"}}
	}
	return f
}

func (f *form) byType(kind string, r human.Request) {
	notes := &control{Kind: controlArea, Label: f.say("备注（可选）", "Notes (optional)"), path: []string{"notes"}}
	switch kind {
	case human.Input:
		if len(r.Fields) == 0 {
			f.schema(r.Schema, "field_values")
			return
		}
		for _, field := range r.Fields {
			f.field(field)
		}
	case human.Selection:
		c := &control{Kind: controlRadio, Label: f.say("请选择", "Choose"), Required: true, path: []string{"selected_values"}}
		if r.AllowMultiple {
			c.Kind, c.Hint = controlChecks, f.say("可多选。", "You may choose several.")
		}
		for _, o := range r.Options {
			c.Choices = append(c.Choices, choice{Value: o.Value, Label: f.option(o)})
		}
		f.add(c)
		f.add(notes)
	case human.Review:
		f.review(r.Review)
		f.add(notes)
	default:
		options := r.Options
		if len(options) == 0 {
			options = []human.Option{{Value: "approve"}, {Value: "reject"}}
		}
		f.add(notes)
		for _, o := range options {
			f.press("action", o.Value, f.option(o), toneOf(o), nil)
		}
	}
}

func (f *form) say(zh, en string) string {
	if f.lang == "zh" {
		return zh
	}
	return en
}

func (f *form) add(c *control) *control {
	c.ID = "q" + strconv.Itoa(len(f.Controls))
	f.Controls = append(f.Controls, c)
	return c
}

func (f *form) press(path, value, label, tone string, raw json.RawMessage) {
	if raw == nil {
		raw = jsonText(value)
	}
	f.Buttons = append(f.Buttons, button{Value: value, Label: label, Tone: tone, path: path, raw: raw})
}

// option is how an option is called. Those without a label that everybody knows are put into words.
func (f *form) option(o human.Option) string {
	if o.Label != "" && o.Label != o.Value {
		return o.Label
	}
	switch strings.ToLower(o.Value) {
	case "approve":
		return f.say("批准", "Approve")
	case "reject":
		return f.say("拒绝", "Reject")
	case "confirm":
		return f.say("确认", "Confirm")
	case "deny":
		return f.say("否决", "Deny")
	case "yes":
		return f.say("是", "Yes")
	case "no":
		return f.say("否", "No")
	}
	return o.Value
}

func toneOf(o human.Option) string {
	name := strings.ToLower(o.Value)
	switch {
	case o.Outcome == human.Confirmed, o.Outcome == "" && slices.Contains([]string{"approve", "yes", "confirm"}, name):
		return "good"
	case o.Outcome == human.Rejected, o.Outcome == "" && slices.Contains([]string{"reject", "no", "deny"}, name):
		return "bad"
	}
	return "plain"
}

func (f *form) yesNo() []choice {
	return []choice{{Value: "true", Label: f.say("是", "Yes"), raw: json.RawMessage("true")}, {Value: "false", Label: f.say("否", "No"), raw: json.RawMessage("false")}}
}

// field adds the control of a configured field.
func (f *form) field(field human.Field) {
	c := &control{Kind: controlText, Label: field.Label, Required: field.Required, path: []string{"field_values", field.Name}}
	if c.Label == "" {
		c.Label = field.Name
	}
	switch field.Type {
	case "number":
		c.Kind = controlNumber
	case "email":
		c.Kind = controlEmail
	case "date":
		c.Kind, c.Hint = controlDate, f.say("年-月-日，例如 2027-03-31。", "Year-month-day, such as 2027-03-31.")
	case "select":
		c.Kind = controlSelect
		for _, o := range field.Options {
			c.Choices = append(c.Choices, choice{Value: o.Value, Label: f.option(o)})
		}
	case "boolean":
		c.Kind, c.Choices = controlRadio, f.yesNo()
	case "file":
		c.Kind, c.Hint = controlFile, f.say("最大 10 MiB。", "At most 10 MiB.")
	}
	f.add(c)
}

// review adds the controls of a review: each criterion with its score, and evidence where it is wanted.
func (f *form) review(rules *human.ReviewRules) {
	if rules == nil {
		return
	}
	for _, criterion := range rules.Criteria {
		c := &control{Label: criterion, Required: true, path: []string{"scores", criterion}}
		switch rules.Scoring {
		case "numeric_scale":
			f.scale(c, rules)
		case "letter_grade":
			c.Kind = controlRadio
			for _, letter := range []string{"A", "B", "C", "D", "F"} {
				c.Choices = append(c.Choices, choice{Value: letter, Label: letter})
			}
		case "custom":
			f.scale(c, rules)
		case "checklist":
			c.Kind, c.Required = controlChecked, false
		default:
			c.Kind = controlRadio
			c.Choices = []choice{{Value: "true", Label: f.say("通过", "Pass"), raw: json.RawMessage("true")}, {Value: "false", Label: f.say("不通过", "Fail"), raw: json.RawMessage("false")}}
		}
		f.add(c)
		if rules.Evidence {
			f.add(&control{Kind: controlArea, Label: fmt.Sprintf(f.say("“%s”的依据", "Evidence for “%s”"), criterion), Required: true, path: []string{"evidence", criterion}})
		}
	}
}

// scale lets choose among few whole numbers, and has any other written.
func (f *form) scale(c *control, rules *human.ReviewRules) {
	c.Hint = fmt.Sprintf(f.say("从 %s 到 %s。", "From %s to %s."), decimal(rules.Min), decimal(rules.Max))
	if rules.Min != math.Trunc(rules.Min) || rules.Max != math.Trunc(rules.Max) || rules.Max-rules.Min > 10 || rules.Max <= rules.Min {
		c.Kind = controlNumber
		return
	}
	c.Kind = controlRadio
	for n := rules.Min; n <= rules.Max; n++ {
		c.Choices = append(c.Choices, choice{Value: decimal(n), Label: decimal(n), raw: json.RawMessage(decimal(n))})
	}
}

func decimal(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// schema adds the controls of an object of plain values; anything else is written as JSON.
func (f *form) schema(schema json.RawMessage, under string) {
	s := gjson.ParseBytes(schema)
	var controls []*control
	flat := s.Get("properties").IsObject()
	for _, word := range []string{"$ref", "oneOf", "anyOf", "allOf", "if", "patternProperties", "dependentSchemas"} {
		flat = flat && !s.Get(gjson.Escape(word)).Exists()
	}
	s.Get("properties").ForEach(func(name, property gjson.Result) bool {
		c, ok := f.property(property)
		if c.path = []string{under, name.Str}; c.Label == "" {
			c.Label = name.Str
		}
		c.Required = slices.ContainsFunc(s.Get("required").Array(), func(r gjson.Result) bool { return r.Str == name.Str })
		controls = append(controls, c)
		flat = flat && ok
		return flat
	})
	if flat && len(controls) > 0 {
		for _, c := range controls {
			f.add(c)
		}
		return
	}
	f.add(&control{Kind: controlJSON, Label: f.say("答复（JSON）", "Answer (JSON)"), Hint: f.say("一个 JSON 对象。", "A JSON object."), Required: true, path: []string{under}})
}

// property is the control of a property; not ok when it is no plain value.
func (f *form) property(p gjson.Result) (c *control, ok bool) {
	c = &control{Kind: controlText, Label: p.Get("title").String(), Hint: p.Get("description").String(), Value: p.Get("default").String()}
	if values := p.Get("enum"); values.IsArray() {
		c.Kind = controlSelect
		return c, c.choose(values.Array())
	}
	switch p.Get("type").String() {
	case "string":
		switch p.Get("format").String() {
		case "email":
			c.Kind = controlEmail
		case "date":
			c.Kind = controlDate
		default:
			if p.Get("maxLength").Int() > 200 {
				c.Kind = controlArea
			}
		}
	case "number", "integer":
		c.Kind = controlNumber
	case "boolean":
		c.Kind, c.Choices = controlRadio, f.yesNo()
		c.mark([]string{c.Value})
	case "array":
		c.Kind, c.Value = controlChecks, ""
		return c, p.Get("items.enum").IsArray() && c.choose(p.Get("items.enum").Array())
	default:
		return c, false
	}
	return c, true
}

// choose makes choices of plain values.
func (c *control) choose(values []gjson.Result) bool {
	for _, v := range values {
		if v.IsObject() || v.IsArray() {
			return false
		}
		c.Choices = append(c.Choices, choice{Value: v.String(), Label: v.String(), Chosen: v.String() == c.Value, raw: json.RawMessage(v.Raw)})
	}
	return true
}

func (c *control) mark(values []string) {
	for i := range c.Choices {
		c.Choices[i].Chosen = slices.Contains(values, c.Choices[i].Value)
	}
}

// maxTyped is how much one control may hold.
const maxTyped = 256 << 10

// fill takes what was typed.
func (f *form) fill(values url.Values) {
	for _, c := range f.Controls {
		given := values[c.ID]
		c.mark(given)
		c.Value = ""
		if len(given) > 0 {
			c.Value = strings.ReplaceAll(strings.ToValidUTF8(given[0], "\uFFFD"), "\r\n", "\n")
		}
	}
}

// data is the answer: what was typed, and the button that was pressed. What it cannot tell is said of the controls.
func (f *form) data(pressed string) (json.RawMessage, error) {
	answer := map[string]any{}
	for _, c := range f.Controls {
		raw := f.value(c)
		if raw == nil && f.complete && c.Required && c.Error == "" {
			c.Error = f.say("此项必填。", "it is required")
		}
		switch name := c.path[len(c.path)-1]; {
		case len(c.path) == 1 && raw != nil:
			answer[name] = raw
		case len(c.path) == 2:
			inner, ok := answer[c.path[0]].(map[string]json.RawMessage)
			if !ok {
				inner = map[string]json.RawMessage{}
				answer[c.path[0]] = inner
			}
			if raw != nil {
				inner[name] = raw
			}
		}
	}
	chosen := false
	for _, b := range f.Buttons {
		chosen = chosen || b.path == "" || b.Value == pressed
		if b.path != "" && b.Value == pressed {
			answer[b.path] = b.raw
		}
	}
	if !chosen { // nothing is decided by leaving it open
		return nil, fault.New(fault.InvalidInput, f.say("请点击其中一个按钮作答。", "Answer with one of the buttons."))
	}
	return json.Marshal(answer)
}

// value is what a control adds to the answer; nil: nothing.
func (f *form) value(c *control) json.RawMessage {
	typed := strings.TrimSpace(c.Value)
	if len(c.Value) > maxTyped {
		c.Error = f.say("内容过长。", "This is too long.")
		return nil
	}
	switch c.Kind {
	case controlFile:
		if c.file == nil {
			return nil
		}
		raw, err := json.Marshal(c.file)
		if err != nil {
			return nil // it has texts and a number: it can always be written
		}
		return raw
	case controlChecked:
		return json.RawMessage(strconv.FormatBool(typed != ""))
	case controlRadio, controlSelect, controlChecks:
		return c.chosen()
	case controlNumber:
		if typed != "" && json.Valid([]byte(typed)) && (typed[0] == '-' || typed[0] >= '0' && typed[0] <= '9') {
			return json.RawMessage(typed)
		}
	case controlJSON:
		if typed != "" && !json.Valid([]byte(typed)) {
			c.Error = f.say("这不是有效的 JSON。", "This is no valid JSON.")
			return nil
		}
		if typed == "" {
			return nil
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, []byte(typed)); err != nil {
			c.Error = f.say("这不是有效的 JSON。", "This is no valid JSON.")
			return nil
		}
		return compact.Bytes()
	}
	if typed == "" {
		return nil
	}
	if c.Kind == controlArea {
		return jsonText(c.Value)
	}
	return jsonText(typed)
}

// chosen is what was chosen: a list where several may be, or where the answer wants one.
func (c *control) chosen() json.RawMessage {
	list := []json.RawMessage{}
	for _, o := range c.Choices {
		if o.Chosen {
			if o.raw == nil {
				o.raw = jsonText(o.Value)
			}
			list = append(list, o.raw)
		}
	}
	switch {
	case c.Kind == controlChecks || c.path[0] == "selected_values":
		if len(list) == 0 && c.path[0] != "selected_values" {
			return nil
		}
		return json.RawMessage("[" + string(bytes.Join(bytesOf(list), []byte(","))) + "]")
	case len(list) == 0:
		return nil
	}
	return list[0]
}

func bytesOf(list []json.RawMessage) [][]byte {
	out := make([][]byte, len(list))
	for i, raw := range list {
		out[i] = raw
	}
	return out
}

func jsonText(text string) json.RawMessage {
	raw, err := json.Marshal(text)
	if err != nil {
		return json.RawMessage(`""`) // a text can always be written
	}
	return raw
}

// blame puts what is wrong with an answer beside the controls it is about. What belongs to none is returned.
func (f *form) blame(fields []api.FaultField) (rest []string) {
	for _, field := range fields {
		field.Message = human.FieldIn(f.lang, field)
		path := strings.TrimPrefix(strings.TrimPrefix(field.Path, "response_data."), "input_data.")
		var found *control
		for _, c := range f.Controls {
			own := strings.Join(c.path, ".")
			if path == own || strings.HasPrefix(path, own+".") || strings.HasPrefix(path, own+"[") {
				if found == nil || len(own) > len(strings.Join(found.path, ".")) {
					found = c
				}
			}
		}
		switch {
		case found == nil:
			rest = append(rest, field.Message)
		case found.Error == "":
			found.Error = field.Message
		}
	}
	return rest
}

// wrong says that something is wrong with a control.
func (f *form) wrong() bool {
	return slices.ContainsFunc(f.Controls, func(c *control) bool { return c.Error != "" })
}
