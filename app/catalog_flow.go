package app

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/expr"
	"tandem/fault"
	"tandem/workflow"
)

const (
	loopCommon = `break_on_error=true; break_condition:expr; collect_results=true`
	// filterConditions are checked by filterRules, since their shape depends on filter_type.
	filterTypes = "simple_condition|complex_expression|custom_function|regex_pattern|range_filter|exists_filter|type_filter|array_contains|fuzzy_match"
)

// flowKinds decide where the flow goes next, how often and when. What decides the shape of the graph is fixed.
func flowKinds() []kind {
	loop := &workflow.ScopeKeys{Entry: "iteration", Exits: []string{"completed"}}
	loopKeys := []string{"iteration", "completed"}
	completed := map[string]string{workflow.DefaultKey: "completed"}
	return []kind{
		{subtype: "IF", effect: workflow.Pure, keys: []string{"true", "false"},
			config: `condition_expression*:expr; condition -> condition_expression`},
		{subtype: "SWITCH", effectOf: switchEffect, rules: switchRules,
			config: `switch_value:expr; default_output_key!=default; default_output_port -> default_output_key;
				cases!:list(case:any; output_key!; output_port -> output_key);
				branches!:list(branch_id!*; logic{and|or}=and; conditions:list(left:any; operate!*; right:any); condition:expr; is_default!:bool; name; description);
				propose:tmpl; choices!:list(branch!*; description:tmpl); llm_profile; profile_id -> llm_profile`},
		{subtype: "LOOP", effect: workflow.Pure, scope: loop, keys: loopKeys, aliases: completed, rules: loopRules,
			config: loopCommon + `; loop_type*{for_range|for_each|while}=for_range; start_value=0; end_value=10; step=1; array_path;
				items_path -> array_path; loop_condition:expr; iteration_variable=index; max_iterations=100[1..10000000]; on_limit{fail|complete}`},
		{subtype: "FOR_EACH", effect: workflow.Pure, scope: loop, keys: loopKeys, aliases: completed,
			config: loopCommon + `; items_path; array_path -> items_path; iteration_variable=item; max_concurrency=1[1..100]; batch_size=1[1..];
				max_iterations=10000[1..10000000]`},
		{subtype: "WHILE", effect: workflow.Pure, scope: loop, keys: loopKeys, aliases: completed,
			config: loopCommon + `; condition_expression*:expr; loop_condition -> condition_expression; check{before|after}=before;
				delay_seconds:num=0[0..]; max_iterations=100[1..10000000]; on_limit{fail|complete}=complete; iteration_variable=index`},
		{subtype: "MERGE", effect: workflow.Pure, rules: mergeRules,
			config: `merge_strategy!*{concatenate|union|by_key|first|zip|~first_complete}=concatenate; merge_key; items_path;
				handle_duplicates{keep_all|keep_first|keep_last|remove_duplicates}; join{outer|inner|left}=outer;
				zip_length{longest|shortest}=longest; timeout_seconds!:num=0[0..2592000]; cancel_losers!=false`},
		{subtype: "SPLIT", effect: workflow.Pure, scope: &workflow.ScopeKeys{Entry: "branch", Exits: []string{workflow.DefaultKey}},
			keys: []string{"branch", workflow.DefaultKey}, rules: splitRules,
			config: `split_mode!{items|predicate|by_key}=items; items_path; predicate_paths!:obj; match{first|all}=first; by_key!:list;
				batch_size=1[1..]; max_concurrency=10[1..100]; break_on_error=true`},
		{subtype: "FILTER", effect: workflow.Pure, keys: []string{"result", "statistics", "passed", "filtered"}, rules: filterRules,
			config: `filter_mode*{include|exclude|partition}=include; filter_type*{` + filterTypes + `}=simple_condition; conditions:list;
				logical_operator{AND|OR|NOT}=AND; custom_filter_function:code; case_sensitive=true;
				null_handling{include|exclude|treat_as_empty}=exclude; max_results=-1[-1..]; sort_filtered_results=false; sort_field;
				sort_order{asc|desc}=asc; error_handling{skip_invalid|fail_on_error|include_with_warning}=skip_invalid; items_path`},
		{subtype: "SORT", effect: workflow.Pure, keys: []string{"result", "sorted", "metadata"},
			config: `sort_field; sort_fields:list(field*; order{asc|desc}=asc; nulls{last|first}=last); order{asc|desc}=asc;
				nulls{last|first}=last; case_sensitive=true; items_path; need sort_field|sort_fields`},
		{subtype: "WAIT", effectOf: waitEffect, keys: []string{"completed", "timeout", "cancelled"}, rules: waitRules,
			aliases: map[string]string{workflow.DefaultKey: "completed", "canceled": "cancelled"},
			config: `wait_type*{timer|webhook|signal|event|condition|api_response|file|database_change|~approval|~resource|~queue_message}=condition; for_seconds:num[0..]; until:tmpl;
				timezone; signal_name:tmpl; webhook_config:obj(method=POST; expected_payload:any; authentication_required=true);
				wait_condition:expr; api_config:obj(url*:tmpl; method; headers:obj; expected_response:any);
				file_config:obj(file_path*:tmpl; expected_content:any); database_config:obj(query*:sql);
				check_interval_seconds:num=5[0.1..3600]; exponential_backoff=false; backoff_multiplier:num=1.5[1.1..3]; max_attempts=-1[-1..];
				timeout_seconds:num=300[0..31536000]; cred http_auth/sql/webhook_secret`},
		{subtype: "DELAY", effect: workflow.Pure, keys: []string{workflow.DefaultKey, "cancelled"},
			aliases: map[string]string{"delayed": workflow.DefaultKey, "canceled": "cancelled"},
			config:  `duration_seconds:num=5[0..31536000]`},
		{subtype: "TIMEOUT", effect: workflow.Pure, keys: []string{"body", workflow.DefaultKey, "timeout"},
			scope:  &workflow.ScopeKeys{Entry: "body", Exits: []string{workflow.DefaultKey, "timeout"}, Once: true},
			config: `timeout_seconds*:num=300[0.1..31536000]; deadline:tmpl; condition_expression:expr; condition -> condition_expression`},
		{subtype: "SUB_WORKFLOW", effect: workflow.Idempotent, rules: subWorkflowRules,
			config: `workflow_id*; revision:str/int=deployed; wait=true; output_nodes:list`},
	}
}

