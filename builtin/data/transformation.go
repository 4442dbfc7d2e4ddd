package data

import (
	"context"
	"encoding/json"
	"fmt"

	"tandem/builtin/early"
	"tandem/builtin/lists"
	"tandem/builtin/values"
	"tandem/fault"
	"tandem/node"
	"tandem/workflow"
)

type transformConfig struct {
	Operation     string            `json:"operation" enum:"map|filter|aggregate|sort|group_by|join|flatten|pivot|custom" legacy:"extract_fields" doc:"What is done with the records." zh:"对记录进行的操作。"`
	Mapping       node.Object       `json:"field_mapping" doc:"New field names with the path or expression that each is made of." zh:"新字段名及其来源路径或表达式。"`
	ItemsPath     string            `json:"items_path" doc:"Where the list is in the input." zh:"列表在输入中的路径。"`
	Conditions    []lists.Condition `json:"filter_conditions" checked:"plan" with:"operation=filter" doc:"The conditions for filter." zh:"filter 的条件。"`
	Sort          transformSort     `json:"sort_config" with:"operation=sort" doc:"How sort orders the records." zh:"sort 的排序方式。"`
	GroupBy       []string          `json:"group_by_fields" doc:"The fields that group_by groups by." zh:"分组字段：group_by 分组所依据的字段。"`
	Aggregations  node.Object       `json:"aggregation_functions" doc:"Fields with the function that sums each up: count, sum, avg, min, max and so on." zh:"各字段的聚合函数：count、sum、avg、min、max 等。"`
	Join          transformJoin     `json:"join_config" with:"operation=join" doc:"How join matches two lists." zh:"join 如何匹配两个列表。"`
	Flatten       transformFlatten  `json:"flatten_config" with:"operation=flatten" doc:"What flatten takes apart." zh:"flatten 展开的内容。"`
	Pivot         transformPivot    `json:"pivot_config" with:"operation=pivot" doc:"How pivot makes columns of rows." zh:"pivot 如何将行转为列。"`
	Script        node.Source       `json:"transformation_script" with:"operation=custom" doc:"A function that is given all records and returns the new ones, for custom." zh:"转换脚本：custom 时接收全部记录并返回新记录的函数。"`
	OutputFormat  string            `json:"output_format" enum:"json|array|csv|xml" doc:"What the result looks like." zh:"结果的格式。"`
	KeepsMetadata bool              `json:"preserve_metadata" doc:"Whether the other fields of the input are handed on." zh:"是否传递输入的其他字段。"`
}

func (c *transformConfig) Defaults() {
	c.Operation, c.OutputFormat, c.KeepsMetadata = "map", "json", true
	c.Sort.Defaults()
	c.Join.Defaults()
	c.Flatten.Defaults()
}

type transformSort struct {
	Field     string `json:"field" doc:"The field to sort by." zh:"排序字段。"`
	Direction string `json:"direction" enum:"asc|desc" doc:"The order." zh:"顺序。"`
}

func (c *transformSort) Defaults() { c.Direction = "asc" }

type transformJoin struct {
	RightPath string `json:"right_path" doc:"Where the second list is in the input." zh:"第二个列表在输入中的路径。"`
	LeftKey   string `json:"left_key" doc:"The field of the first list that is matched." zh:"第一个列表的匹配字段。"`
	RightKey  string `json:"right_key" doc:"The field of the second list that is matched." zh:"第二个列表的匹配字段。"`
	Type      string `json:"type" enum:"inner|left|right|full" doc:"Which records without a match are kept." zh:"保留哪些没有匹配的记录。"`
}

func (c *transformJoin) Defaults() { c.RightPath, c.Type = "right", "inner" }

type transformFlatten struct {
	Path  string `json:"path" doc:"The field whose list is taken apart." zh:"要展开的字段。"`
	Depth int64  `json:"depth" range:"1.." doc:"How many levels are taken apart." zh:"展开的层数。"`
}

func (c *transformFlatten) Defaults() { c.Depth = 1 }

type transformPivot struct {
	Index    any    `json:"index" takes:"text|list" doc:"The field, or fields, that a row stands for." zh:"每行所代表的一个或多个字段。"`
	Columns  string `json:"columns" doc:"The field whose values become columns." zh:"其值成为列的字段。"`
	Values   string `json:"values" doc:"The field whose values fill the columns." zh:"填入各列的字段。"`
	Function string `json:"function" doc:"How several values of a cell are summed up." zh:"同一单元格多个值的汇总方式。"`
}

type transformStats struct {
	Operation string `json:"operation"`
	Input     int    `json:"input_count"`
	Output    int    `json:"output_count"`
}

