package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tidwall/gjson"

	"tandem/builtin/early"
	"tandem/builtin/lists"
	"tandem/builtin/values"
	"tandem/expr"
	"tandem/fault"
	"tandem/node"
	"tandem/workflow"
)

type filterConfig struct {
	Mode           string            `json:"filter_mode" enum:"include|exclude|partition" doc:"Whether matching items are kept, left out, or told apart from the others." zh:"保留、排除匹配的元素，或将两者分开。"`
	Type           string            `json:"filter_type" enum:"simple_condition|complex_expression|custom_function|regex_pattern|range_filter|exists_filter|type_filter|array_contains|fuzzy_match" doc:"What a condition looks like." zh:"条件的形式。"`
	Conditions     []lists.Condition `json:"conditions" checked:"plan" doc:"The conditions; which of their fields count depends on filter_type." zh:"条件列表；其字段取决于 filter_type。"`
	Logic          string            `json:"logical_operator" enum:"AND|OR|NOT" doc:"How several conditions are joined." zh:"多个条件的组合方式。"`
	CustomFunction node.Source       `json:"custom_filter_function" with:"filter_type=custom_function" doc:"A function in Python or JavaScript that says whether an item is kept." zh:"过滤函数：判断是否保留元素的 Python 或 JavaScript 函数。"`
	CaseSensitive  bool              `json:"case_sensitive" doc:"Whether upper and lower case differ." zh:"是否区分大小写。"`
	Nulls          string            `json:"null_handling" enum:"include|exclude|treat_as_empty" doc:"What becomes of items whose field is null." zh:"空值的处理：字段为 null 的元素如何处理。"`
	MaxResults     int64             `json:"max_results" range:"-1.." doc:"The most items that are kept; -1 keeps all." zh:"最多保留几个元素；-1 表示全部。"`
	SortResults    bool              `json:"sort_filtered_results" doc:"Whether the kept items are sorted." zh:"是否对保留的元素排序。"`
	SortField      string            `json:"sort_field" with:"sort_filtered_results=true" doc:"The field that they are sorted by." zh:"排序所依据的字段。"`
	SortOrder      string            `json:"sort_order" enum:"asc|desc" with:"sort_filtered_results=true" doc:"The order in which they are sorted." zh:"排序顺序。"`
	Errors         string            `json:"error_handling" enum:"skip_invalid|fail_on_error|include_with_warning" doc:"What becomes of items that cannot be judged." zh:"无法判断的元素如何处理。"`
	ItemsPath      string            `json:"items_path" doc:"Where the list is in the input." zh:"列表在输入中的路径。"`
}

func (c *filterConfig) Defaults() {
	c.Mode, c.Type, c.Logic, c.CaseSensitive = "include", "simple_condition", "AND", true
	c.Nulls, c.MaxResults, c.SortOrder, c.Errors = "exclude", -1, "asc", "skip_invalid"
}

type filterStats struct {
	Total    int    `json:"total_count"`
	Kept     int    `json:"kept_count"`
	Excluded int    `json:"excluded_count"`
	Errors   int    `json:"error_count"`
	Limited  int    `json:"limited_count"` // matched, and left out by max_results
	Mode     string `json:"filter_mode"`
	Type     string `json:"filter_type"`
}

type filterError struct {
	Index int    `json:"index"`
	Error string `json:"error"`
}

