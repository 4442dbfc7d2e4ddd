package handed

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"tandem/expr"
	"tandem/payload"
)

// A function is given a large field unless its text tells that it does not read it.
func TestCodeReads(t *testing.T) {
	t.Parallel()
	given := []payload.Member{{Key: "doc"}, {Key: "id"}}
	for _, c := range []struct {
		language, source string
		doc              bool // may be read
	}{
		{"python", "lambda d: {'id': d['id']}", false},
		{"python", "lambda d: {'id': d.get(\"id\", 0)}", false},
		{"python", "import json\nfrom typing import Any\n\n# makes it\ndef convert(input_data: Dict[str, Any]) -> Dict[str, Any]:\n    rows = [r for r in input_data['id']]\n    return {\n        'a': sorted(rows, key=lambda r: r['n']),\n    }\n", false},
		{"python", "def convert(d):\n    return {'名': d['id']}", false},
		{"python", "lambda d: d['doc']", true},
		{"python", "lambda d: d.get('doc')", true},
		{"python", "lambda d: d", true},
		{"python", "lambda d: {**d, 'x': 1}", true},
		{"python", "lambda d: len(d)", true},
		{"python", "lambda d: 'doc' in d", true},
		{"python", "lambda d: d[k]", true},
		{"python", "lambda d: d['data']", true},
		{"python", "lambda d: f'{d}'", true},
		{"python", "lambda d: d['do' 'c']", true},
		{"python", "lambda d: locals()", true},
		{"python", "lambda d: eval('dd'[1:])", true},
		{"python", "lambda d: (x for x in []).gi_frame.f_back.f_locals", true},
		{"python", "lambda d: ｄ", true},
		{"python", "lambda d, e=1: d['id']", true},
		{"python", "lambda *d: 1", true},
		{"python", "def a(d):\n  return d['id']\ndef b(e):\n  return e", true},
		{"python", "def a(d):\n  return d['id']\nb = lambda e: e", true},
		{"python", "x = 1\ndef a(d):\n  return d['id']", true},
		{"python", "def a(d):\n  e = d\n  return e['doc']", true},
		{"javascript", "d => ({id: d.id})", false},
		{"javascript", "(d) => d.id.map(x => x.n)", false},
		{"javascript", "function main(d) { return {id: d['id'], n: `${d.id}`} }", false},
		{"javascript", "d => d?.id;", false},
		{"javascript", "d => d.doc", true},
		{"javascript", "d => ({...d, x: 1})", true},
		{"javascript", "({doc}) => doc", true},
		{"javascript", "d => Object.keys(d)", true},
		{"javascript", "d => d.hasOwnProperty ('doc')", true},
		{"javascript", "d => d[k]", true},
		{"javascript", "d => d['data']", true},
		{"javascript", "d => { const {doc} = d; return doc }", true},
		{"javascript", "function a() { return arguments[0] }", true},
		{"javascript", "function a(d) { return arguments[0] }", true},
		{"javascript", "d => \\u0064", true},
		{"javascript", "function a(d) { return d.id } function b(e) { return e }", true},
		{"javascript", "function a(d) { return d.id }\nb = e => e", true},
		{"javascript", "d => d.id; e => e", true},
		{"javascript", "d => { with (d) { return doc } }", true},
		{"expression", "id", true},
	} {
		f := Script(c.language, c.source)
		reads := f.reads(given)
		if doc := reads == nil || reads("doc"); doc != c.doc {
			t.Errorf("%s: may read doc: %t, want %t", c.source, doc, c.doc)
		}
		if reads != nil && !c.doc && !reads("id") {
			t.Errorf("%s: does not read id", c.source)
		}
	}
}

// What a function hands on as it was is kept beside what it has made, in the memory of what it was given.
func TestFunction_Give(t *testing.T) {
	t.Parallel()
	doc, other := payload.Quote(strings.Repeat("x", MinShared)), payload.Quote(strings.Repeat("y", MinShared))
	given := []payload.Member{{Key: "doc", Value: doc}, {Key: "id", Value: json.RawMessage("1")}, {Key: "other", Value: other}}
	all := string(payload.AppendObject(nil, given))
	expression := func(source string) Function {
		program, err := expr.Compile(source)
		if err != nil {
			t.Fatal(err)
		}
		return Expression(program)
	}
	for _, c := range []struct {
		name          string
		function      Function
		object, value string
		want          string
		parts         []string
	}{
		{"handed on unseen", expression("{a: id, b: doc}"), `{"doc":null,"id":1}`, `{"a":1,"b":null}`, `{"a":1,"b":` + string(doc) + `}`, []string{"b"}},
		{"handed on and read", expression("{a: len(doc), b: doc}"), `{"doc":` + string(doc) + `,"id":1}`, `{"a":3,"b":` + string(doc) + `}`, `{"a":3,"b":` + string(doc) + `}`, []string{"b"}},
		{"read by another name", expression("{a: data.doc}"), `{"doc":` + string(doc) + `,"id":1}`, `{"a":1}`, `{"a":1}`, nil},
		{"read as a whole", expression("{a: data, b: id}"), all, `{"a":` + all + `,"b":1}`, `{"a":` + all + `,"b":1}`, nil},
		{"what is not there", expression("{a: data.nothing}"), all, `{"a":null}`, `{"a":null}`, nil},
		{"no object", expression("doc"), `{"doc":` + string(doc) + `,"id":1}`, string(doc), string(doc), nil},
		{"by code", Script("python", "lambda d: {'a': d['id']}"), `{"id":1}`, `{"a":1}`, `{"a":1}`, nil},
		{"all by code", Script("python", "lambda d: {**d, 'id': 2}"), all, `{"doc":` + string(doc) + `,"id":2,"other":` + string(other) + `}`, `{"doc":` + string(doc) + `,"id":2,"other":` + string(other) + `}`, []string{"doc", "other"}},
		{"changed by code", Script("python", "lambda d: {**d, 'doc': 2}"), all, `{"doc":"` + strings.Repeat("z", MinShared) + `"}`, `{"doc":"` + strings.Repeat("z", MinShared) + `"}`, nil},
	} {
		object, result := c.function.Give(given)
		if string(object) != c.object {
			t.Errorf("%s: given %.200s", c.name, object)
		}
		rest, parts := result(json.RawMessage(c.value))
		if got := payload.Join(rest, parts); string(got) != c.want {
			t.Errorf("%s: made %.200s of %d bytes, want %d", c.name, got, len(got), len(c.want))
		}
		var keys []string
		for _, p := range parts {
			keys = append(keys, p.Key)
			if &p.Value[0] != &doc[0] && &p.Value[0] != &other[0] {
				t.Errorf("%s: %s is a copy", c.name, p.Key)
			}
		}
		if !slices.Equal(keys, c.parts) {
			t.Errorf("%s: beside it are %q, want %q", c.name, keys, c.parts)
		}
	}
}
