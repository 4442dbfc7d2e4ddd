package ask

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/engine"
	"tandem/fault"
	"tandem/human"
	"tandem/node"
	"tandem/workflow"
)

func humanKeys() []node.Key {
	keys := []node.Key{
		{Name: "result", Meaning: node.Says("The answer, whatever it is.", "答复，无论内容。")},
		{Name: human.Confirmed, Meaning: node.Says("The answer, if it confirms.", "确认的答复。")},
		{Name: human.Rejected, Meaning: node.Says("The answer, if it rejects.", "拒绝的答复。")},
		{Name: human.Unrelated, Instead: true, Meaning: node.Says("An answer that is about something else.", "与问题无关的答复。")},
		{Name: human.TimedOut, Instead: true, Meaning: node.Says("The question, when nobody has answered in time.", "超时未答的问题。")},
		{Name: node.AnyKey, From: []node.KeySource{
			{Field: "approval_options", Of: []string{"value"}, Usual: usualOptions()}, {Field: "selection_options", Of: []string{"value"}},
		}, Meaning: node.Says("The answer, if this option was chosen; each option is a key.", "选择该选项时的答复；每个选项都是一个键。")},
	}
	for i := range keys {
		keys[i].Fields = node.ValuesOf[humanOutput]()
	}
	return keys
}

// usualOptions are what can be chosen in an approval that names no options.
func usualOptions() []string { return []string{"approve", "reject"} }

// humanInputs are the input of questions.
func humanInputs() []node.Value {
	return []node.Value{
		node.Meaning("content", "What the question is about, if the configuration does not say.", "未配置时问题所涉及的内容。"),
		node.Meaning("user_mention", "Who is mentioned in the message, if the configuration does not say.", "未配置时消息中提及的人。"),
		node.Meaning("*", "What the question is about, if there is no content.", "没有 content 时问题所涉及的内容。"),
	}
}

// humanAliases are the keys of older files.
func humanAliases() map[string]string {
	return map[string]string{"approved": human.Confirmed, "completed": workflow.DefaultKey, "filtered": human.Unrelated}
}

// planHuman checks a question to people. Particular fills in what the kind's own fields say of the question.
func (d Deps) planHuman(p *node.Planning, c *Config, m Medium, particular func(draft *humanDraft)) {
	medium := m.Channel
	channel := cmp.Or(medium, c.Channel)
	p.Otherwise("channel_type", cmp.Or(medium, human.InApp))
	p.Otherwise("timeout_action", human.TimeoutFail)
	if !c.Advisory {
		p.Asks = human.Confirmed
	}
	if p.Dynamic("advisory") {
		p.Invalid(p.At("advisory"), "must be true or false: whether a question can be passed over is decided when the workflow is saved")
	}
	if medium != "" && c.Channel != "" && c.Channel != medium {
		p.Invalid(p.At("channel_type"), "must be %q for %s, or left out", medium, p.Kind())
	}
	if c.TimeoutAction == human.TimeoutDefault {
		p.Require("timeout_default_response", "when %s is %q", "timeout_action", "default_response")
	}
	if p.Has("timeout_seconds") && p.Has("timeout_minutes") {
		p.Invalid(p.At("timeout_minutes"), "sets the same as timeout_seconds; keep one of them")
	}
	if human.MediaOf(d.Channels...)[channel].NeedsURL {
		p.Require("webhook_url", "when %s is %q", "channel_type", channel)
	}
	if types := d.credentials(channel); medium == "" && types != "" && !p.Has("credential_id") && !p.Templated() {
		p.Warn(node.ProblemCredentialMissing, p.At("credential_id"), "asking by %q needs a credential of type %s; set credential_id before deploying", channel, types)
	}
	switch c.Type {
	case human.Approval:
		if p.Has("approval_options") || p.Templated() {
			planOptions(p, "approval_options")
		} else {
			p.Keys = append(p.Keys, usualOptions()...)
		}
	case human.Selection:
		p.Require("selection_options", "when %s is %q", "interaction_type", "selection")
		planOptions(p, "selection_options")
	}
	// What a template brings is not known here, and what is wrong already need not be said twice.
	if !p.Templated() && !p.Failed() {
		draft := newHumanDraft(p, c, m, channel)
		if particular != nil {
			particular(draft)
		}
		draft.check()
	}
}

