package node

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"tandem/text"
)

// Value is a field of what goes into a node or comes out of it.
type Value struct {
	// Name is a path: "results[].title". "*" stands for whatever else there is.
	Name    string
	Meaning Text
}

// Meaning is a field of an input or an output, and what it means.
func Meaning(name, en, zh string) Value { return Value{Name: name, Meaning: Says(en, zh)} }

// HandedOn stands for the fields of the input that are also fields of the output.
func HandedOn() Value {
	return Meaning("*", "Whatever else the input has.", "输入的其余内容。")
}

// HandsOn are the inputs of a kind that returns whatever it gets.
func HandsOn() []Value {
	return []Value{Meaning("*", "Anything; it is handed on.", "任意内容，将原样传递。")}
}

// Example is a node of a kind as it may be part of a workflow, with its output. References print it, and a test runs it.
type Example struct {
	// Shows says what it is an example of, in a sentence.
	Shows Text
	// Config are the configurations, Input is what the node gets, both as JSON objects. Also is what further connections bring, for kinds
	// that join them. The body of a kind that runs one is a node that returns its input.
	Config string
	Input  string
	Also   []string
	// Replies are what those who are asked reply, in turn: a model in words, a service or a tool with a text or JSON, a person with an
	// answer.
	Replies []string
	// Output is what comes out, as a JSON object of payloads by output key. The text "…" stands for a value that differs from run to run,
	// and a payload that is the text "same as KEY" for one that is the same as that of another key.
	Output string
}

// SameAs is the beginning of a payload in an [Example] that is the same as that of another key.
const SameAs = "same as "

// ValuesOf are the fields of a type of input or output whose tags doc and zh say what they mean. Those of structs inside follow with a
// path.
func ValuesOf[T any]() []Value { return valuesOf("", reflect.TypeFor[T](), nil) }

func valuesOf(prefix string, t reflect.Type, above []reflect.Type) []Value {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || slices.Contains(above, t) || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return nil
	}
	var list []Value
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || !f.IsExported() || name == "" || name == "-" || f.Tag.Get("doc") == "" {
			continue
		}
		list = append(list, Value{Name: prefix + name, Meaning: text.Beside(f.Tag.Get("doc"), f.Tag.Get(text.Chinese))})
		inner, below := f.Type, prefix+name
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			if inner.Kind() == reflect.Slice {
				below += "[]"
			}
			inner = inner.Elem()
		}
		list = append(list, valuesOf(below+".", inner, append(slices.Clone(above), t))...)
	}
	return list
}

// described adds to the description of a kind what the types of its input and of its result say.
func (a About) described(input, output reflect.Type) About {
	if input != nil {
		a.Inputs = append(valuesOf("", input, nil), a.Inputs...)
	}
	if output == nil {
		return a
	}
	if a.Keys = slices.Clone(a.Keys); len(a.Keys) == 0 {
		return a
	}
	for i := range a.Keys {
		if k := &a.Keys[i]; k.Name == "result" && k.Fields == nil {
			k.Fields = valuesOf("", output, nil)
		}
	}
	return a
}
