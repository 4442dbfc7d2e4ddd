package flow

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/node"
	"tandem/workflow"
)

// planSwitch finds the keys of the three forms that a switch can have, and checks that it has one of them.
func planSwitch(p *node.Planning, c *switchConfig) {
	if p.Has("choices") {
		p.Effect = workflow.Idempotent // a model chooses
	}
	forms := slices.DeleteFunc([]string{"cases", "branches", "choices"}, func(f string) bool { return !p.Has(f) })
	switch {
	case p.Templated():
		p.Keys = nil
		return
	case len(forms) == 0:
		p.Refuse(workflow.ProblemConfig, "configurations", `a switch needs "switch_value" with "cases", or "branches", or "propose" with "choices"`)
		return
	case len(forms) > 1:
		p.Invalid(p.At(forms[1]), "and %q are two forms of a switch; keep one of them", forms[0])
	}
	keys := switchKeys{p: p, seen: map[string]bool{}}
	fallback := c.DefaultKey
	switch forms[0] {
	case "cases":
		p.Require("switch_value", "beside %s", "cases")
		keys.cases()
	case "branches":
		fallback = keys.branches(fallback)
	case "choices":
		p.Require("propose", "beside %s", "choices")
		p.Require("llm_profile", "beside %s", "choices")
		for i, item := range p.Items("choices") {
			keys.addKey(fmt.Sprintf("%s[%d].branch", p.At("choices"), i), item.Get("branch").Str, false)
		}
	}
	if len(keys.found) == 0 {
		p.Invalid(p.At(forms[0]), "must not be empty")
	}
	if fallback != "" && !slices.Contains(keys.found, fallback) {
		if node.ReservedKey(fallback) {
			p.Invalid(p.At("default_output_key"), "cannot be %q, which is a reserved key", fallback)
		}
		keys.found = append(keys.found, fallback)
	}
	p.Keys = keys.found
}

// switchKeys gathers the output keys of a switch.
type switchKeys struct {
	p     *node.Planning
	found []string
	seen  map[string]bool
}

// addKey notes a key; several cases may share one.
func (k *switchKeys) addKey(at, key string, shared bool) {
	switch {
	case key == "":
		return // reported as missing
	case node.ReservedKey(key):
		k.p.Invalid(at, "cannot have the key %q, which is reserved", key)
	case !k.seen[key]:
		k.seen[key] = true
		k.found = append(k.found, key)
	case !shared:
		k.p.Invalid(at, "is the second branch called %q; give each its own id", key)
	}
}

func (k *switchKeys) cases() {
	seen := map[string]bool{}
	for i, item := range k.p.Items("cases") {
		value, key := item.Get("case"), item.Get("output_key")
		if !key.Exists() {
			key = item.Get("output_port")
		}
		if !key.Exists() {
			key = value // a case without a key is its own key
		}
		at := fmt.Sprintf("%s[%d]", k.p.At("cases"), i)
		if seen[value.Raw] {
			k.p.Warn(node.ProblemDuplicateCase, at+".case", "the case %s was tested before, so this one never matches; remove it", node.Excerpt(value))
		}
		seen[value.Raw] = true
		k.addKey(at, key.String(), true)
	}
}

// branches checks branches and returns the default key: that of the branch marked as default, if one is.
func (k *switchKeys) branches(fallback string) string {
	p, marked := k.p, ""
	for i, item := range p.Items("branches") {
		at := fmt.Sprintf("%s[%d]", p.At("branches"), i)
		id := item.Get("branch_id").Str
		k.addKey(at+".branch_id", id, false)
		if item.Get("is_default").Bool() {
			if marked != "" {
				p.Invalid(at+".is_default", "marks a second default beside %q; keep one", marked)
			} else if p.Value("default_output_key").Type == gjson.String && fallback != id {
				p.Invalid(at+".is_default", "marks %q as the default while default_output_key is %q; keep one", id, fallback)
			}
			marked = id
			continue
		}
		if !item.Get("conditions").Exists() && !item.Get("condition").Exists() && item.IsObject() {
			p.Invalid(at, `needs "conditions" or "condition", or "is_default"`)
		}
		for j, condition := range item.Get("conditions").Array() {
			checkOperator(p, fmt.Sprintf("%s.conditions[%d].operate", at, j), condition.Get("operate"))
		}
	}
	return cmp.Or(marked, fallback)
}

var operatorPrefix = regexp.MustCompile(`^(string|number|list|bool|dict)_`)

func checkOperator(p *node.Planning, at string, v gjson.Result) {
	if v.Type != gjson.String || node.Dynamic(v) {
		return
	}
	operators := []string{"equal", "not_equal", "greater", "less", "greater_equal", "less_equal", "contain", "not_contain", "starts_with",
		"ends_with", "in", "empty", "not_empty"}
	if name := operatorPrefix.ReplaceAllString(strings.ToLower(v.Str), ""); !slices.Contains(operators, name) {
		p.Invalid(at, "must be one of %s, optionally after string_, number_, list_, bool_ or dict_; it is %q%s", strings.Join(operators, ", "), v.Str, p.Suggest(name, operators))
	}
}
