package flow

import (
	"context"
	"encoding/json"

	"github.com/tidwall/gjson"

	"tandem/builtin/early"
	"tandem/builtin/lists"
	"tandem/builtin/values"
	"tandem/fault"
	"tandem/node"
	"tandem/workflow"
)

type sortConfig struct {
	_ struct{} `need:"sort_field|sort_fields" either:"sort_field|sort_fields"`

	Field         string      `json:"sort_field" doc:"The field to sort by." zh:"排序字段。"`
	Fields        []sortField `json:"sort_fields" doc:"Several fields to sort by, the most important first." zh:"多个排序字段，重要的在前。"`
	Order         string      `json:"order" enum:"asc|desc" doc:"The order for sort_field." zh:"sort_field 的顺序。"`
	Nulls         string      `json:"nulls" enum:"last|first" doc:"Whether items without the field come last or first." zh:"空值的位置：无该字段的元素排在最后或最前。"`
	CaseSensitive bool        `json:"case_sensitive" doc:"Whether upper and lower case differ." zh:"是否区分大小写。"`
	ItemsPath     string      `json:"items_path" doc:"Where the list is in the input." zh:"列表在输入中的路径。"`
}

func (c *sortConfig) Defaults() { c.Order, c.Nulls, c.CaseSensitive = "asc", "last", true }

type sortField struct {
	Field string `json:"field" required:"true" doc:"The field to sort by." zh:"排序字段。"`
	Order string `json:"order" enum:"asc|desc" doc:"Its order." zh:"该字段的顺序。"`
	Nulls string `json:"nulls" enum:"last|first" doc:"Whether items without it come last or first." zh:"空值的位置：无该字段的元素排在最后或最前。"`
}

func (f *sortField) Defaults() { f.Order, f.Nulls = "asc", "last" }

// flowSort orders a list. The input may bring another order in "sort_override".
func flowSort() node.Kind {
	k := node.Raw(
		node.About{
			Name: "FLOW.SORT", Title: node.Says("Sort", "排序"),
			Description: node.Says("Orders a list by one or more fields.", "按一个或多个字段对列表排序。"),
			Effect:      workflow.Pure,
			Keys: []node.Key{
				{Name: "result", Meaning: node.Says("The sorted list.", "排序后的列表。"), Fields: []node.Value{
					node.Meaning("sorted_data", "The sorted list.", "排序后的列表。"),
					node.Meaning("sort_stats", "How many items there are, how many have moved, and what they are sorted by.", "元素数、移动数和排序字段。"),
					node.Meaning("original_indices", "Where each item was before.", "各元素原来的位置。"),
				}},
				{Name: "sorted", Meaning: node.Says("The sorted list.", "排序后的列表。")},
				{Name: "metadata", Meaning: node.Says("Where each item was before, and how many have moved.", "各元素原来的位置和移动的数量。"), Fields: []node.Value{
					node.Meaning("sort_stats", "How many items there are, how many have moved, and what they are sorted by.", "元素数、移动数和排序字段。"),
					node.Meaning("original_indices", "Where each item was before.", "各元素原来的位置。"),
				}},
			},
			Inputs: append(lists.Inputs(), node.Meaning("sort_override", "A sort_field and an order that take the place of the configured ones.", "代替配置的 sort_field 和 order。")),
			Examples: []node.Example{
				{
					Shows:  node.Says("Puts the largest order first.", "将金额最大的订单排在最前。"),
					Config: `{"sort_field": "total", "order": "desc", "items_path": "orders"}`,
					Input:  `{"orders": [{"id": 1, "total": 80}, {"id": 2, "total": 120}]}`,
					Output: `{"result": {"sorted_data": [{"id": 2, "total": 120}, {"id": 1, "total": 80}], "sort_stats": {"item_count": 2, "moved_count": 2, "sort_fields": [{"field": "total", "order": "desc", "nulls": "last"}]}, "original_indices": [1, 0]}, "metadata": {"sort_stats": {"item_count": 2, "moved_count": 2, "sort_fields": [{"field": "total", "order": "desc", "nulls": "last"}]}, "original_indices": [1, 0]}, "sorted": [{"id": 2, "total": 120}, {"id": 1, "total": 80}]}`,
				},
			},
		},
		func(_ context.Context, call *node.Call, cfg sortConfig, in json.RawMessage) (node.Outcome, error) {
			if err := cfg.override(in); err != nil {
				return nil, err
			}
			fields := cfg.Fields
			if len(fields) == 0 {
				fields = []sortField{{cfg.Field, cfg.Order, cfg.Nulls}}
			}
			keys := make([]lists.SortKey, len(fields))
			for i, f := range fields {
				key, err := lists.NewSortKey(call, f.Field, f.Order, f.Nulls)
				if err != nil {
					return nil, err
				}
				keys[i] = key
			}
			list, err := lists.Input(call, in, "items_path", cfg.ItemsPath)
			if err != nil {
				return nil, err
			}
			ordered := lists.Sorted(list.Items, keys, cfg.CaseSensitive)
			items, indices, moved := make([]json.RawMessage, len(ordered)), make([]int, len(ordered)), 0
			for i, s := range ordered {
				items[i], indices[i] = s.Item, s.Index
				if s.Index != i {
					moved++
				}
			}
			data, stats := values.Array(items), values.Field("sort_stats", sortStats{len(items), moved, fields})
			return node.Done{
				"result":   values.Object([]values.Member{{Key: "sorted_data", Value: data}, stats, values.Field("original_indices", indices)}),
				"sorted":   data,
				"metadata": values.Object([]values.Member{stats, values.Field("original_indices", indices)}),
			}, nil
		}, func(p *node.Planning, _ *sortConfig) {
			early.Paths(p, "items_path")
			early.Keys(p, "sort_field", "sort_fields.*.field")
		})
	k.Needs = lists.Needs(func(c sortConfig) ([]string, bool) { return []string{c.ItemsPath, "sort_override"}, true })
	return k
}

type sortStats struct {
	Count  int         `json:"item_count"`
	Moved  int         `json:"moved_count"`
	Fields []sortField `json:"sort_fields"`
}

// override reads what the input says about the order, which wins.
func (c *sortConfig) override(in json.RawMessage) error {
	raw := gjson.GetBytes(in, "sort_override")
	if raw.Exists() && raw.Type != gjson.Null {
		var o struct {
			Field string `json:"sort_field"`
			Order string `json:"order"`
		}
		if err := json.Unmarshal([]byte(raw.Raw), &o); err != nil {
			return fault.Newf(fault.InvalidInput, "%q must be an object with sort_field and order", "sort_override").WithCause(err)
		}
		if o.Order != "" && o.Order != "asc" && o.Order != "desc" {
			return fault.Newf(fault.InvalidInput, "%q must be %q or %q, not %q", "sort_override.order", "asc", "desc", o.Order)
		}
		if o.Field != "" {
			c.Field, c.Fields = o.Field, nil
		}
		if o.Order != "" {
			c.Order = o.Order
			for i := range c.Fields {
				c.Fields[i].Order = o.Order
			}
		}
	}
	if c.Field == "" && len(c.Fields) == 0 {
		return fault.New(fault.InvalidConfig, `"sort_field" or "sort_fields" is required; "." sorts by the item itself`)
	}
	return nil
}
