package node

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/fault"
	"tandem/node/shape"
	"tandem/text"
	"tandem/workflow"
)

// The codes of problems that kinds report about a configuration; workflow has those of the format. They are stored and sent, so none ever
// changes its meaning.
const (
	ProblemUnknownConfiguration = "unknown_configuration"
	ProblemInlineSecret         = "inline_secret"
	ProblemDropped              = "dropped_configuration"
	ProblemNeverChanges         = "condition_never_changes"
	ProblemDuplicateCase        = "duplicate_case"
	ProblemToolEndsTurn         = "tool_ends_turn"
	ProblemNeedsModel           = "needs_model"

	ProblemCredentialMissing = string(fault.CredentialMissing)
	ProblemUnsupported       = string(fault.Unsupported)
)

// ToBeChosen is the value of a credential that is chosen when the workflow is deployed.
const ToBeChosen = "{{$placeholder}}"

// Limits for hostile files: no one reads more problems, and looking for similar names takes time.
const (
	MaxProblems    = 1000 // per node
	maxSuggestions = 50   // per node
)

// Planning is a node while its configurations are checked: what is written, the problems found so far, and the plan that results. A kind's
// plan function is called when every field has been checked by itself. It reports what fields say together, and fills the plan with what
// the configuration decides.
//
// The typed configuration beside it holds what is known now: a field whose value is a placeholder, or is wrong, is zero there; what is not
// written has its default.
type Planning struct {
	workflow.Plan

	node     *workflow.Node
	shape    *shape.Shape
	problems []workflow.Problem
	saving   bool                    // see Saving
	values   map[string]gjson.Result // by name, older spellings resolved; null counts as absent
	paths    map[string]string       // where each value stands
	// otherwise has the values of fields without a default when they are not written.
	otherwise map[string]string
}

// planned makes a plan function from one with a typed configuration.
func planned[C any](own *shape.Shape, plan []func(p *Planning, cfg *C)) func(p *Planning) {
	if len(plan) == 0 {
		return nil
	}
	return func(p *Planning) {
		var cfg C
		own.ReadKnown(p.values, reflect.ValueOf(&cfg).Elem())
		for _, f := range plan {
			f(p, &cfg)
		}
	}
}

// workflowKind is the kind as a graph sees it.
func (k *Kind) workflowKind() workflow.Kind {
	about := k.About
	typ, _, _ := strings.Cut(about.Name, ".")
	whole := commonShape.With(k.config)
	aliases := about.keyAliases(typ)
	var instead []string
	for _, key := range about.Keys {
		if key.Instead {
			instead = append(instead, key.Name)
		}
	}
	plan, published := k.plan, k.Publishes != ""
	return workflow.Kind{Name: about.Name, Scope: about.Body, Plan: func(n *workflow.Node) (workflow.Plan, []workflow.Problem) {
		p := &Planning{node: n, shape: whole}
		p.readNeeds(about.Needs)
		p.Keys, p.KeyAliases, p.Instead = p.fixedKeys(about.Keys), maps.Clone(aliases), instead
		p.common(&about, typ)
		if plan != nil {
			plan(p)
		}
		p.check(&about, typ)
		p.checkOutputs(&about, published)
		return p.Plan, p.problems
	}}
}

// fixedKeys are the keys of a kind that its configuration does not name.
func (p *Planning) fixedKeys(keys []Key) []string {
	var fixed []string
	for _, key := range keys {
		if key.Name != AnyKey && !slices.ContainsFunc(key.With, p.unmet) {
			fixed = append(fixed, key.Name)
		}
	}
	if len(fixed) == 0 {
		return []string{workflow.DefaultKey}
	}
	return fixed
}

// keyAliases are the accepted spellings of a kind's output keys. "main" is "result" or what the kind has instead of it.
func (a *About) keyAliases(typ string) map[string]string {
	aliases := map[string]string{"main": workflow.DefaultKey}
	if slices.Contains([]string{"ACTION", "EXTERNAL_ACTION", "AI_AGENT", "TOOL"}, typ) {
		aliases["success"], aliases["response"] = workflow.DefaultKey, workflow.DefaultKey
	}
	maps.Copy(aliases, a.Aliases)
	if key, ok := aliases[workflow.DefaultKey]; ok {
		aliases["main"] = key
	}
	return aliases
}

// readNeeds checks what is written against the fields of the kind.
func (p *Planning) readNeeds(needs Needs) {
	root := gjson.ParseBytes(p.node.Configurations)
	if len(p.node.Configurations) == 0 || root.Type == gjson.Null {
		root = gjson.Parse("{}")
	}
	if !root.IsObject() {
		p.Invalid("configurations", "must be an object")
		root = gjson.Parse("{}")
	}
	p.values, p.paths = p.readObject("configurations", root, p.shape)
	if needs.Credential == nil {
		return
	}
	value, set := p.values["credential_id"]
	types := shape.Either(shape.QuoteAll(needs.Credential))
	switch {
	case set && strings.TrimSpace(value.Str) == ToBeChosen:
		p.Warn(ProblemCredentialMissing, p.paths["credential_id"], "choose a credential of type %s before deploying", types)
	case !set && !needs.Optional && !p.Templated():
		p.Warn(ProblemCredentialMissing, "configurations.credential_id", "%s needs a credential of type %s; set credential_id before deploying", p.node.Kind(), types)
	}
}

