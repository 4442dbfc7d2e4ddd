package flow

import (
	"context"
	"encoding/json"

	"tandem/builtin/early"
	"tandem/builtin/lists"
	"tandem/builtin/values"
	"tandem/fault"
	"tandem/node"
	"tandem/workflow"
)

type mergeConfig struct {
	Strategy     string  `json:"merge_strategy" enum:"concatenate|union|by_key|first|zip" fixed:"true" legacy:"first_complete" doc:"How the lists of the branches become one." zh:"各分支的列表如何合并。"`
	Key          string  `json:"merge_key" doc:"The field that belongs together, for by_key." zh:"对应字段：by_key 时用来对应的字段。"`
	ItemsPath    string  `json:"items_path" doc:"Where each branch has its list." zh:"列表在各分支数据中的路径。"`
	Duplicates   string  `json:"handle_duplicates" enum:"keep_all|keep_first|keep_last|remove_duplicates" doc:"What becomes of items that come more than once." zh:"重复元素的处理方式。"`
	Join         string  `json:"join" enum:"outer|inner|left" with:"merge_strategy=by_key" doc:"Which keys are kept, for by_key: those of any branch, of all, or of the first." zh:"by_key 时保留哪些键：任一分支、所有分支或第一个分支。"`
	ZipLength    string  `json:"zip_length" enum:"longest|shortest" with:"merge_strategy=zip" doc:"Whether zip goes on to the end of the longest list or of the shortest." zh:"长度标准：zip 以最长或最短的列表为准。"`
	Timeout      float64 `json:"timeout_seconds" range:"0..2592000" fixed:"true" with:"merge_strategy=concatenate|union|by_key|zip" doc:"How long to wait for the other branches after the first, in seconds; 0 waits for all." zh:"等待时间：首个分支到达后等待其余分支的时间（秒）；0 表示等待全部。"`
	CancelLosers bool    `json:"cancel_losers" fixed:"true" with:"merge_strategy=first|first_complete" doc:"Whether branches that came too late are cancelled." zh:"是否取消未能及时到达的分支。"`
}

func (c *mergeConfig) Defaults() { c.Strategy, c.Join, c.ZipLength = "concatenate", "outer", "longest" }

// flowMerge joins branches. When it fires, and what becomes of those that come later, is decided before it runs; here
// is only what is made of the contributions.
func flowMerge() node.Kind {
	k := node.Raw(
		node.About{
			Name: "FLOW.MERGE", Title: node.Says("Merge", "合并"),
			Traits:      workflow.Traits{BySource: true},
			Description: node.Says("Joins branches into one list.", "将多个分支合并为一个列表。"),
			Effect:      workflow.Pure,
			Keys: []node.Key{{Name: "result", Meaning: node.Says("merged_data, with how it was merged and from where.", "合并后的数据 merged_data 及其来源。"), Fields: []node.Value{
				node.Meaning("merged_data", "The list that came of it.", "合并得到的列表。"),
				node.Meaning("merge_stats", "How was merged, and how many branches and items there were.", "合并方式、分支数和元素数。"),
				node.Meaning("source_mapping", "Which items came from which branch.", "各元素来自哪个分支。"),
				node.Meaning("timed_out", "Whether a branch came too late to be part of it.", "是否有分支未按时到达。"),
			}}},
			Inputs: []node.Value{node.Meaning("*", "Of each branch a list: at items_path, under a usual name such as data or items, or the only one there is; else the payload is one item.", "各分支的列表：位于 items_path、常用名称（如 data、items）之下，或唯一的列表；否则整个内容作为一个元素。")},
			Examples: []node.Example{
				{
					Shows:  node.Says("Joins what two branches know of the same orders.", "合并两个分支中同一订单的信息。"),
					Config: `{"merge_strategy": "by_key", "merge_key": "id", "items_path": "orders"}`,
					Input:  `{"orders": [{"id": 1, "total": 120}]}`,
					Also:   []string{`{"orders": [{"id": 1, "customer": "Ann"}]}`},
					Output: `{"result": {"merged_data": [{"id": 1, "total": 120, "customer": "Ann"}], "merge_stats": {"strategy": "by_key", "source_count": 2, "input_count": 2, "merged_count": 1}, "source_mapping": [{"source": "first", "range": [0, 1]}, {"source": "second", "range": [1, 1]}], "timed_out": false}}`,
				},
			},
		},
		func(_ context.Context, call *node.Call, cfg mergeConfig, _ json.RawMessage) (node.Outcome, error) {
			sources, err := cfg.sources(call)
			if err != nil {
				return nil, err
			}
			merged, err := cfg.merge(sources)
			if err != nil {
				return nil, err
			}
			total := 0
			for _, s := range sources {
				total += len(s.items)
			}
			stats := mergeStats{cfg.Strategy, len(sources), total, len(merged)}
			return node.Done{"result": values.Object([]values.Member{
				{Key: "merged_data", Value: values.Array(mergedValues(merged))}, values.Field("merge_stats", stats),
				values.Field("source_mapping", cfg.mapping(sources, merged)), values.Field("timed_out", call.TimedOut),
			})}, nil
		}, planMerge)
	k.Needs = lists.Needs(func(c mergeConfig) ([]string, bool) { return []string{c.ItemsPath}, true })
	return k
}