// credentials are the types of credential that a channel asks with, as a text; empty: none.
func (d Deps) credentials(channel string) string {
	var types []string
	for _, name := range human.MediaOf(d.Channels...)[channel].Credentials {
		types = append(types, strconv.Quote(name))
	}
	if len(types) < 2 {
		return strings.Join(types, "")
	}
	last := len(types) - 1
	return strings.Join(types[:last], ", ") + " or " + types[last]
}

// planOptions adds an output key for each option a person can choose. Options that are only known at run time make any key possible.
func planOptions(p *node.Planning, name string) {
	options := p.Items(name)
	if p.Dynamic(name) || p.Templated() || slices.ContainsFunc(options,
		func(o gjson.Result) bool { return node.Dynamic(o) || node.Dynamic(o.Get("value")) }) {
		p.Keys = nil
		return
	}
	if p.Has(name) && len(options) == 0 {
		p.Invalid(p.At(name), "must be a list with at least one option")
	}
	reserved := append(slices.Collect(maps.Keys(humanAliases())), p.Keys...)
	seen := map[string]bool{}
	for i, option := range options {
		at := fmt.Sprintf("%s[%d]", p.At(name), i)
		key := option.String()
		if option.IsObject() {
			at, key = at+".value", option.Get("value").String()
		}
		switch {
		case strings.TrimSpace(key) == "":
			p.Invalid(at, "must not be empty")
		case node.ReservedKey(key, reserved...):
			p.Invalid(at, "cannot be %q, which is a reserved output key; call the option differently and set its outcome", key)
		case seen[key]:
			p.Invalid(at, "is the second option called %q; keep one", key)
		default:
			seen[key] = true
			p.Keys = append(p.Keys, key)
		}
	}
}

// humanDraft is a question as far as it is known when a workflow is saved. It is opened like one that is asked, so that what the desk would
// refuse then is said now.
type humanDraft struct {
	p       *node.Planning
	c       *Config
	m       Medium
	request human.Request
	// whole says that nothing of what an answer is checked against comes from a placeholder.
	whole bool
	// options and approvers are the configurations that the request has these from.
	options, approvers string
}

// maxDraft is how many options and fields are looked at: nobody reads more, and comparing them takes time.
const maxDraft = 1000

// draftTime stands for the time at which it is asked.
const draftTime = 1

func newHumanDraft(p *node.Planning, c *Config, m Medium, channel string) *humanDraft {
	d := &humanDraft{p: p, c: c, m: m, whole: true, options: "approval_options", approvers: "approvers", request: human.Request{Type: c.Type, Channel: channel, Title: "draft"}}
	r := &d.request
	switch r.Type {
	case human.Selection:
		d.options = "selection_options"
		if !d.readSetting(d.options, &r.Options) {
			r.Options = []human.Option{{Value: "draft"}}
		}
	case human.Approval:
		d.readSetting(d.options, &r.Options)
	case human.Input:
		fields, schema := d.readSetting("input_fields", &r.Fields), d.readSetting("form_schema", &r.Schema)
		if !fields && !schema && !d.whole {
			r.Fields = []human.Field{{Name: "draft"}}
		}
	case human.Review:
		r.Review = &human.ReviewRules{Min: 1, Max: 5, Threshold: 3}
		if !d.readSetting("review_criteria", &r.Review.Criteria) && !d.whole {
			r.Review.Criteria = []string{"draft"}
		}
	}
	r.AllowMultiple, r.ExcludeRequester, r.Advisory = c.AllowMultiple, c.ExcludeRequester, c.Advisory
	d.people()
	return d
}

// readSetting reads a configuration into a part of the request. It is false when there is none, or it is known only at run time.
func (d *humanDraft) readSetting(name string, to any) bool {
	if !d.p.Knows(name) || !d.p.Has(name) {
		return false
	}
	if !static(d.p.Value(name)) || len(d.p.Items(name)) > maxDraft {
		d.whole = false
		return false
	}
	if err := json.Unmarshal([]byte(d.p.Value(name).Raw), to); err != nil {
		d.p.Invalid(d.p.At(name), "cannot be read: %s", fault.From(err).Message)
		d.whole = false
		return false
	}
	return true
}

// static says that nothing in a value comes from a placeholder.
func static(v gjson.Result) bool {
	return !strings.Contains(v.Raw, "{{") && !strings.Contains(v.Raw, "${")
}