// dataTransformation reshapes a list of records.
func dataTransformation() node.Kind {
	k := node.Define(
		node.About{
			Name: "ACTION.DATA_TRANSFORMATION", Title: node.Says("Data transformation", "数据转换"),
			Description: node.Says("Reshapes a list of records.", "重塑一组记录。"),
			Effect:      workflow.Pure,
			Keys: []node.Key{{Name: "result", Meaning: node.Says("The new records, and how many there are.", "转换后的记录及其数量。"), Fields: []node.Value{
				node.Meaning("transformed_data", "The new records.", "转换后的记录。"),
				node.Meaning("original_count", "How many there were.", "原有的数量。"),
				node.Meaning("output_count", "How many there are now.", "现有的数量。"),
				node.Meaning("transformation_stats", "The operation with both numbers.", "操作及前后数量。"),
				node.Meaning("formatted", "The records as text, with output_format csv or xml.", "output_format 为 csv 或 xml 时的文本。"),
			}}},
			Inputs: append(lists.Inputs(), node.Meaning("right", "The second list of a join, unless join_config.right_path is another.", "join 的第二个列表（未设置 join_config.right_path 时）。")),
			Examples: []node.Example{
				{
					Shows:  node.Says("Adds up the totals of each customer.", "按客户汇总金额。"),
					Config: `{"operation": "group_by", "items_path": "orders", "group_by_fields": ["customer"], "aggregation_functions": {"total": "sum"}}`,
					Input:  `{"orders": [{"customer": "Ann", "total": 80}, {"customer": "Ann", "total": 20}, {"customer": "Bob", "total": 120}]}`,
					Output: `{"result": {"transformed_data": [{"customer": "Ann", "total": 100}, {"customer": "Bob", "total": 120}], "original_count": 3, "output_count": 2, "transformation_stats": {"operation": "group_by", "input_count": 3, "output_count": 2}}}`,
				},
			},
		},
		func(ctx context.Context, call *node.Call, cfg transformConfig, in json.RawMessage) (json.RawMessage, error) {
			list, err := lists.Input(call, in, "items_path", cfg.ItemsPath)
			if err != nil {
				if fault.CodeOf(err) != fault.InvalidInput {
					return nil, err
				}
				list = values.ListOf(in) // no list: the input is the one record
			}
			t := transformation{ctx: ctx, call: call, cfg: cfg, in: in, records: list.Items}
			out, err := t.run()
			if err != nil {
				return nil, err
			}
			fields := []values.Member{
				{Key: "transformed_data", Value: values.Array(out)}, values.Field("original_count", len(list.Items)), values.Field("output_count", len(out)),
				values.Field("transformation_stats", transformStats{t.cfg.Operation, len(list.Items), len(out)}),
			}
			switch cfg.OutputFormat {
			case "csv":
				text, err := formatCSV(values.Array(out), formatOptions{})
				if err != nil {
					return nil, err
				}
				fields = append(fields, values.Field("formatted", text))
			case "xml":
				fields = append(fields, values.Field("formatted", formatXML(values.Array(out), formatOptions{})))
			}
			return values.Object(fields), nil
		}, planTransformation)
	k.Needs = lists.Needs(func(c transformConfig) ([]string, bool) {
		paths := []string{c.ItemsPath}
		if c.Operation == "join" {
			paths = append(paths, c.Join.RightPath)
		}
		return paths, c.Operation != "custom" // whose function is given the whole input
	})
	return k
}

// transformation is one run.
type transformation struct {
	ctx     context.Context
	call    *node.Call
	cfg     transformConfig
	in      json.RawMessage
	records []json.RawMessage
	made    int // bytes of the records that were made of others
}

func (t *transformation) run() ([]json.RawMessage, error) {
	switch t.cfg.Operation {
	case "filter":
		return t.filter()
	case "sort":
		return t.sort()
	case "aggregate", "group_by":
		return t.group()
	case "join":
		return t.join()
	case "flatten":
		return t.flatten()
	case "pivot":
		return t.pivot()
	case "custom":
		return t.custom()
	}
	t.cfg.Operation = "map"
	return t.mapped()
}

