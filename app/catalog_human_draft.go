package app

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/engine"
	"tandem/fault"
	"tandem/human"
	"tandem/workflow"
)

// humanDraft is a question as far as it is known when a workflow is saved. It is opened like one that is asked, so that what the desk would refuse
// then is said now.
type humanDraft struct {
	c       *config
	request human.Request
	// whole says that nothing of what an answer is checked against comes from a placeholder.
	whole bool
	// options and approvers are the configurations that the request has these from.
	options, approvers string
}

// maxDraft is how many options and fields are looked at: nobody reads more, and comparing them is dear.
const maxDraft = 1000

// draftTime stands for the time at which it is asked.
const draftTime = 1

func newHumanDraft(c *config, channel string) *humanDraft {
	d := &humanDraft{c: c, whole: true, options: "approval_options", approvers: "approvers", request: human.Request{Type: c.text("interaction_type"), Channel: channel, Title: "draft"}}
	r := &d.request
	switch r.Type {
	case human.Selection:
		d.options = "selection_options"
		if !d.read(d.options, &r.Options) {
			r.Options = []human.Option{{Value: "draft"}}
		}
	case human.Approval:
		d.read(d.options, &r.Options)
	case human.Input:
		fields, schema := d.read("input_fields", &r.Fields), d.read("form_schema", &r.Schema)
		if !fields && !schema && !d.whole {
			r.Fields = []human.Field{{Name: "draft"}}
		}
	case human.Review:
		d.review()
	}
	r.AllowMultiple = c.flag("allow_multiple")
	r.ExcludeRequester, r.Advisory = c.flag("exclude_requester"), c.flag("advisory")
	if _, ok := c.shape.field("access"); ok {
		r.Access = c.text("access")
	}
	d.people()
	return d
}

// read reads a configuration into a part of the request. It is false when there is none, or it is known only at run time.
func (d *humanDraft) read(name string, to any) bool {
	if _, ok := d.c.shape.field(name); !ok || !d.c.has(name) {
		return false
	}
	if !static(d.c.values[name]) || len(d.c.items(name)) > maxDraft {
		d.whole = false
		return false
	}
	if err := json.Unmarshal([]byte(d.c.values[name].Raw), to); err != nil {
		d.c.invalid(d.c.at(name), "cannot be read: %s", fault.From(err).Message)
		d.whole = false
		return false
	}
	return true
}

// static says that nothing in a value comes from a placeholder.
func static(v gjson.Result) bool {
	return !strings.Contains(v.Raw, "{{") && !strings.Contains(v.Raw, "${")
}

// review fills in how a review is judged.
func (d *humanDraft) review() {
	v := &human.ReviewRules{Min: 1, Max: 5, Threshold: 3}
	if !d.read("review_criteria", &v.Criteria) && !d.whole {
		v.Criteria = []string{"draft"}
	}
	if _, ok := d.c.shape.field("scoring_system"); ok {
		v.Scoring = d.c.text("scoring_system")
		if n, ok := d.c.number("passing_threshold"); ok {
			v.Threshold = n
		}
		if score := d.c.values["score_range"]; score.Exists() {
			bound := func(name string, to *float64) {
				if b := score.Get(name); b.Type == gjson.Number {
					*to = b.Num
				} else if b.Exists() {
					d.whole = false
				}
			}
			bound("min", &v.Min)
			bound("max", &v.Max)
		}
		if v.Scoring == "" || d.c.isDynamic("passing_threshold") {
			d.whole = false
		}
	}
	d.request.Review = v
}

// people fills in who is asked. Where that is known only at run time it is somebody who is many.
func (d *humanDraft) people() {
	name := ""
	for _, source := range []string{"approvers", "reviewers", "recipient_emails", "target_users"} {
		if _, ok := d.c.shape.field(source); ok && (len(d.c.items(source)) > 0 || d.c.isDynamic(source)) {
			name = source
			break
		}
	}
	if name == "" {
		return // who has started it
	}
	d.approvers = name
	for _, one := range d.c.items(name) {
		text := one.String()
		if name == "target_users" && !strings.HasPrefix(text, human.Telegram+":") {
			text = human.Telegram + ":" + text
		}
		if !static(one) || len(d.request.Approvers) >= maxDraft {
			d.request.Approvers = []string{"role:approver"}
			return
		}
		if text != "" {
			d.request.Approvers = append(d.request.Approvers, text)
		}
	}
	if d.c.isDynamic(name) {
		d.request.Approvers = []string{"role:approver"}
	}
}

// check reports what is wrong, one thing after the other: what is asked and who is, then those who are asked later and how many must agree, then
// the answer that is taken when nobody gives one.
func (d *humanDraft) check() {
	c, r := d.c, &d.request
	if _, ok := c.shape.field("allowed_response_patterns"); ok {
		for n, p := range c.items("allowed_response_patterns") {
			if _, err := regexp.Compile(p.String()); static(p) && err != nil {
				c.invalid(fmt.Sprintf("%s[%d]", c.at("allowed_response_patterns"), n), "is no regular expression: %v", err)
			}
		}
	}
	if !d.opens(nil) {
		return
	}
	if min, ok := c.number("min_approvals"); ok {
		r.MinApprovals = int(min)
	}
	to := c.values["escalation"].Get("to")
	if e := c.values["escalation"]; e.IsObject() {
		if seconds := e.Get("after_seconds"); seconds.Type == gjson.Number {
			d.escalation(to, seconds.Num)
		}
		if !static(to) {
			r.MinApprovals = 1
		}
	}
	if !d.opens(map[string]string{"approvers": "escalation.to"}) {
		return
	}
	if answer := c.values["timeout_default_response"]; d.whole && c.text("timeout_action") == human.TimeoutDefault && static(answer) {
		r.TimeoutAction, r.TimeoutResponse = human.TimeoutDefault, json.RawMessage(answer.Raw)
		d.opens(nil)
	}
}

// escalation fills in who is asked later.
func (d *humanDraft) escalation(to gjson.Result, after float64) {
	limit, ok := d.c.number("timeout_seconds")
	if minutes, set := d.c.number("timeout_minutes"); set {
		limit, ok = 60*minutes, true
	}
	if ok && after >= limit {
		d.c.warnf(workflow.ProblemConfig, d.c.at("escalation"), "nobody is asked besides: the question ends after %g seconds, before the %g of escalation.after_seconds", limit, after)
	}
	if !static(to) {
		return
	}
	if to.Type != gjson.String && !to.IsArray() {
		d.c.invalid(join(d.c.at("escalation"), "to"), "must be somebody or a list of them, not %s", excerpt(to))
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
		_, err = human.Open(human.Question{User: "starter", Node: d.c.node.ID, Ask: engine.AskID("draft"), Activation: "draft", Purpose: human.PurposeNode, Request: raw, Time: draftTime})
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
		at = d.c.at(name) + rest
	}
	d.c.errorf(string(f.Code), at, "%q cannot be used: %s", strings.TrimPrefix(at, "configurations."), message)
	return false
}
