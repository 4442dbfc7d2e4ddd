package builtin

import (
	"context"
	"encoding/json"
	"slices"

	"tandem/fault"
	"tandem/node"
)

type filterConfig struct {
	Mode           string            `json:"filter_mode" enum:"include|exclude|partition"`
	Type           string            `json:"filter_type" enum:"simple_condition|complex_expression|custom_function|regex_pattern|range_filter|exists_filter|type_filter|array_contains|fuzzy_match"`
	Conditions     []filterCondition `json:"conditions"`
	Logic          string            `json:"logical_operator" enum:"AND|OR|NOT"`
	CustomFunction string            `json:"custom_filter_function"`
	CaseSensitive  bool              `json:"case_sensitive"`
	Nulls          string            `json:"null_handling" enum:"include|exclude|treat_as_empty"`
	MaxResults     int64             `json:"max_results" range:"-1.."`
	SortResults    bool              `json:"sort_filtered_results"`
	SortField      string            `json:"sort_field"`
	SortOrder      string            `json:"sort_order" enum:"asc|desc"`
	Errors         string            `json:"error_handling" enum:"skip_invalid|fail_on_error|include_with_warning"`
	ItemsPath      string            `json:"items_path"`
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
	return node.Raw(
		info("FLOW.FILTER", "Filter", "过滤", "Keeps the items of a list that match.", "保留列表中匹配的元素。"),
		func(ctx context.Context, call *node.Call, cfg filterConfig, in json.RawMessage) (node.Outcome, error) {
			list, err := listInput(in, cfg.ItemsPath)
			if err != nil {
				return nil, err
			}
			if cfg.Type == "custom_function" {
				return cfg.custom(ctx, call, list.items)
			}
			f, err := newFilter(call, cfg.Type, cfg.Conditions, cfg.Logic, cfg.Nulls, cfg.CaseSensitive, list.items)
			if err != nil {
				return nil, err
			}
			return cfg.run(call, f, list.items)
		})
}

func (c *filterConfig) run(call *node.Call, f *filter, items []json.RawMessage) (node.Outcome, error) {
	stats := filterStats{Total: len(items), Mode: c.Mode, Type: c.Type}
	kept := make([]bool, len(items))
	problems := []filterError{}
	for i, item := range items {
		verdict, err := f.judge(item, i)
		switch {
		case err != nil && fault.CodeOf(err) == fault.InvalidConfig:
			return nil, err
		case err != nil && c.Errors == "fail_on_error":
			return nil, fault.Newf(fault.InvalidInput, "item %d cannot be judged: %s", i, fault.From(err).Message).With("index", i).WithCause(err)
		case err != nil:
			problems = append(problems, filterError{i, fault.From(err).Message})
			if kept[i] = c.Errors == "include_with_warning"; kept[i] && call.Log != nil {
				call.Log(node.Warn, "an item could not be judged and was kept", map[string]any{"index": i, "error": fault.From(err).Message})
			}
		case verdict == nullKept:
			kept[i] = true
		case verdict != nullDropped:
			kept[i] = (verdict == matches) == (c.Mode != "exclude")
		}
	}
	stats.Errors = len(problems)
	var chosen []int
	for i := range items {
		if kept[i] {
			chosen = append(chosen, i)
		}
	}
	if c.SortResults {
		name := c.SortField
		if name == "" {
			name = "."
		}
		key, err := newSortKey(name, c.SortOrder, "")
		if err != nil {
			return nil, err
		}
		part := make([]json.RawMessage, len(chosen))
		for i, at := range chosen {
			part[i] = items[at]
		}
		before := slices.Clone(chosen)
		for i, s := range sorted(part, []sortKey{key}, c.CaseSensitive) {
			chosen[i] = before[s.index]
		}
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
		"result": object([]member{
			{"filtered_data", array(passed)}, {"excluded_data", array(excluded)}, field("filter_stats", stats), field("validation_errors", problems),
		}),
		"statistics": encode(stats),
	}
	if len(passed) > 0 {
		done["passed"] = array(passed)
	}
	if c.Mode == "partition" && len(excluded) > 0 {
		done["filtered"] = array(excluded)
	}
	return done, nil
}