// mapped makes a new record of each: every target has a path into the record, an expression, or a value of its own.
func (t *transformation) mapped() ([]json.RawMessage, error) {
	if t.cfg.Mapping == nil {
		return t.records, nil
	}
	type target struct {
		name  string
		read  lists.Reader
		value json.RawMessage
	}
	var targets []target
	err := t.cfg.Mapping.Each(func(name string, raw json.RawMessage) error {
		source, isText := values.Decode(raw).(string)
		if !isText {
			targets = append(targets, target{name: name, value: raw})
			return nil
		}
		read, err := lists.NewReader(t.call, source)
		targets = append(targets, target{name: name, read: read})
		return err
	})
	if err != nil {
		return nil, err
	}
	fields := lists.AllFields(t.records)
	out := make([]json.RawMessage, len(t.records))
	for i, record := range t.records {
		var made []values.Member
		for _, m := range values.Members(objectOnly(record)) {
			if t.cfg.KeepsMetadata && len(m.Key) > 0 && m.Key[0] == '_' {
				made = append(made, m)
			}
		}
		for _, target := range targets {
			value := target.value
			if target.read != nil {
				v, err := target.read(record, i, fields)
				if err != nil {
					return nil, fault.From(err).With("field", target.name).With("index", i)
				}
				if value, err = values.Finite(v); err != nil {
					return nil, err
				}
			}
			made = values.Overlay(made, values.Member{Key: target.name, Value: value})
		}
		out[i] = values.Object(made)
	}
	return out, nil
}

func objectOnly(raw json.RawMessage) json.RawMessage {
	if values.IsObject(raw) {
		return raw
	}
	return json.RawMessage("{}")
}

// filter keeps the records for which every condition holds; one that cannot be judged is left out.
func (t *transformation) filter() ([]json.RawMessage, error) {
	f, err := lists.NewFilter(t.call, "", t.cfg.Conditions, "AND", "exclude", true, t.records)
	if err != nil {
		return nil, err
	}
	var out []json.RawMessage
	for i, record := range t.records {
		v, err := f.Judge(record, i)
		if err != nil && fault.CodeOf(err) == fault.InvalidConfig {
			return nil, err
		}
		if err == nil && v == lists.Matches {
			out = append(out, record)
		}
	}
	return out, nil
}

func (t *transformation) sort() ([]json.RawMessage, error) {
	if t.cfg.Sort.Field == "" {
		return nil, fault.Newf(fault.InvalidConfig, "%q is required when operation is %q", "sort_config.field", "sort")
	}
	key, err := lists.NewSortKey(t.call, t.cfg.Sort.Field, t.cfg.Sort.Direction, "")
	if err != nil {
		return nil, err
	}
	out := make([]json.RawMessage, len(t.records))
	for i, s := range lists.Sorted(t.records, []lists.SortKey{key}, true) {
		out[i] = s.Item
	}
	return out, nil
}

