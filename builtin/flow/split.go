package flow

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/tidwall/gjson"

	"tandem/builtin/early"
	"tandem/builtin/lists"
	"tandem/builtin/values"
	"tandem/expr"
	"tandem/fault"
	"tandem/node"
	"tandem/workflow"
)

type splitConfig struct {
	Mode         string      `json:"split_mode" enum:"items|predicate|by_key" fixed:"true" doc:"What is split: a list into its items, a list by predicates, or a record by its fields." zh:"拆分方式：按元素、按条件或按字段。"`
	ItemsPath    string      `json:"items_path" doc:"Where the list is in the input." zh:"列表在输入中的路径。"`
	Predicates   node.Object `json:"predicate_paths" fixed:"true" with:"split_mode=predicate" doc:"Output keys with the path or expression that an item must satisfy for each, for predicate." zh:"各键的条件：predicate 时各输出键对应的路径或表达式。"`
	Match        string      `json:"match" enum:"first|all" with:"split_mode=predicate" doc:"Whether an item goes to the first key that it satisfies, or to all." zh:"匹配方式：元素送往首个匹配的键，或所有匹配的键。"`
	ByKey        []string    `json:"by_key" fixed:"true" checked:"plan" with:"split_mode=by_key" doc:"The fields of a record, each of which leaves under its own output key." zh:"记录中各自成为输出键的字段。"`
	BatchSize    int64       `json:"batch_size" range:"1.." with:"split_mode=items" doc:"How many items one branch gets." zh:"每个分支取几个元素。"`
	Concurrency  int64       `json:"max_concurrency" range:"1..100" with:"split_mode=items" doc:"How many branches run at once." zh:"同时运行的分支数。"`
	BreakOnError bool        `json:"break_on_error" with:"split_mode=items" doc:"Whether the first failed branch ends the split." zh:"首个分支失败时是否结束拆分。"`
}

func (c *splitConfig) Defaults() {
	c.Mode, c.Match, c.BatchSize, c.Concurrency, c.BreakOnError = "items", "first", 1, 10, true
}

// flowSplit spreads a list or a record over branches. Only the split into items runs a body; the other two choose keys.
func flowSplit() node.Kind {
	k := node.Loop(
		node.About{
			Name: "FLOW.SPLIT", Title: node.Says("Split", "拆分"),
			Description: node.Says("Spreads a list or a record over branches.", "将列表或记录拆分到多个分支。"),
			Effect:      workflow.Pure,
			Keys: []node.Key{
				{Name: "branch", With: []node.Condition{{Field: "split_mode", Values: []string{"items"}}}, Meaning: node.Says("One item, or a batch of them; what is connected here runs for each.", "一个或一批元素；所连接的节点对每个都运行一次。"), Fields: []node.Value{
					node.Meaning("item", "The item, or the batch.", "元素或一批元素。"),
					node.Meaning("index", "Its number, from 0.", "序号，从 0 起。"),
					node.Meaning("*", "Whatever else the input has.", "输入的其余内容。"),
				}},
				{Name: node.AnyKey, From: []node.KeySource{{Field: "predicate_paths"}, {Field: "by_key"}}, Meaning: node.Says("The items, or the field, that belong to this key, with predicate and by_key.", "predicate 和 by_key 时属于该键的元素或字段。")},
				{Name: "unmatched", With: []node.Condition{{Field: "split_mode", Values: []string{"predicate"}}}, Meaning: node.Says("The items that belong to no key, with predicate.", "predicate 时不属于任何键的元素。")},
				{Name: "result", Meaning: node.Says("The results of all branches, in order.", "所有分支的结果，按顺序排列。"), Fields: []node.Value{
					node.Meaning("results", "The results of the branches, with items.", "items 时各分支的结果。"),
					node.Meaning("successful_iterations", "How many branches have succeeded.", "成功的分支数。"),
					node.Meaning("failed_iterations", "How many have failed.", "失败的分支数。"),
					node.Meaning("errors", "What went wrong in them.", "失败的原因。"),
					node.Meaning("counts", "How many items left under each key, with predicate and by_key.", "predicate 和 by_key 时各键的元素数。"),
				}},
			},
			Body:   &workflow.ScopeKeys{Entry: "branch", Exits: []string{workflow.DefaultKey}},
			Inputs: []node.Value{node.Meaning("*", "A list, or with by_key a record: at items_path, or where one is found.", "列表，或 by_key 时的记录：位于 items_path 或自动查找。")},
			Examples: []node.Example{
				{
					Shows:  node.Says("Runs a branch for each order, several at once.", "为每个订单运行一个分支，可同时运行多个。"),
					Config: `{"split_mode": "items", "items_path": "orders"}`,
					Input:  `{"orders": [{"id": 1}, {"id": 2}]}`,
					Output: `{"result": {"results": [{"item": {"id": 1}, "index": 0}, {"item": {"id": 2}, "index": 1}], "successful_iterations": 2, "failed_iterations": 0, "errors": []}}`,
				},
				{
					Shows:  node.Says("Sends urgent orders one way and the others another.", "将紧急订单与其他订单分流。"),
					Config: `{"split_mode": "predicate", "items_path": "orders", "predicate_paths": {"urgent": "item.urgent"}}`,
					Input:  `{"orders": [{"id": 1, "urgent": true}, {"id": 2}]}`,
					Output: `{"result": {"counts": {"unmatched": 1, "urgent": 1}}, "unmatched": [{"id": 2}], "urgent": [{"id": 1, "urgent": true}]}`,
				},
			},
		},
		node.Body[splitConfig]{
			Open: func(_ context.Context, call *node.Call, cfg splitConfig) (node.Opening, error) {
				var done node.Done
				var err error
				switch cfg.Mode {
				case "predicate":
					done, err = cfg.byPredicate(call)
				case "by_key":
					done, err = cfg.byField(call)
				default:
					return cfg.open(call)
				}
				return node.Opening{Done: done}, err
			},
			Share: func(call *node.Call, cfg splitConfig) ([]string, error) {
				return sharedItems(call, "items_path", cfg.ItemsPath)
			},
			Iteration: func(call *node.Call, cfg splitConfig, _ json.RawMessage, index int64) (node.Iteration, error) {
				items, err := keptItems(call, "items_path", cfg.ItemsPath)
				if err != nil {
					return node.Iteration{}, err
				}
				return iteration(keptBy(call).membersOf(call.Input), batch(items, cfg.BatchSize, index), index, ""), nil
			},
			Close: func(_ context.Context, _ *node.Call, _ splitConfig, t node.Closing) (node.Done, error) {
				results, err := collected(t, true)
				if err != nil {
					return nil, err
				}
				return node.Done{"result": splitResult(results, t)}, nil
			},
		}, planSplit)
	k.Needs = lists.Needs(func(c splitConfig) ([]string, bool) { return []string{c.ItemsPath}, c.Mode == "items" })
	return k
}