// common fills in what the common fields decide.
func (p *Planning) common(about *About, typ string) {
	p.Traits = about.Traits
	c := commonConfig{}
	commonShape.ReadKnown(p.values, reflect.ValueOf(&c).Elem())
	if !p.Has("on_unknown") && about.OnUnknown != "" {
		c.OnUnknown = string(about.OnUnknown)
	}
	p.TimeoutMS = p.Milliseconds("timeout")
	retries, written := p.number("max_retries")
	if !written {
		retries = float64(c.MaxRetries)
	}
	p.MaxRetries = int(max(0, min(retries, 10)))
	p.Credits, _ = p.number("credit_cost")
	p.OnError, p.OnUnknown, p.Disabled = workflow.OnError(c.OnError), workflow.OnUnknown(c.OnUnknown), !c.Enabled
	if p.OnError == workflow.OnErrorDefault && !p.Has("default_output") && !p.Templated() {
		p.Invalid("configurations.default_output", "is required when on_error is %q", workflow.OnErrorDefault)
	}
	if typ == workflow.TypeTrigger || about.Body != nil {
		p.MaxRetries = 0
		if p.Has("max_retries") {
			p.Idle("max_retries", "a trigger has run when it is asked, and what fails in a body is retried inside of it")
		}
	}
	if about.Body != nil && c.EnableFilling {
		p.Warn(workflow.ProblemConfig, p.At("enable_filling"), "enable_filling does nothing here: a node that runs a body is not filled; set it on the nodes of the body")
	}
	p.SkipDisabled = typ == workflow.TypeHuman
	if p.Effect = about.Effect; p.Effect == "" {
		p.Effect = workflow.Once
	}
}

// check checks the common fields against the whole plan.
func (p *Planning) check(about *About, typ string) {
	if p.Has("on_unknown") && p.Effect != workflow.Once {
		p.Warn(workflow.ProblemConfig, p.At("on_unknown"), "on_unknown does nothing here: what the node does may be repeated, so nobody is asked whether it was done; remove it")
	}
	if p.Has("credential_id") && about.Needs.Credential == nil && typ != workflow.TypeHuman { // a question uses the channel it names
		p.Warn(workflow.ProblemConfig, p.At("credential_id"), "credential_id does nothing here: %s opens no credential; remove it", p.node.Kind())
	}
	if p.Has("default_output") && p.OnError != workflow.OnErrorDefault && !p.Templated() {
		p.Warn(workflow.ProblemConfig, p.At("default_output"), "default_output does nothing here: it stands for the output of a node that fails with on_error %q; set that, or remove it", workflow.OnErrorDefault)
	}
	p.checkIdle()
	p.checkStandIn(typ)
}

// checkStandIn checks a kind without a main key: its default output must name its keys, and it cannot be switched off.
func (p *Planning) checkStandIn(typ string) {
	if _, ok := p.MainKey(); ok || len(p.Keys) == 0 {
		return
	}
	keys := strings.Join(shape.QuoteAll(p.Keys), ", ")
	if p.Disabled && !p.SkipDisabled && typ != workflow.TypeTrigger {
		p.Invalid(p.At("enabled"), "cannot be false here: %s has no key under which its input could be handed on, only %s; remove the node and connect what is around it", p.node.Kind(), keys)
	}
	value, set := p.values["default_output"]
	if p.OnError != workflow.OnErrorDefault || !set || shape.Dynamic(value) {
		return
	}
	members := value.Map()
	if !value.IsObject() || len(members) == 0 {
		p.Invalid(p.At("default_output"), "must be an object with a payload for one of the keys of %s: %s", p.node.Kind(), keys)
		return
	}
	p.StandIn = slices.Sorted(maps.Keys(members))
	for _, key := range p.StandIn {
		if !slices.Contains(p.Keys, key) {
			p.Invalid(Under(p.At("default_output"), key), "is not a key of %s; it has %s", p.node.Kind(), keys)
		}
	}
}

// Kind is the name of the node's kind, ID that of the node.
func (p *Planning) Kind() string { return p.node.Kind() }

// ID is the id of the node.
func (p *Planning) ID() string { return p.node.ID }

// Has says whether a field is written, with any value but null. It panics for a field that the kind does not have.
func (p *Planning) Has(name string) bool {
	if p.shape.Find(name) < 0 {
		panic(fmt.Sprintf("node: the plan of %s asks for the field %q, which it does not have", p.node.Kind(), name))
	}
	_, ok := p.values[name]
	return ok
}