// reservedKey says that an output key has a meaning of its own, so a configuration cannot give it another.
func reservedKey(key string, also ...string) bool {
	return slices.Contains(append(also, workflow.DefaultKey, workflow.ErrorKey, "main"), key)
}

func switchEffect(c *config) workflow.Effect {
	if c.has("choices") {
		return workflow.Idempotent // a model chooses
	}
	return workflow.Pure
}

// switchRules finds the keys of the three forms a switch can have and checks that it has one of them.
func switchRules(c *config) {
	forms := slices.DeleteFunc([]string{"cases", "branches", "choices"}, func(f string) bool { return !c.has(f) })
	switch {
	case c.has("template_id"):
		c.plan.Keys = nil
		return
	case len(forms) == 0:
		c.errorf(workflow.ProblemConfig, "configurations", `a switch needs "switch_value" with "cases", or "branches", or "propose" with "choices"`)
		return
	case len(forms) > 1:
		c.invalid(c.at(forms[1]), "and %q are two forms of a switch; keep one of them", forms[0])
	}
	fallback := c.text("default_output_key")
	keys := switchKeys{c: c, seen: map[string]bool{}}
	switch forms[0] {
	case "cases":
		c.requireFor("switch_value", "beside cases")
		seen := map[string]bool{}
		for i, item := range c.items("cases") {
			value, key := item.Get("case"), item.Get("output_key")
			if !key.Exists() {
				key = item.Get("output_port")
			}
			if !key.Exists() {
				key = value // a case without a key is its own key
			}
			at := fmt.Sprintf("%s[%d]", c.at("cases"), i)
			if seen[value.Raw] {
				c.warnf(problemDuplicateCase, at+".case", "the case %s was tested before, so this one never matches; remove it", excerpt(value))
			}
			seen[value.Raw] = true
			keys.add(at, key.String(), true)
		}
	case "branches":
		fallback = branchKeys(c, &keys, fallback)
	case "choices":
		c.requireFor("propose", "beside choices")
		c.requireFor("llm_profile", "beside choices")
		for i, item := range c.items("choices") {
			keys.add(fmt.Sprintf("%s[%d].branch", c.at("choices"), i), item.Get("branch").Str, false)
		}
	}
	if len(keys.found) == 0 {
		c.invalid(c.at(forms[0]), "must not be empty")
	}
	if fallback != "" && !slices.Contains(keys.found, fallback) {
		if reservedKey(fallback) {
			c.invalid(c.at("default_output_key"), "cannot be %q, which is a reserved key", fallback)
		}
		keys.found = append(keys.found, fallback)
	}
	c.plan.Keys = keys.found
}

// switchKeys gathers the output keys of a switch.
type switchKeys struct {
	c     *config
	found []string
	seen  map[string]bool
}

