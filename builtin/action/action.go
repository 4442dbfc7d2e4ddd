// Package action makes kinds of node that act in a service: one kind with several operations, of which a node does one.
//
// The fields of all operations stand in one configuration. What a node leaves empty its input may bring, so that data can fill
// in a message and cannot change a channel that the author has fixed. Of what the input brings only the fields of the operation
// are looked at: the answer of another service may have fields of the same names. Each operation has an effect class of its own,
// and may say how the service is asked what became of a call whose answer was lost.
package action

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"tandem/builtin/values"
	"tandem/fault"
	"tandem/node"
	"tandem/node/shape"
	"tandem/payload"
	"tandem/workflow"
)

// Fields are what the configuration of every such kind begins with.
type Fields struct {
	_ struct{} `empty:"absent"` // see present

	ActionType string      `json:"action_type" required:"true" fixed:"true" doc:"What is done." zh:"执行的操作。"`
	Data       node.Object `json:"data" doc:"An object with further fields of this node, in older files. Those that are written beside it win." zh:"其他字段：旧文件中含有本节点其他字段的对象；与之并列的字段优先。"`
}

// Operation implements the constraint of [Define].
func (f Fields) Operation() string { return f.ActionType }

// Optional stands in the place of [Fields] for a kind that also knows what to do when no operation is named: a model of its
// llm_profile chooses.
type Optional struct {
	_ struct{} `empty:"absent"`

	ActionType string      `json:"action_type" fixed:"true" doc:"What is done. Where llm_profile is set and this is not, the model chooses." zh:"操作：执行的操作；未设置而设置了 llm_profile 时由模型决定。"`
	Data       node.Object `json:"data" doc:"An object with further fields of this node, in older files. Those that are written beside it win." zh:"其他字段：旧文件中含有本节点其他字段的对象；与之并列的字段优先。"`
}

// Operation implements the constraint of [Define].
func (f Optional) Operation() string { return f.ActionType }

// Operation is one thing that a kind can do in its service. C is the configuration of the kind, O its result.
type Operation[C, O any] struct {
	Name string
	// Also are further names of it, for files of older versions.
	Also   []string
	Effect workflow.Effect
	// EffectOf, when it is set, takes the place of Effect where the configuration decides. What only the input brings is not known yet when
	// a node is planned.
	EffectOf func(cfg C) workflow.Effect
	// Lists says that it reads limit and cursor, see [Paging].
	Lists bool
	// Needs are the fields that must be set, by the configuration or by the input. "a|b" needs one of them.
	Needs []string
	Do    func(ctx context.Context, call *node.Call, cfg C) (O, error)
	// Inquire, when it is set, asks the service whether a call whose answer was lost has arrived: see [node.Kind].
	Inquire func(ctx context.Context, call *node.Call, cfg C) (out O, found bool, err error)
}

// Define makes a kind of its operations. C is a struct that embeds [Fields]; its tags say what a field is for, and which operations
// read it by the tag with.
func Define[C interface{ Operation() string }, O any](about node.About, operations []Operation[C, O],
	plan ...func(p *node.Planning, cfg *C)) node.Kind {
	s := newSet(operations)
	about.Values, about.Legacy = map[string][]string{actionType: s.names}, map[string][]string{actionType: s.older}
	if len(s.lists) > 0 {
		about.Beside = map[string][]node.Condition{}
		for _, name := range pagingFields() {
			about.Beside[name] = []node.Condition{{Field: actionType, Values: s.lists}}
		}
	}
	about.Inputs = append(slices.DeleteFunc(node.ValuesOf[C](), func(v node.Value) bool { return v.Name == actionType }),
		node.Meaning("*", "Whatever the placeholders of the configurations name.", "配置中占位符所引用的内容。"))
	k := node.Define(about, func(ctx context.Context, call *node.Call, _ C, _ json.RawMessage) (out O, err error) {
		o, cfg, err := s.readOperation(call)
		if err != nil {
			return out, err
		}
		if out, err = o.Do(ctx, call, cfg); err != nil {
			return out, Failed(err, o.effect(cfg) == workflow.Once)
		}
		return out, nil
	}, append(plan, s.plan)...)
	k.Run = pausing(s.spelled(k.Run))
	k.InputSchema = inputSchema(node.SchemaOf[C](about.Name))
	if s.inquires {
		k.Inquire = s.spelled(s.inquire)
	}
	return node.Reads[C](k)
}

