package data

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tidwall/gjson"

	"tandem/builtin/early"
	"tandem/builtin/lists"
	"tandem/builtin/values"
	"tandem/fault"
	"tandem/node"
	"tandem/payload"
	"tandem/text"
	"tandem/workflow"
)

type editConfig struct {
	Include     string      `json:"include" enum:"all|selected|none" doc:"Which fields of the record are kept: all, those that selected names, or none." zh:"保留记录的哪些字段：全部、selected 所列或不保留。"`
	Selected    []string    `json:"selected" with:"include=selected" doc:"The paths of the fields that are kept." zh:"要保留的字段路径。"`
	Rename      node.Object `json:"rename" doc:"Paths of fields with the path that each gets. A field that has that path already is replaced." zh:"重命名：字段路径及其新路径；已有的同名字段会被替换。"`
	Remove      []string    `json:"remove" doc:"The paths of fields that are taken away." zh:"要移除的字段路径。"`
	Set         node.Object `json:"set" doc:"Paths of fields with their new values. Placeholders in these are filled in once." zh:"设置字段：字段路径及其新值；其中的占位符只填充一次。"`
	Expressions node.Object `json:"expressions" doc:"Paths of fields with the expression that each is made of. It reads the record as it came in: its fields by name, item and index." zh:"表达式：字段路径及其计算表达式；读取传入时的记录，包括各字段名、item 和 index。"`
	Each        bool        `json:"each" doc:"Whether every item of a list is edited instead of the input." zh:"逐项编辑：是否编辑列表的每一项而不是输入本身。"`
	ItemsPath   string      `json:"items_path" with:"each=true" doc:"Where the list is in the input." zh:"列表在输入中的路径。"`
}

func (c *editConfig) Defaults() { c.Include = "all" }

// editFields sets, renames and removes fields of a record, or of each item of a list.
func editFields() node.Kind {
	k := node.Define(
		node.About{
			Name: "ACTION.EDIT_FIELDS", Title: node.Says("Edit fields", "编辑字段"),
			Description: node.Says(
				"Sets, computes, renames and removes fields. First the fields to keep are chosen, then renamed, then removed, then set, then computed.",
				"设置、计算、重命名和移除字段。依次为：选择保留的字段、重命名、移除、设置、计算。"),
			Effect: workflow.Pure,
			Keys: []node.Key{{Name: "result", Meaning: node.Says("The edited record; with each, the edited items.", "编辑后的记录；each 时为编辑后的各项。"), Fields: []node.Value{
				node.Meaning("items", "With each: the edited items.", "each 时：编辑后的各项。"),
				node.Meaning("count", "With each: how many there are.", "each 时：项数。"),
				node.Meaning("*", "Without each: the fields of the record.", "无 each 时：记录的各字段。"),
			}}},
			Inputs: []node.Value{node.Meaning("*", "The record; with each, a list at items_path, under a usual name such as data or items, or the only one there is.", "记录；each 时为位于 items_path、常用名称（如 data、items）之下或唯一的列表。")},
			Examples: []node.Example{
				{
					Shows:  node.Says("Renames one field, removes another and computes a third.", "重命名一个字段，移除一个字段并计算另一个字段。"),
					Config: `{"rename": {"cust": "customer.name"}, "remove": ["internal"], "set": {"currency": "EUR"}, "expressions": {"total": "price * count"}}`,
					Input:  `{"cust": "Ann", "price": 20, "count": 3, "internal": "x"}`,
					Output: `{"result": {"price": 20, "count": 3, "customer": {"name": "Ann"}, "currency": "EUR", "total": 60}}`,
				},
				{
					Shows:  node.Says("Keeps two fields of every order and numbers the orders.", "保留每个订单的两个字段并编号。"),
					Config: `{"each": true, "items_path": "orders", "include": "selected", "selected": ["id", "total"], "expressions": {"number": "index + 1"}}`,
					Input:  `{"orders": [{"id": "a", "total": 5, "note": "n"}, {"id": "b", "total": 7}]}`,
					Output: `{"result": {"items": [{"id": "a", "total": 5, "number": 1}, {"id": "b", "total": 7, "number": 2}], "count": 2}}`,
				},
			},
		},
		func(_ context.Context, call *node.Call, cfg editConfig, in json.RawMessage) (json.RawMessage, error) {
			e, err := newEdit(call, cfg)
			if err != nil {
				return nil, err
			}
			if !cfg.Each {
				return e.record(objectOnly(in), 0, lists.AllFields([]json.RawMessage{in}))
			}
			list, err := lists.Input(call, in, "items_path", cfg.ItemsPath)
			if err != nil {
				return nil, err
			}
			fields := lists.AllFields(list.Items)
			out := make([]json.RawMessage, len(list.Items))
			for i, item := range list.Items {
				if !values.IsObject(item) {
					return nil, fault.Newf(fault.InvalidInput, "item %d of the list is not an object, so it has no fields to edit", i)
				}
				if out[i], err = e.record(item, i, fields); err != nil {
					return nil, fault.From(err).With("index", i)
				}
			}
			return values.Object([]values.Member{{Key: "items", Value: values.Array(out)}, values.Field("count", len(out))}), nil
		}, planEdit)
	k.Needs = lists.Needs(func(c editConfig) ([]string, bool) { return []string{c.ItemsPath}, c.Each })
	return k
}