// planMerge says how the node waits for its branches.
func planMerge(p *node.Planning, c *mergeConfig) {
	early.Paths(p, "merge_key", "items_path")
	p.Join = workflow.Join{
		First:        c.Strategy == "first" || c.Strategy == "first_complete",
		TimeoutMS:    p.Milliseconds("timeout_seconds"),
		CancelLosers: c.CancelLosers,
	}
	if p.Join.First {
		p.Join.TimeoutMS = 0 // it fires with the first arrival, so there is nothing to wait for after it
	}
	if c.Strategy == "by_key" {
		p.Require("merge_key", "when %s is %q", "merge_strategy", "by_key")
	}
}

// mergeRange says which items of merged_data came from a source: from the first position up to, and without, the second.
type mergeRange struct {
	Source string `json:"source"`
	Range  [2]int `json:"range"`
}

// mergedItem is an item of the result, and the source that it came from first.
type mergedItem struct {
	value  json.RawMessage
	source int
}

func mergedValues(items []mergedItem) []json.RawMessage {
	list := make([]json.RawMessage, len(items))
	for i, item := range items {
		list[i] = item.value
	}
	return list
}

// mapping tells where the items of the result came from: every source at least once, in the order of the items. An item of a zip
// is of every source that has as many.
func (c *mergeConfig) mapping(sources []mergeSource, merged []mergedItem) []mergeRange {
	list := []mergeRange{}
	if c.Strategy == "zip" {
		for _, s := range sources {
			list = append(list, mergeRange{s.node, [2]int{0, min(len(s.items), len(merged))}})
		}
		return list
	}
	at := 0
	next := func(source int) {
		end := at
		for end < len(merged) && merged[end].source == source {
			end++
		}
		list = append(list, mergeRange{sources[source].node, [2]int{at, end}})
		at = end
	}
	for i := range sources {
		next(i)
	}
	for at < len(merged) { // what has no key comes last
		next(merged[at].source)
	}
	return list
}

type mergeStats struct {
	Strategy string `json:"strategy"`
	Sources  int    `json:"source_count"`
	Items    int    `json:"input_count"`
	Merged   int    `json:"merged_count"`
}

// mergeSource is what one connection brings.
type mergeSource struct {
	node  string
	items []json.RawMessage
}

func (c *mergeConfig) sources(call *node.Call) ([]mergeSource, error) {
	if c.Strategy == "first_complete" {
		c.Strategy = "first"
	}
	contributions := call.Contributions
	if c.Strategy == "first" && len(contributions) > 1 {
		contributions = contributions[:1]
	}
	var at values.Path
	if c.ItemsPath != "" {
		var err error
		if at, err = values.ParsePath(c.ItemsPath); err != nil {
			return nil, err
		}
	}
	sources := []mergeSource{}
	for _, each := range contributions {
		value := each.Payload
		if at != nil {
			value, _ = at.At(value)
		}
		sources = append(sources, mergeSource{each.Node, values.ListOf(value).Items})
	}
	return sources, nil
}