const actionType = "action_type"

// inputSchema is the schema of a configuration as that of an input, which brings fields and does not choose what is done.
func inputSchema(config node.SchemaSource) node.SchemaSource {
	return sync.OnceValue(func() json.RawMessage {
		out, err := sjson.DeleteBytes(config.JSON(), "properties."+actionType)
		if err == nil {
			out, err = sjson.DeleteBytes(out, "required")
		}
		if err != nil {
			panic(err) // it is a schema that was just written
		}
		return out
	})
}

// set are the operations of a kind.
type set[C interface{ Operation() string }, O any] struct {
	names    []string
	older    []string
	lists    []string
	byName   map[string]*Operation[C, O]
	fields   []string
	readBy   map[string][]string // the operations that look at a field; all of them when there is no entry
	inquires bool
}

func newSet[C interface{ Operation() string }, O any](operations []Operation[C, O]) *set[C, O] {
	s := &set[C, O]{byName: map[string]*Operation[C, O]{}, readBy: map[string][]string{}}
	s.fields = fieldsOf(reflect.TypeFor[C](), s.readBy)
	for i := range operations {
		o := &operations[i]
		for _, need := range o.Needs {
			for field := range strings.SplitSeq(need, "|") {
				if !slices.Contains(s.fields, field) {
					panic(fmt.Sprintf("action: %s needs %q, which %s does not have", o.Name, field, reflect.TypeFor[C]()))
				}
			}
		}
		s.names, s.older = append(s.names, o.Name), append(s.older, o.Also...)
		for _, name := range append([]string{o.Name}, o.Also...) {
			s.byName[name] = o
		}
		s.inquires = s.inquires || o.Inquire != nil
		if o.Lists {
			s.lists = append(append(s.lists, o.Name), o.Also...)
		}
	}
	if len(s.lists) > 0 {
		for _, name := range pagingFields() {
			s.readBy[name] = s.lists
		}
	}
	return s
}

// fieldsOf are the names of a configuration's fields. Which operations look at them is added to readBy.
func fieldsOf(t reflect.Type, readBy map[string][]string) (names []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			names = append(names, fieldsOf(f.Type, readBy)...)
		case name != "" && name != "-":
			names = append(names, name)
			if operations, ok := strings.CutPrefix(f.Tag.Get("with"), actionType+"="); ok {
				readBy[name] = strings.Split(operations, "|")
			}
		}
	}
	return names
}

func (s *set[C, O]) plan(p *node.Planning, cfg *C) {
	if o := s.byName[(*cfg).Operation()]; o != nil {
		p.Effect = o.effect(*cfg)
	}
	p.Value("data").ForEach(func(key, _ gjson.Result) bool {
		if !slices.Contains(s.fields, shape.Snake(key.Str)) {
			p.Warn(node.ProblemDropped, node.Under(p.At("data"), key.Str), "%q is not known here and is ignored; remove it%s", key.Str, p.Suggest(key.Str, s.fields))
		}
		return true
	})
}

// spelled runs with a configuration whose fields have the names of today, also inside of data: files may write them in camel case.
func (s *set[C, O]) spelled(run runs) runs {
	return func(ctx context.Context, call *node.Call) (node.Outcome, error) {
		config, err := Spelled(call.Config)
		if err != nil {
			return nil, err
		}
		inner := *call
		inner.Config = config
		return run(ctx, &inner)
	}
}

type runs = func(ctx context.Context, call *node.Call) (node.Outcome, error)

// Spelled is a configuration with the names of its fields, and of those inside of data, in snake case. Where a field is there in
// both spellings, the one in snake case counts.
func Spelled(config json.RawMessage) (json.RawMessage, error) {
	fields := Named(config)
	if data := fields["data"]; values.IsObject(data) {
		inner, err := payload.Encode(Named(data))
		if err != nil {
			return nil, err
		}
		fields["data"] = inner
	}
	return payload.Encode(fields)
}