// Knows says whether the kind has a field.
func (p *Planning) Knows(name string) bool { return p.shape.Find(name) >= 0 }

// Templated says whether a template brings values of its own, so that what is missing may come from there.
func (p *Planning) Templated() bool { _, ok := p.values["template_id"]; return ok }

// Dynamic says whether a field's value has a placeholder, so that it is known only when the node runs.
func (p *Planning) Dynamic(name string) bool { return shape.Dynamic(p.values[name]) }

// Value is a field as it is written.
func (p *Planning) Value(name string) gjson.Result { return p.values[name] }

// Items are the elements of a list as they are written; nil when there is no list.
func (p *Planning) Items(name string) []gjson.Result {
	if v := p.values[name]; v.IsArray() {
		return v.Array()
	}
	return nil
}

// Listed are the elements of a list of texts, or its default. The second result is false when they are known only when the node runs.
func (p *Planning) Listed(name string, usual ...string) (items []string, known bool) {
	if !p.Has(name) {
		return usual, !p.Templated()
	}
	for _, item := range p.Items(name) {
		items = append(items, item.String())
	}
	return items, !p.Dynamic(name)
}

// Choice is the value of a field that decides how dangerous a node is. It is "" also when a template may bring the value, so that a
// default is never mistaken for it.
func (p *Planning) Choice(name, value string) string {
	if !p.Has(name) && p.Templated() {
		return ""
	}
	return value
}

// At is the path of a field as it was written, or as it would be.
func (p *Planning) At(name string) string {
	if path, ok := p.paths[name]; ok {
		return path
	}
	return Under("configurations", name)
}

// Milliseconds is the value of a field of seconds. A value that cannot be used, which was reported, counts as the default.
func (p *Planning) Milliseconds(name string) int64 {
	f := &p.shape.Fields[p.shape.Find(name)]
	n, ok := p.number(name)
	if !ok || !f.Holds(n) {
		n, _ = strconv.ParseFloat(f.Usual, 64)
	}
	return int64(math.Round(n * 1000))
}

// number is a number as it is written, even if it is out of the field's range.
func (p *Planning) number(name string) (float64, bool) {
	v := p.values[name]
	return v.Num, v.Type == gjson.Number
}

// Require reports a field that another field's value makes necessary. Because is a format: "when %s is %q".
func (p *Planning) Require(name, because string, args ...any) {
	if p.Templated() {
		return
	}
	missing := func() { p.Invalid(Under("configurations", name), "is required %s", text.Formatted(because, args...)) }
	if !p.Has(name) {
		missing()
	} else if shape.Empty(p.values[name]) {
		p.Saving(missing)
	}
}

// Saving lets check report errors that only prevent saving and deploying. A check that is added to a kind in use belongs here: stored
// revisions have passed without it and still run, and a run refuses what it cannot use.
func (p *Planning) Saving(check func()) {
	before := p.saving
	p.saving = true
	check()
	p.saving = before
}

// Invalid reports a value that cannot be used; the message begins with the name of what is wrong.
func (p *Planning) Invalid(path, format string, args ...any) {
	p.report(workflow.SeverityError, workflow.ProblemConfig, path,
		text.As("%s %s").With(strconv.Quote(strings.TrimPrefix(path, "configurations.")), text.Formatted(format, args...)))
}

// Refuse reports an error.
func (p *Planning) Refuse(code, path, format string, args ...any) {
	p.report(workflow.SeverityError, code, path, text.Formatted(format, args...))
}

// Warn reports a problem that does not prevent anything.
func (p *Planning) Warn(code, path, format string, args ...any) {
	p.report(workflow.SeverityWarning, code, path, text.Formatted(format, args...))
}

func (p *Planning) report(severity workflow.Severity, code, path string, words text.Text) {
	if !p.Full() {
		p.problems = append(p.problems, workflow.Problem{Severity: severity, Code: code, Path: path, Saving: p.saving}.Saying(words))
	}
}

// Full says whether there are so many problems that it is not worth looking for more.
func (p *Planning) Full() bool { return len(p.problems) >= MaxProblems }

// Failed says whether an error was reported.
func (p *Planning) Failed() bool { return workflow.HasErrors(p.problems) }

// Suggest is the end of a message that offers the most similar name, as long as there are not too many problems already.
func (p *Planning) Suggest(name string, candidates []string) text.Text {
	if len(p.problems) >= maxSuggestions {
		return text.Text{}
	}
	best := fault.Nearest(name, candidates)
	if best == "" {
		return text.Text{}
	}
	return text.Of("; did you mean %q?", best)
}

// ReservedKey says whether an output key has a meaning of its own, so that a configuration cannot give it another.
func ReservedKey(key string, also ...string) bool {
	return slices.Contains(append(also, workflow.DefaultKey, workflow.ErrorKey, "main"), key)
}