// edit is what a node does to each record.
type edit struct {
	call     *node.Call
	all      bool
	selected []values.Path
	rename   []editMove
	remove   []values.Path
	set      []editSet
}

// editMove gives a field another path.
type editMove struct {
	name     string
	from, to values.Path
}

// editSet gives a field a value, or one that is read from the record.
type editSet struct {
	path  values.Path
	value json.RawMessage
	read  lists.Reader
}

func newEdit(call *node.Call, cfg editConfig) (*edit, error) {
	e := &edit{call: call, all: cfg.Include == "all"}
	var err error
	if cfg.Include == "selected" {
		if e.selected, err = editPaths("selected", cfg.Selected); err != nil {
			return nil, err
		}
	}
	if e.remove, err = editPaths("remove", cfg.Remove); err != nil {
		return nil, err
	}
	err = cfg.Rename.Each(func(from string, raw json.RawMessage) error {
		to, ok := values.Decode(raw).(string)
		if !ok {
			return fault.Say(fault.InvalidConfig, text.Of("rename.%s is not a text: it is the path that the field gets", from)).With("path", "configurations.rename")
		}
		paths, err := editPaths("rename", []string{from, to})
		if err == nil {
			e.rename = append(e.rename, editMove{from, paths[0], paths[1]})
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	err = cfg.Set.Each(func(name string, raw json.RawMessage) error {
		paths, err := editPaths("set", []string{name})
		if err == nil {
			e.set = append(e.set, editSet{path: paths[0], value: raw})
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return e, cfg.Expressions.Each(func(name string, raw json.RawMessage) error {
		source, path, err := editExpression(name, raw)
		if err != nil {
			return err
		}
		read, err := lists.NewReader(call, source)
		e.set = append(e.set, editSet{path: path, read: read})
		return err
	})
}

// editExpression reads an expression and the path of the field that it is for.
func editExpression(name string, raw json.RawMessage) (source string, path values.Path, err error) {
	source, ok := values.Decode(raw).(string)
	if !ok {
		return "", nil, fault.Say(fault.InvalidConfig, text.Of("expressions.%s is not a text: fixed values belong into set", name)).With("path", "configurations.expressions")
	}
	paths, err := editPaths("expressions", []string{name})
	if err != nil {
		return "", nil, err
	}
	return source, paths[0], nil
}

// editPaths reads the paths that a configuration field names.
func editPaths(field string, texts []string) ([]values.Path, error) {
	paths := make([]values.Path, len(texts))
	for i, one := range texts {
		p, err := values.ParsePath(one)
		if err != nil {
			return nil, fault.Newf(fault.InvalidConfig, "%s has %q, which is not the path of a field: %s", field, one, fault.From(err).Message).With("path", "configurations."+field)
		}
		paths[i] = p
	}
	return paths, nil
}

// record edits one record. Index is its place in the list, fields are those that any record of the list has.
func (e *edit) record(in json.RawMessage, index int, fields []string) (json.RawMessage, error) {
	out := json.RawMessage("{}")
	if e.all {
		out = in
	}
	var err error
	for _, p := range e.selected {
		if v, ok := p.Walk(in); ok {
			if out, err = putAt(out, p, v); err != nil {
				return nil, err
			}
		}
	}
	for _, m := range e.rename {
		v, ok := m.from.Walk(out)
		e.call.Look("configurations.rename", m.name, ok, func() string {
			step, names := m.from.Missing(out)
			return fmt.Sprintf("%q is to be renamed and is not there%s", m.name, node.Nearest(m.from[:step], m.from[min(step, len(m.from)-1)], names))
		})
		if !ok {
			continue
		}
		if out, err = putAt(removeAt(out, m.from), m.to, v); err != nil {
			return nil, err
		}
	}
	for _, p := range e.remove {
		out = removeAt(out, p)
	}
	for _, s := range e.set {
		value := s.value
		if s.read != nil {
			v, err := s.read(in, index, fields)
			if err != nil {
				return nil, fault.From(err).With("field", fmt.Sprint(s.path))
			}
			if value, err = values.Finite(v); err != nil {
				return nil, err
			}
		}
		if out, err = putAt(out, s.path, value); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// putAt sets the value at a path. Objects on the way are made; what stands there and is neither an object nor a list is refused.
func putAt(raw json.RawMessage, p values.Path, value json.RawMessage) (json.RawMessage, error) {
	if len(p) == 0 {
		return value, nil
	}
	switch {
	case values.IsNull(raw) || values.IsObject(raw):
		members := values.Members(objectOnly(raw))
		var inner json.RawMessage
		if i := slices.IndexFunc(members, func(m values.Member) bool { return m.Key == p[0] }); i >= 0 {
			inner = members[i].Value
		}
		made, err := putAt(inner, p[1:], value)
		if err != nil {
			return nil, err
		}
		return values.Object(values.Overlay(members, values.Member{Key: p[0], Value: made})), nil
	case values.IsList(raw):
		items := values.Elements(raw)
		i := payload.Index(p[0])
		if i < 0 || i >= len(items) {
			return nil, fault.Newf(fault.InvalidInput, "the list has no item %s to set; it has %d", p[0], len(items))
		}
		made, err := putAt(items[i], p[1:], value)
		if err != nil {
			return nil, err
		}
		items = slices.Clone(items)
		items[i] = made
		return values.Array(items), nil
	}
	return nil, fault.Newf(fault.InvalidInput, "%s is to be set inside a value that is neither an object nor a list", p[0])
}

// removeAt takes the field at a path away, if it is there. An item of a list is taken out of it.
func removeAt(raw json.RawMessage, p values.Path) json.RawMessage {
	switch {
	case len(p) == 0:
		return raw
	case values.IsObject(raw):
		members := slices.Clone(values.Members(raw))
		i := slices.IndexFunc(members, func(m values.Member) bool { return m.Key == p[0] })
		switch {
		case i < 0:
			return raw
		case len(p) == 1:
			members = slices.Delete(members, i, i+1)
		default:
			members[i].Value = removeAt(members[i].Value, p[1:])
		}
		return values.Object(members)
	case values.IsList(raw):
		items := slices.Clone(values.Elements(raw))
		i := payload.Index(p[0])
		switch {
		case i < 0 || i >= len(items):
			return raw
		case len(p) == 1:
			items = slices.Delete(items, i, i+1)
		default:
			items[i] = removeAt(items[i], p[1:])
		}
		return values.Array(items)
	}
	return raw
}

func planEdit(p *node.Planning, c *editConfig) {
	early.Paths(p, "items_path", "selected", "remove")
	early.Read(p, "rename", func(raw json.RawMessage) error {
		_, err := newEdit(nil, editConfig{Rename: node.Object(raw)})
		return err
	})
	early.Read(p, "set", func(raw json.RawMessage) error {
		_, err := newEdit(nil, editConfig{Set: node.Object(raw)})
		return err
	})
	early.Read(p, "expressions", func(raw json.RawMessage) error {
		return node.Object(raw).Each(func(name string, raw json.RawMessage) error {
			_, _, err := editExpression(name, raw)
			return err
		})
	})
	if c.Include == "selected" {
		p.Require("selected", "when %s is %q", "include", c.Include)
	}
	if c.Include == "all" && !slices.ContainsFunc([]string{"rename", "remove", "set", "expressions"}, p.Has) {
		p.Warn(workflow.ProblemConfig, p.At("set"), "nothing is edited: set, rename or remove a field, or choose what is kept with include")
	}
	p.Value("expressions").ForEach(func(key, value gjson.Result) bool {
		if value.Type == gjson.String {
			p.AddExpression(payload.JoinKey(p.At("expressions"), key.Str), value.Str)
		}
		return true
	})
}