func (c *mergeConfig) merge(sources []mergeSource) ([]mergedItem, error) {
	switch c.Strategy {
	case "by_key":
		return c.byKey(sources)
	case "zip":
		return c.zip(sources), nil
	}
	var all []mergedItem
	for i, s := range sources {
		for _, item := range s.items {
			all = append(all, mergedItem{item, i})
		}
	}
	duplicates := c.Duplicates
	if duplicates == "" && c.Strategy == "union" {
		duplicates = "remove_duplicates"
	}
	if duplicates == "" || duplicates == "keep_all" || c.Strategy == "first" {
		return all, nil
	}
	return c.unique(all, duplicates == "keep_first")
}

// unique leaves one of equal items, at the place of the first: the first itself, or else the last.
func (c *mergeConfig) unique(all []mergedItem, keepFirst bool) ([]mergedItem, error) {
	key, err := c.keyPath()
	if err != nil {
		return nil, err
	}
	var merged []mergedItem
	places := map[string]int{}
	for _, item := range all {
		value, ok := item.value, true
		if key != nil {
			if value, ok = key.At(item.value); ok && values.IsNull(value) {
				ok = false
			}
		}
		if !ok { // without the key nothing is a duplicate
			merged = append(merged, item)
			continue
		}
		same := values.Canonical(values.Decode(value))
		place, again := places[same]
		switch {
		case !again:
			places[same] = len(merged)
			merged = append(merged, item)
		case !keepFirst:
			merged[place].value = item.value
		}
	}
	return merged, nil
}

func (c *mergeConfig) keyPath() (values.Path, error) {
	if c.Key == "" {
		return nil, nil
	}
	return values.ParsePath(c.Key)
}

// byKey merges the objects of one key field by field, later ones winning. What has no key is merged with nothing: it
// comes last, and belongs to no inner join.
func (c *mergeConfig) byKey(sources []mergeSource) ([]mergedItem, error) {
	key, err := c.keyPath()
	if err != nil {
		return nil, err
	}
	if key == nil {
		return nil, fault.Newf(fault.InvalidConfig, "%q is required when merge_strategy is %q", "merge_key", "by_key")
	}
	type row struct {
		fields []values.Member
		in     map[int]bool
		source int
	}
	var rows []*row
	var keyless []mergedItem
	byKey := map[string]*row{}
	for i, s := range sources {
		for j, item := range s.items {
			if !values.IsObject(item) {
				return nil, fault.Newf(fault.InvalidInput, "item %d of %q is not an object, so it cannot be merged by key", j, s.node)
			}
			value, ok := key.At(item)
			if !ok || values.IsNull(value) {
				if c.Join == "outer" || c.Join == "left" && i == 0 {
					keyless = append(keyless, mergedItem{item, i})
				}
				continue
			}
			same := values.Canonical(values.Decode(value))
			r := byKey[same]
			if r == nil {
				r = &row{in: map[int]bool{}, source: i}
				byKey[same] = r
				rows = append(rows, r)
			}
			r.fields = values.Overlay(r.fields, values.Members(item)...)
			r.in[i] = true
		}
	}
	var merged []mergedItem
	for _, r := range rows {
		if c.Join == "inner" && len(r.in) < len(sources) || c.Join == "left" && !r.in[0] {
			continue
		}
		merged = append(merged, mergedItem{values.Object(r.fields), r.source})
	}
	return append(merged, keyless...), nil
}

// zip puts the items of one position together: objects are merged, anything else becomes a list.
func (c *mergeConfig) zip(sources []mergeSource) []mergedItem {
	length := 0
	for i, s := range sources {
		if n := len(s.items); i == 0 || (n > length) == (c.ZipLength == "longest") {
			length = n
		}
	}
	var merged []mergedItem
	for i := range length {
		tuple, objects := make([]json.RawMessage, len(sources)), true
		for j, s := range sources {
			tuple[j] = json.RawMessage("null")
			if i < len(s.items) {
				tuple[j] = s.items[i]
			}
			objects = objects && values.IsObject(tuple[j])
		}
		if !objects {
			merged = append(merged, mergedItem{value: values.Array(tuple)})
			continue
		}
		var fields []values.Member
		for _, item := range tuple {
			fields = values.Overlay(fields, values.Members(item)...)
		}
		merged = append(merged, mergedItem{value: values.Object(fields)})
	}
	return merged
}