// flatten takes lists apart: those that records are, or those at a path, whose elements become records with the other
// fields of theirs. A record without elements is gone.
func (t *transformation) flatten() ([]json.RawMessage, error) {
	var out []json.RawMessage
	if t.cfg.Flatten.Path == "" {
		for _, record := range t.records {
			out = append(out, flattened(record, t.cfg.Flatten.Depth)...)
		}
		return out, nil
	}
	p, err := values.ParsePath(t.cfg.Flatten.Path)
	if err != nil {
		return nil, err
	}
	for _, record := range t.records {
		value, ok := p.At(record)
		if !ok || values.IsNull(value) {
			continue
		}
		var rest []values.Member
		for _, m := range values.Members(objectOnly(record)) {
			if m.Key != p[0] {
				rest = append(rest, m)
			}
		}
		for _, element := range flattened(value, t.cfg.Flatten.Depth) {
			fields := []values.Member{{Key: p[len(p)-1], Value: element}}
			if values.IsObject(element) {
				fields = values.Members(element)
			}
			if out, err = t.addRecord(out, values.Object(values.Overlay(rest, fields...))); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// maxMade is how many bytes records may become that are made of others: few of them can match each other, or repeat what
// they have in common, without end.
const maxMade = 64 << 20

// addRecord adds a record that was made of others.
func (t *transformation) addRecord(out []json.RawMessage, record json.RawMessage) ([]json.RawMessage, error) {
	if t.made += len(record); t.made > maxMade {
		return nil, fault.Newf(fault.TooLarge, "the %s makes more than %d bytes of its records; filter them before", t.cfg.Operation, maxMade).With("limit", maxMade)
	}
	return append(out, record), nil
}

// flattened are the elements of a value, of those that are lists the elements, and so on to a depth.
func flattened(value json.RawMessage, depth int64) []json.RawMessage {
	if !values.IsList(value) || depth == 0 {
		return []json.RawMessage{value}
	}
	var out []json.RawMessage
	for _, element := range values.Elements(value) {
		out = append(out, flattened(element, depth-1)...)
	}
	return out
}

// join puts the fields of matching records together, those of the right over those of the left. A null matches nothing.
func (t *transformation) join() ([]json.RawMessage, error) {
	c := t.cfg.Join
	if c.LeftKey == "" {
		return nil, fault.Newf(fault.InvalidConfig, "%q is required when operation is %q", "join_config.left_key", "join")
	}
	if c.RightKey == "" {
		c.RightKey = c.LeftKey
	}
	at, err := values.ParsePath(c.RightPath)
	if err != nil {
		return nil, err
	}
	value, _ := at.At(t.in)
	right := values.ListOf(value).Items
	leftKeys, err := joinKeys(t.records, c.LeftKey, "left")
	if err != nil {
		return nil, err
	}
	rightKeys, err := joinKeys(right, c.RightKey, "right")
	if err != nil {
		return nil, err
	}
	byKey := map[string][]int{}
	for j, key := range rightKeys {
		if key != "" {
			byKey[key] = append(byKey[key], j)
		}
	}
	used := make([]bool, len(right))
	var out []json.RawMessage
	for i, record := range t.records {
		matched := byKey[leftKeys[i]]
		for _, j := range matched {
			used[j] = true
			if out, err = t.addRecord(out, values.Object(values.Overlay(values.Members(record), values.Members(right[j])...))); err != nil {
				return nil, err
			}
		}
		if len(matched) == 0 && (c.Type == "left" || c.Type == "full") {
			out = append(out, record)
		}
	}
	for j, record := range right {
		if !used[j] && (c.Type == "right" || c.Type == "full") {
			out = append(out, record)
		}
	}
	return out, nil
}

// joinKeys are the keys of records as texts, "" where a record has none.
func joinKeys(records []json.RawMessage, name, side string) ([]string, error) {
	p, err := values.ParsePath(name)
	if err != nil {
		return nil, err
	}
	keys := make([]string, len(records))
	for i, record := range records {
		if !values.IsObject(record) {
			return nil, fault.Newf(fault.InvalidInput, "record %d of the %s side is not an object, so it cannot be joined", i, side)
		}
		if value, ok := p.At(record); ok && !values.IsNull(value) {
			keys[i] = values.Canonical(values.Decode(value))
		}
	}
	return keys, nil
}

func planTransformation(p *node.Planning, c *transformConfig) {
	early.Paths(p, "items_path")
	early.Read(p, "aggregation_functions", checkAggregations)
	needed := map[string]string{ // flattening and joining have usable defaults
		"filter": "filter_conditions", "sort": "sort_config", "group_by": "group_by_fields",
		"pivot": "pivot_config", "custom": "transformation_script", "aggregate": "aggregation_functions",
	}[c.Operation]
	if needed != "" {
		p.Require(needed, "when %s is %q", "operation", c.Operation)
	}
	if !p.Dynamic("filter_conditions") {
		node.CheckItems[lists.Condition](p, "filter_conditions", node.Only{
			Optional: []string{"field", "operator", "value", "expression", "pattern", "min_value", "max_value", "inclusive", "exists", "type", "mode", "threshold"},
		})
	}
	for i, item := range p.Items("filter_conditions") { // what a condition has tells how it tests, and no test that is told so reads these
		for _, name := range []string{"mode", "threshold"} {
			if item.Get(name).Exists() {
				p.Warn(workflow.ProblemConfig, fmt.Sprintf("%s[%d].%s", p.At("filter_conditions"), i, name), "%s does nothing here: it is for conditions of FLOW.FILTER; remove it", name)
			}
		}
	}
	if p.Has("field_mapping") { // it is written in the expression language, which binds placeholders as values
		p.Shielded = append(p.Shielded, p.At("field_mapping"))
	}
}

// custom hands all records to a function, which returns the new ones. As with conversions, what is not a function is an
// expression.
func (t *transformation) custom() ([]json.RawMessage, error) {
	if workflow.LanguageOf(string(t.cfg.Script)) == workflow.LanguageExpression {
		records := values.Decode(values.Array(t.records))
		value, err := t.call.Eval(string(t.cfg.Script), map[string]any{"data": records, "items": records, "value": records, "output": records})
		if err != nil {
			return nil, err
		}
		result, err := values.Finite(value)
		return values.ListOf(result).Items, err
	}
	language, err := node.FunctionLanguage(string(t.cfg.Script), "transformation_script")
	if err != nil {
		return nil, err
	}
	input := values.Object([]values.Member{{Key: "data", Value: values.Array(t.records)},
		{Key: "items", Value: values.Array(t.records)}, {Key: "value", Value: values.Array(t.records)},
		{Key: "output", Value: values.Array(t.records)}, {Key: "input", Value: t.in}})
	result, err := t.call.Code(t.ctx, node.Code{Language: language, Source: string(t.cfg.Script), Entry: node.ConversionEntry,
		Input: input})
	if err != nil {
		return nil, err
	}
	return values.ListOf(result.Value).Items, nil
}