// planSplit finds the keys of a split. Only the split into items runs a body.
func planSplit(p *node.Planning, c *splitConfig) {
	early.Paths(p, "items_path")
	for i, item := range p.Items("by_key") {
		if item.Type != gjson.String && c.Mode != "by_key" {
			p.Saving(func() {
				p.Invalid(fmt.Sprintf("%s[%d]", p.At("by_key"), i), "must be a text, not %s", node.Excerpt(item))
			})
		}
	}
	p.Unscoped = c.Mode != "items"
	var keys []string
	seen := map[string]bool{}
	add := func(at, key string) {
		switch {
		case node.ReservedKey(key, "unmatched", "branch"):
			p.Invalid(at, "cannot be the key %q, which is reserved", key)
		case seen[key]:
			p.Invalid(at, "is the second key called %q; keep one", key)
		default:
			seen[key] = true
			keys = append(keys, key)
		}
	}
	switch c.Mode {
	case "predicate":
		p.Require("predicate_paths", "when %s is %q", "split_mode", "predicate")
		p.Value("predicate_paths").ForEach(func(key, value gjson.Result) bool {
			at := node.Under(p.At("predicate_paths"), key.Str)
			add(at, key.Str)
			if value.Type != gjson.String {
				p.Invalid(at, "must be a path or an expression, not %s", node.Excerpt(value))
			} else if !lists.PlainPath.MatchString(value.Str) {
				p.AddExpression(at, value.Str)
			}
			return true
		})
		p.Keys = append(keys, "unmatched", workflow.DefaultKey)
	case "by_key":
		p.Require("by_key", "when %s is %q", "split_mode", "by_key")
		for i, item := range p.Items("by_key") {
			at := fmt.Sprintf("%s[%d]", p.At("by_key"), i)
			if item.Type != gjson.String || node.Dynamic(item) || item.Str == "" {
				p.Invalid(at, "must be the name of a field, not %s", node.Excerpt(item))
				continue
			}
			add(at, item.Str)
		}
		p.Keys = append(keys, workflow.DefaultKey)
	}
}

func splitResult(results json.RawMessage, t node.Closing) json.RawMessage {
	return values.Object([]values.Member{
		{Key: "results", Value: results}, values.Field("successful_iterations", t.Succeeded), values.Field("failed_iterations", t.Failed), values.Field("errors", listOfErrors(t)),
	})
}