// flowFilter keeps the items that match. Every item comes out once: among the kept or among the excluded.
func flowFilter() node.Kind {
	k := node.Raw(
		node.About{
			Name: "FLOW.FILTER", Title: node.Says("Filter", "过滤"),
			Description: node.Says("Keeps the items of a list that match.", "保留列表中匹配的元素。"),
			Effect:      workflow.Pure,
			Keys: []node.Key{
				{Name: "result", Meaning: node.Says("The items that are kept.", "保留的元素。"), Fields: []node.Value{
					node.Meaning("filtered_data", "The items that are kept.", "保留的元素。"),
					node.Meaning("excluded_data", "The others.", "其余元素。"),
					node.Meaning("filter_stats", "How many items there were, were kept and were left out.", "元素总数、保留数和排除数。"),
					node.Meaning("validation_errors", "Which items could not be judged, and why.", "无法判断的元素及原因。"),
				}},
				{Name: "statistics", Meaning: node.Says("How many items there were, were kept and were left out.", "元素总数、保留数和排除数。"), Fields: []node.Value{
					node.Meaning("total_count", "How many items there were.", "元素总数。"),
					node.Meaning("kept_count", "How many were kept.", "保留数。"),
					node.Meaning("excluded_count", "How many were left out.", "排除数。"),
					node.Meaning("error_count", "How many could not be judged.", "无法判断的数量。"),
					node.Meaning("limited_count", "How many matched and were left out because of max_results.", "因 max_results 而舍去的匹配数。"),
					node.Meaning("filter_mode", "The filter_mode.", "过滤模式。"),
					node.Meaning("filter_type", "The filter_type.", "过滤类型。"),
				}},
				{Name: "passed", Meaning: node.Says("The items that match.", "匹配的元素。")},
				{Name: "filtered", Meaning: node.Says("The items that do not.", "不匹配的元素。")},
			},
			Inputs: lists.Inputs(),
			Examples: []node.Example{
				{
					Shows:  node.Says("Keeps the orders above 100.", "保留金额大于 100 的订单。"),
					Config: `{"conditions": [{"field": "total", "operator": "greater_than", "value": 100}], "items_path": "orders"}`,
					Input:  `{"orders": [{"id": 1, "total": 80}, {"id": 2, "total": 120}]}`,
					Output: `{"result": {"filtered_data": [{"id": 2, "total": 120}], "excluded_data": [{"id": 1, "total": 80}], "filter_stats": {"total_count": 2, "kept_count": 1, "excluded_count": 1, "error_count": 0, "limited_count": 0, "filter_mode": "include", "filter_type": "simple_condition"}, "validation_errors": []}, "passed": [{"id": 2, "total": 120}], "statistics": {"total_count": 2, "kept_count": 1, "excluded_count": 1, "error_count": 0, "limited_count": 0, "filter_mode": "include", "filter_type": "simple_condition"}}`,
				},
			},
		},
		func(ctx context.Context, call *node.Call, cfg filterConfig, in json.RawMessage) (node.Outcome, error) {
			list, err := lists.Input(call, in, "items_path", cfg.ItemsPath)
			if err != nil {
				return nil, err
			}
			if cfg.Type == "custom_function" {
				return cfg.custom(ctx, call, list.Items)
			}
			f, err := lists.NewFilter(call, cfg.Type, cfg.Conditions, cfg.Logic, cfg.Nulls, cfg.CaseSensitive, list.Items)
			if err != nil {
				return nil, err
			}
			return cfg.run(call, f, list.Items)
		}, planFilter)
	k.Needs = lists.Needs(func(c filterConfig) ([]string, bool) { return []string{c.ItemsPath}, true })
	return k
}

// filterShapes are the fields that a condition has, by filter_type.
func filterShapes() map[string]node.Only {
	return map[string]node.Only{
		"simple_condition":   {Required: []string{"field", "operator"}, Optional: []string{"value"}},
		"complex_expression": {Required: []string{"expression"}},
		"regex_pattern":      {Required: []string{"field", "pattern"}},
		"range_filter":       {Required: []string{"field"}, Optional: []string{"min_value", "max_value", "inclusive"}, OneOf: []string{"min_value", "max_value"}},
		"exists_filter":      {Required: []string{"field"}, Optional: []string{"exists"}},
		"type_filter":        {Required: []string{"field", "type"}},
		"array_contains":     {Required: []string{"field", "value"}, Optional: []string{"mode"}},
		"fuzzy_match":        {Required: []string{"field", "value"}, Optional: []string{"threshold"}},
	}
}

func planFilter(p *node.Planning, c *filterConfig) {
	early.Paths(p, "items_path")
	early.Keys(p, "sort_field")
	if c.Type == "custom_function" {
		p.Require("custom_filter_function", "when %s is %q", "filter_type", "custom_function")
		return
	}
	p.Require("conditions", "unless %s is %q", "filter_type", "custom_function")
	only, ok := filterShapes()[c.Type]
	if !ok || !p.Has("conditions") || p.Dynamic("conditions") {
		return
	}
	if len(p.Items("conditions")) == 0 {
		p.Invalid(p.At("conditions"), "must not be empty")
	}
	node.CheckItems[lists.Condition](p, "conditions", only)
	if c.Type != "regex_pattern" {
		return
	}
	for i, item := range p.Items("conditions") {
		if p.Full() {
			break // judging a pattern takes time
		}
		pattern := item.Get("pattern")
		if pattern.Type != gjson.String || node.Dynamic(pattern) {
			continue
		}
		if err := expr.CheckPattern(pattern.Str); err != nil {
			p.Invalid(fmt.Sprintf("%s[%d].pattern", p.At("conditions"), i), "cannot be used: %s", fault.From(err).Message)
		}
	}
}