// add notes a key; several cases may share one.
func (k *switchKeys) add(at, key string, shared bool) {
	switch {
	case key == "":
		return // reported as missing
	case reservedKey(key):
		k.c.invalid(at, "cannot have the key %q, which is reserved", key)
	case !k.seen[key]:
		k.seen[key] = true
		k.found = append(k.found, key)
	case !shared:
		k.c.invalid(at, "is the second branch called %q; give each its own id", key)
	}
}

// branchKeys checks branches and returns the default key: that of the branch marked as default, if one is.
func branchKeys(c *config, keys *switchKeys, fallback string) string {
	marked := ""
	for i, item := range c.items("branches") {
		at := fmt.Sprintf("%s[%d]", c.at("branches"), i)
		id := item.Get("branch_id").Str
		keys.add(at+".branch_id", id, false)
		if item.Get("is_default").Bool() {
			if marked != "" {
				c.invalid(at+".is_default", "marks a second default beside %q; keep one", marked)
			} else if c.has("default_output_key") && fallback != id {
				c.invalid(at+".is_default", "marks %q as the default while default_output_key is %q; keep one", id, fallback)
			}
			marked = id
			continue
		}
		if !item.Get("conditions").Exists() && !item.Get("condition").Exists() && item.IsObject() {
			c.invalid(at, `needs "conditions" or "condition", or "is_default"`)
		}
		for j, condition := range item.Get("conditions").Array() {
			checkOperator(c, fmt.Sprintf("%s.conditions[%d].operate", at, j), condition.Get("operate"))
		}
	}
	if marked != "" {
		return marked
	}
	return fallback
}

var operatorPrefix = regexp.MustCompile(`^(string|number|list|bool|dict)_`)

func checkOperator(c *config, at string, v gjson.Result) {
	if v.Type != gjson.String || dynamic(v) {
		return
	}
	operators := []string{"equal", "not_equal", "greater", "less", "greater_equal", "less_equal", "contain", "not_contain", "starts_with", "ends_with", "in", "empty", "not_empty"}
	if name := operatorPrefix.ReplaceAllString(strings.ToLower(v.Str), ""); !slices.Contains(operators, name) {
		c.invalid(at, "must be one of %s, optionally after string_, number_, list_, bool_ or dict_; it is %q%s", strings.Join(operators, ", "), v.Str, c.suggest(name, operators))
	}
}

func loopRules(c *config) {
	switch c.text("loop_type") {
	case "for_range":
		if step, ok := c.number("step"); ok && step == 0 {
			c.invalid(c.at("step"), "must not be 0, or the loop would never end")
		}
	case "while":
		c.requireFor("loop_condition", `when loop_type is "while"`)
	}
}

func mergeRules(c *config) {
	strategy := c.text("merge_strategy")
	c.plan.Join = workflow.Join{
		First:        strategy == "first" || strategy == "first_complete",
		TimeoutMS:    c.milliseconds("timeout_seconds"),
		CancelLosers: c.flag("cancel_losers"),
	}
	if c.plan.Join.First {
		c.plan.Join.TimeoutMS = 0 // it fires with the first arrival, so there is nothing to wait for after it
	}
	if strategy == "by_key" {
		c.requireFor("merge_key", `when merge_strategy is "by_key"`)
	}
}

var plainPath = regexp.MustCompile(`^[\p{L}_$][\p{L}\d_$-]*(\.[\p{L}\d_$-]+|\[\d+\]|\["[^"]*"\])*$`)

// splitRules finds the keys of a split. Only the split into items runs a body.
func splitRules(c *config) {
	mode := c.text("split_mode")
	c.plan.Unscoped = mode != "items"
	var keys []string
	seen := map[string]bool{}
	add := func(at, key string) {
		switch {
		case reservedKey(key, "unmatched", "branch"):
			c.invalid(at, "cannot be the key %q, which is reserved", key)
		case seen[key]:
			c.invalid(at, "is the second key called %q; keep one", key)
		default:
			seen[key] = true
			keys = append(keys, key)
		}
	}
	switch mode {
	case "predicate":
		c.requireFor("predicate_paths", `when split_mode is "predicate"`)
		c.values["predicate_paths"].ForEach(func(key, value gjson.Result) bool {
			at := join(c.at("predicate_paths"), key.Str)
			add(at, key.Str)
			if value.Type != gjson.String {
				c.invalid(at, "must be a path or an expression, not %s", excerpt(value))
			} else if !plainPath.MatchString(value.Str) {
				c.plan.Expressions = append(c.plan.Expressions, workflow.Expression{Path: at, Source: value.Str})
			}
			return true
		})
		c.plan.Keys = append(keys, "unmatched", workflow.DefaultKey)
	case "by_key":
		c.requireFor("by_key", `when split_mode is "by_key"`)
		for i, item := range c.items("by_key") {
			at := fmt.Sprintf("%s[%d]", c.at("by_key"), i)
			if item.Type != gjson.String || dynamic(item) || item.Str == "" {
				c.invalid(at, "must be the name of a field, not %s", excerpt(item))
				continue
			}
			add(at, item.Str)
		}
		c.plan.Keys = append(keys, workflow.DefaultKey)
	}
}