// people fills in who is asked. Where that is known only at run time it is somebody who is many.
func (d *humanDraft) people() {
	name := ""
	for _, source := range []string{"approvers", d.m.Names} {
		if source != "" && d.p.Knows(source) && (len(d.p.Items(source)) > 0 || d.p.Dynamic(source)) {
			name = source
			break
		}
	}
	if name == "" {
		return // who has started it
	}
	d.approvers = name
	for _, one := range d.p.Items(name) {
		text := one.String()
		if name != "approvers" && d.m.As != nil {
			text = d.m.As(text)
		}
		if !static(one) || len(d.request.Approvers) >= maxDraft {
			d.request.Approvers = []string{"role:approver"}
			return
		}
		if text != "" {
			d.request.Approvers = append(d.request.Approvers, text)
		}
	}
	if d.p.Dynamic(name) {
		d.request.Approvers = []string{"role:approver"}
	}
}

// check reports what is wrong, one thing after the other: what is asked and who is, then those who are asked later and how many must agree,
// then the answer that is taken when nobody gives one.
func (d *humanDraft) check() {
	p, r := d.p, &d.request
	if !d.opens(nil) {
		return
	}
	r.MinApprovals = int(d.c.MinApprovals)
	if e := p.Value("escalation"); e.IsObject() {
		if seconds := e.Get("after_seconds"); seconds.Type == gjson.Number {
			d.escalation(e.Get("to"), seconds.Num)
		}
		if !static(e.Get("to")) {
			r.MinApprovals = 1
		}
	}
	if !d.opens(map[string]string{"approvers": "escalation.to"}) {
		return
	}
	d.remind()
	if answer := p.Value("timeout_default_response"); d.whole && d.c.TimeoutAction == human.TimeoutDefault && static(answer) {
		r.TimeoutAction, r.TimeoutResponse = human.TimeoutDefault, json.RawMessage(answer.Raw)
		d.opens(nil)
	}
}

// remind warns of a reminder that comes too late.
func (d *humanDraft) remind() {
	if limit := d.limit(); limit > 0 && float64(d.c.ReminderSeconds) >= limit {
		d.p.Idle("reminder_seconds", "the question ends after %g seconds", limit)
	}
}

// limit is after how many seconds the question ends; 0: not by itself.
func (d *humanDraft) limit() float64 {
	if d.c.TimeoutMinutes > 0 {
		return 60 * d.c.TimeoutMinutes
	}
	return float64(d.c.TimeoutSeconds)
}

// escalation fills in who is asked later.
func (d *humanDraft) escalation(to gjson.Result, after float64) {
	limit := d.limit()
	if limit > 0 && after >= limit {
		d.p.Warn(workflow.ProblemConfig, d.p.At("escalation"), "nobody is asked besides: the question ends after %g seconds, before the %g of escalation.after_seconds", limit, after)
	}
	if !static(to) {
		return
	}
	if to.Type != gjson.String && !to.IsArray() {
		d.p.Invalid(node.Under(d.p.At("escalation"), "to"), "must be somebody or a list of them, not %s", node.Excerpt(to))
		return
	}
	e := &human.Escalation{AfterSeconds: int64(after)}
	for _, one := range to.Array() {
		e.To = append(e.To, one.String())
	}
	d.request.Escalation = e
}

// opens lets the desk open the draft and reports what it refuses. Elsewhere says where a part is named that is reported under another name.
func (d *humanDraft) opens(elsewhere map[string]string) bool {
	raw, err := json.Marshal(d.request)
	if err == nil {
		_, err = human.Media(nil).Open(human.Question{User: "starter", Node: d.p.ID(), Ask: engine.AskID("draft"), Activation: "draft",
			Purpose: human.PurposeNode, Request: raw, Time: draftTime})
	}
	if err == nil {
		return true
	}
	f := fault.From(err)
	path, _ := f.Details["path"].(string)
	path = strings.TrimPrefix(path, "configurations.")
	message := strings.TrimPrefix(f.Message, path+": ")
	name, rest := path, ""
	if n := strings.IndexAny(path, ".["); n >= 0 {
		name, rest = path[:n], path[n:]
	}
	switch {
	case elsewhere[name] != "":
		name, rest, _ = strings.Cut(elsewhere[name], ".")
		rest = "." + rest
	case name == "options":
		name = d.options
	case name == "approvers":
		name = d.approvers
	}
	at := "configurations"
	if name != "" {
		at = d.p.At(name) + rest
	}
	d.p.Refuse(string(f.Code), at, "%q cannot be used: %s", strings.TrimPrefix(at, "configurations."), message)
	return false
}