func (c *splitConfig) open(call *node.Call) (node.Opening, error) {
	if err := needsBody(call, "branch"); err != nil {
		return node.Opening{}, err
	}
	items, err := keptItems(call, "items_path", c.ItemsPath)
	if err != nil {
		return node.Opening{}, err
	}
	if len(items) == 0 {
		return node.Opening{Done: node.Done{"result": splitResult(json.RawMessage("[]"), node.Closing{})}}, nil
	}
	return node.Opening{Count: batches(items, c.BatchSize), Concurrency: c.Concurrency, KeepGoing: !c.BreakOnError}, nil
}

// branch is one key of a split with the test that leads to it.
type branch struct {
	key   string
	holds test
}

// byPredicate gives each item to the first key whose test holds, or to every such key. One value that is not a list is
// routed itself.
func (c *splitConfig) byPredicate(call *node.Call) (node.Done, error) {
	var branches []branch
	err := c.Predicates.Each(func(key string, raw json.RawMessage) error {
		source, ok := values.Decode(raw).(string)
		if !ok {
			return fault.Newf(fault.InvalidConfig, "%q must be a path or an expression", "predicate_paths."+key)
		}
		if err := c.checkKey(key, len(branches), func(i int) string { return branches[i].key }); err != nil {
			return err
		}
		holds, err := newTest(call, source)
		branches = append(branches, branch{key, holds})
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(branches) == 0 {
		return nil, fault.Newf(fault.InvalidConfig, "%q is required when split_mode is %q", "predicate_paths", "predicate")
	}
	list, err := lists.Input(call, call.Input, "items_path", c.ItemsPath)
	if err != nil {
		if c.ItemsPath != "" {
			return nil, err
		}
		list = values.ListOf(call.Input) // no list in it: the record itself is routed
	}
	routed, counts := map[string][]json.RawMessage{}, map[string]int{"unmatched": 0}
	fields := lists.AllFields(list.Items)
	for _, b := range branches {
		counts[b.key] = 0
	}
	for i, item := range list.Items {
		taken := false
		for _, b := range branches {
			holds, err := b.holds(item, i, fields)
			if err != nil {
				return nil, err
			}
			if holds {
				routed[b.key], taken = append(routed[b.key], item), true
				counts[b.key]++
				if c.Match == "first" {
					break
				}
			}
		}
		if !taken {
			routed["unmatched"] = append(routed["unmatched"], item)
			counts["unmatched"]++
		}
	}
	done := node.Done{"result": values.Object([]values.Member{values.Field("counts", counts)})}
	for key, items := range routed {
		if done[key] = values.Array(items); list.Single {
			done[key] = items[0]
		}
	}
	return done, nil
}

// byField makes a key of each field that has a value.
func (c *splitConfig) byField(call *node.Call) (node.Done, error) {
	if len(c.ByKey) == 0 {
		return nil, fault.Newf(fault.InvalidConfig, "%q is required when split_mode is %q", "by_key", "by_key")
	}
	record := call.Input
	if c.ItemsPath != "" {
		p, err := values.ParsePath(c.ItemsPath)
		if err != nil {
			return nil, err
		}
		record, _ = p.At(record)
	}
	if !values.IsObject(record) {
		return nil, fault.New(fault.InvalidInput, "there is no object to split by key; set items_path to one")
	}
	counts := map[string]int{}
	done := node.Done{}
	for i, name := range c.ByKey {
		if err := c.checkKey(name, i, func(j int) string { return c.ByKey[j] }); err != nil {
			return nil, err
		}
		counts[name] = 0
		if value, ok := (values.Path{name}).At(record); ok && !values.IsNull(value) {
			done[name] = value
			counts[name] = 1
		}
	}
	done["result"] = values.Object([]values.Member{values.Field("counts", counts)})
	return done, nil
}

func (c *splitConfig) checkKey(key string, before int, name func(int) string) error {
	if err := checkKey(key, "unmatched", "branch"); err != nil {
		return err
	}
	for i := range before {
		if name(i) == key {
			return fault.Newf(fault.InvalidConfig, "the key %q is there twice; keep one", key)
		}
	}
	return nil
}

// test judges an item. fields are the names any item of the list has, so that one that lacks a field reads it as null.
type test func(item json.RawMessage, index int, fields []string) (bool, error)

// newTest makes a test of a path into the item, or of an expression.
func newTest(call *node.Call, source string) (test, error) {
	value, err := lists.NewReader(call, source)
	if err != nil {
		return nil, err
	}
	return func(item json.RawMessage, index int, fields []string) (bool, error) {
		v, err := value(item, index, fields)
		return expr.Truth(v), err
	}, nil
}