// Named are the fields of an object by their names in snake case.
func Named(object json.RawMessage) map[string]json.RawMessage {
	fields := map[string]json.RawMessage{}
	for _, m := range values.Members(object) {
		name := shape.Snake(m.Key)
		if before := fields[name]; name == m.Key || payload.IsNull(before) || string(before) == `""` {
			fields[name] = m.Value
		}
	}
	return fields
}

// effect is the class of the operation with a configuration.
func (o *Operation[C, O]) effect(cfg C) workflow.Effect {
	if o.EffectOf != nil {
		return o.EffectOf(cfg)
	}
	return o.Effect
}

// readOperation reads what a node does, and with what.
func (s *set[C, O]) readOperation(call *node.Call) (*Operation[C, O], C, error) {
	filled, brought, err := s.filled(call)
	if err != nil {
		var none C
		return nil, none, err
	}
	cfg, err := node.Configuration[C](filled)
	if err != nil {
		return nil, cfg, fromInput(err, brought)
	}
	o := s.byName[cfg.Operation()]
	if o == nil {
		return nil, cfg, fault.Newf(fault.Unsupported, "%s has no action_type %q; it has %s", call.Kind, cfg.Operation(), strings.Join(s.names, ", ")).
			With("path", "configurations."+actionType)
	}
	given := gjson.ParseBytes(filled)
	for _, need := range o.Needs {
		fields := strings.Split(need, "|")
		if !slices.ContainsFunc(fields, func(name string) bool { return present(given.Get(escaped(name))) }) {
			return nil, cfg, fault.Newf(fault.InvalidInput, "%s needs %s: set it in the configurations, or let the input bring it", o.Name, strings.Join(fields, " or ")).
				With("path", fields[0])
		}
	}
	return o, cfg, nil
}

// filled is the configuration with what it leaves empty taken from the input, and the names of the fields that were.
func (s *set[C, O]) filled(call *node.Call) (filled json.RawMessage, brought []string, err error) {
	config := gjson.ParseBytes(call.Config)
	input := gjson.ParseBytes(call.Input)
	sources := []gjson.Result{config, config.Get("data"), input, input.Get("data")}
	operation := config.Get(actionType).Str
	out := map[string]json.RawMessage{}
	for _, name := range s.fields {
		for i, source := range sources {
			value := source.Get(escaped(name))
			if name == actionType && i > 0 || name == "data" || !source.IsObject() || !present(value) {
				continue
			}
			if readers := s.readBy[name]; i > 1 && readers != nil && operation != "" && !slices.Contains(readers, operation) {
				continue
			}
			out[name] = json.RawMessage(value.Raw)
			if i > 1 {
				brought = append(brought, name)
			}
			break
		}
	}
	filled, err = payload.Encode(out)
	return filled, brought, err
}

// present says that a field is set: the empty text stands for nothing.
func present(v gjson.Result) bool {
	return v.Exists() && v.Type != gjson.Null && !(v.Type == gjson.String && v.Str == "")
}

// escaped is a name as a path of one step.
func escaped(name string) string { return gjson.Escape(name) }

// fromInput says of what is wrong with a field that the input has brought it.
func fromInput(err error, brought []string) error {
	f := fault.From(err)
	path, _ := f.Details["path"].(string)
	inner, ok := strings.CutPrefix(path, "configurations.")
	if top, _, _ := strings.Cut(inner, "."); !ok || !slices.Contains(brought, top) {
		return err
	}
	return fault.Newf(fault.InvalidInput, "the input brings a value that does not fit: %s", f.Message).With("path", inner)
}

// inquire asks the service what became of a call.
func (s *set[C, O]) inquire(ctx context.Context, call *node.Call) (node.Outcome, error) {
	unable := func(o *Operation[C, O]) error {
		return fault.Newf(fault.Unsupported, "the service cannot be asked what became of %s", o.Name)
	}
	if o := s.byName[gjson.GetBytes(call.Config, actionType).Str]; o != nil && o.Inquire == nil {
		return nil, unable(o) // whatever else is wrong with it
	}
	o, cfg, err := s.readOperation(call)
	if err != nil {
		return nil, err
	}
	if o.Inquire == nil {
		return nil, unable(o)
	}
	out, found, err := o.Inquire(ctx, call, cfg)
	if err != nil || !found {
		return nil, err
	}
	return node.Succeed(out)
}