func (c *filterConfig) run(call *node.Call, f *lists.Filter, items []json.RawMessage) (node.Outcome, error) {
	stats := filterStats{Total: len(items), Mode: c.Mode, Type: c.Type}
	kept, problems, err := c.judgeAll(call, f, items)
	if err != nil {
		return nil, err
	}
	stats.Errors = len(problems)
	chosen, err := c.inOrder(call, items, kept)
	if err != nil {
		return nil, err
	}
	if c.MaxResults >= 0 && int64(len(chosen)) > c.MaxResults {
		for _, at := range chosen[c.MaxResults:] {
			kept[at] = false
			stats.Limited++
		}
		chosen = chosen[:c.MaxResults]
	}
	var passed, excluded []json.RawMessage
	for _, at := range chosen {
		passed = append(passed, items[at])
	}
	for i, item := range items {
		if !kept[i] {
			excluded = append(excluded, item)
		}
	}
	stats.Kept, stats.Excluded = len(passed), len(excluded)
	done := node.Done{
		"result": values.Object([]values.Member{
			{Key: "filtered_data", Value: values.Array(passed)}, {Key: "excluded_data", Value: values.Array(excluded)}, values.Field("filter_stats", stats), values.Field("validation_errors", problems),
		}),
		"statistics": values.Encode(stats),
	}
	if len(passed) > 0 {
		done["passed"] = values.Array(passed)
	}
	if c.Mode == "partition" && len(excluded) > 0 {
		done["filtered"] = values.Array(excluded)
	}
	return done, nil
}

// judgeAll says of each item whether it is kept, and which could not be judged.
func (c *filterConfig) judgeAll(call *node.Call, f *lists.Filter,
	items []json.RawMessage) (kept []bool, problems []filterError, err error) {
	kept, problems = make([]bool, len(items)), []filterError{}
	for i, item := range items {
		verdict, err := f.Judge(item, i)
		switch {
		case err != nil && fault.CodeOf(err) == fault.InvalidConfig:
			return nil, nil, err
		case err != nil && c.Errors == "fail_on_error":
			return nil, nil, fault.Newf(fault.InvalidInput, "item %d cannot be judged: %s", i, fault.From(err).Message).With("index", i).WithCause(err)
		case err != nil:
			problems = append(problems, filterError{i, fault.From(err).Message})
			if kept[i] = c.Errors == "include_with_warning"; kept[i] && call.Log != nil {
				call.Log(node.Warn, "an item could not be judged and was kept", map[string]any{"index": i, "error": fault.From(err).Message})
			}
		case verdict == lists.NullKept:
			kept[i] = true
		case verdict != lists.NullDropped:
			kept[i] = (verdict == lists.Matches) == (c.Mode != "exclude")
		}
	}
	return kept, problems, nil
}

// inOrder are the positions of the items that are kept, sorted if the node says so.
func (c *filterConfig) inOrder(call *node.Call, items []json.RawMessage, kept []bool) ([]int, error) {
	var chosen []int
	for i := range items {
		if kept[i] {
			chosen = append(chosen, i)
		}
	}
	if !c.SortResults {
		return chosen, nil
	}
	name := c.SortField
	if name == "" {
		name = "."
	}
	key, err := lists.NewSortKey(call, name, c.SortOrder, "")
	if err != nil {
		return nil, err
	}
	part := make([]json.RawMessage, len(chosen))
	for i, at := range chosen {
		part[i] = items[at]
	}
	before := slices.Clone(chosen)
	for i, s := range lists.Sorted(part, []lists.SortKey{key}, c.CaseSensitive) {
		chosen[i] = before[s.Index]
	}
	return chosen, nil
}

// custom keeps the items for which a function says so. It is given the item, and is asked once for each.
func (c *filterConfig) custom(ctx context.Context, call *node.Call, items []json.RawMessage) (node.Outcome, error) {
	language, err := node.FunctionLanguage(string(c.CustomFunction), "custom_filter_function")
	if err != nil {
		return nil, err
	}
	f := &lists.Filter{Custom: func(item json.RawMessage) (bool, error) {
		result, err := call.Code(ctx, node.Code{Language: language, Source: string(c.CustomFunction), Input: item})
		if err != nil {
			return false, err
		}
		return expr.Truth(values.Decode(result.Value)), nil
	}}
	return c.run(call, f, items)
}