// filterShapes are the shapes of a condition, by filter_type.
func filterShapes() map[string]string {
	return map[string]string{
		"simple_condition": `field*; value:any;
			operator*{equals|not_equals|greater_than|greater_or_equal|less_than|less_or_equal|in|not_in|contains|not_contains|starts_with|ends_with|is_null|is_not_null}`,
		"complex_expression": `expression*:expr`,
		"regex_pattern":      `field*; pattern*`,
		"range_filter":       `field*; min_value, max_value:any; inclusive=true; need min_value|max_value`,
		"exists_filter":      `field*; exists=true`,
		"type_filter":        `field*; type*`,
		"array_contains":     `field*; value*:any; mode{any|all}=any`,
		"fuzzy_match":        `field*; value*:any; threshold:num=0.8[0..1]`,
	}
}

func filterRules(c *config) {
	typ := c.text("filter_type")
	if typ == "custom_function" {
		c.requireFor("custom_filter_function", `when filter_type is "custom_function"`)
		return
	}
	c.requireFor("conditions", "unless filter_type is \"custom_function\"")
	notation, ok := filterShapes()[typ]
	if !ok || !c.has("conditions") || c.isDynamic("conditions") {
		return
	}
	if len(c.items("conditions")) == 0 {
		c.invalid(c.at("conditions"), "must not be empty")
	}
	c.checkInner(c.at("conditions"), &field{types: []string{"list"}, inner: parseShape(notation)}, c.values["conditions"])
	if typ == "regex_pattern" {
		for i, item := range c.items("conditions") {
			p := item.Get("pattern")
			at := fmt.Sprintf("%s[%d].pattern", c.at("conditions"), i)
			if len(c.problems) >= maxProblems {
				break // judging a pattern is dear, and nobody reads more
			}
			if p.Type != gjson.String || dynamic(p) {
				continue
			}
			if err := expr.CheckPattern(p.Str); err != nil {
				c.invalid(at, "cannot be used: %s", fault.From(err).Message)
			}
		}
	}
}

func waitEffect(c *config) workflow.Effect {
	switch c.text("wait_type") {
	case "timer", "webhook", "signal", "event", "condition":
		return workflow.Pure
	}
	return workflow.Idempotent // it asks a source outside, again and again
}

// changing matches what can be different at the next check of a waiting condition.
var changing = regexp.MustCompile(`\b(poll|runtime|steps|now|context|variables)\b|\{\{|\$\{`)

func waitRules(c *config) {
	typ := c.text("wait_type")
	because := `when wait_type is "` + typ + `"`
	switch typ {
	case "timer":
		if !c.has("until") {
			c.requireFor("for_seconds", because+" and until is not set")
		}
	case "signal", "event":
		c.requireFor("signal_name", because)
	case "condition":
		c.requireFor("wait_condition", because)
		if v := c.values["wait_condition"]; v.Type == gjson.String && !changing.MatchString(v.Str) {
			c.warnf(problemNeverChanges, c.at("wait_condition"), "the condition reads nothing that changes while it waits; use steps, runtime, poll or now()")
		}
	case "webhook", "api_response", "file", "database_change":
		switch typ {
		case "api_response":
			c.requireFor("api_config", because)
		case "file":
			c.requireFor("file_config", because)
		case "database_change":
			c.requireFor("database_config", because)
		}
		c.errorf(problemUnsupported, c.at("wait_type"), "waiting for %q cannot be done by this version; use wait_type \"signal\" and let the source send one, or \"condition\"", typ)
	case "approval", "resource", "queue_message":
		c.errorf(problemUnsupported, c.at("wait_type"), "waiting for %q is not supported; use a HUMAN_IN_THE_LOOP node for approvals, wait_type \"signal\" for the rest", typ)
	}
}

func subWorkflowRules(c *config) {
	if c.flag("wait") && !c.isDynamic("workflow_id") && !c.isDynamic("revision") {
		c.plan.Child = &workflow.ChildWorkflow{Workflow: c.text("workflow_id"), Revision: c.text("revision")}
	}
	v, set := c.values["revision"]
	if !set || c.isDynamic("revision") {
		return
	}
	if v.Type == gjson.Number && v.Num < 1 || v.Type == gjson.String && c.text("revision") != "deployed" && c.text("revision") != "latest" {
		c.invalid(c.at("revision"), `must be "deployed", "latest" or the number of a revision, not %s`, excerpt(v))
	}
}
