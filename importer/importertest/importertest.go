// Package importertest is what every reader of files of another system must do. Only tests import it.
package importertest

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tandem/importer"
	"tandem/payload"
	"tandem/workflow"
)

// kinds takes every kind for one that exists, and says nothing of its configuration.
type kinds struct{}

func (kinds) Kind(name string) (workflow.Kind, bool) {
	return workflow.Kind{Name: name, Plan: func(*workflow.Node) (workflow.Plan, []workflow.Problem) { return workflow.Plan{}, nil }},
		strings.Contains(name, ".")
}

func (kinds) Names() []string { return []string{"EXTERNAL_ACTION.SLACK", "FLOW.IF", "FLOW.SWITCH"} }

func (kinds) Alias(typ, subtype string) (string, bool) {
	kind, ok := map[string]string{"START": "TRIGGER.MANUAL", "END": "CALL.EMPTY", "CHOICE": "FLOW.SWITCH", "EMPTY": "CALL.EMPTY"}[typ]
	return kind, ok && subtype == ""
}

// Options are those of an import by some systems, which checks the form of what comes out.
func Options(systems ...importer.System) importer.Options {
	return importer.Options{Systems: systems, Kinds: kinds{}, Language: "en", Check: func(definition []byte) []workflow.Problem {
		_, problems := workflow.Parse(definition, workflow.Options{})
		return problems
	}}
}

// files are the files of a pattern.
func files(t testing.TB, pattern string) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("%v: no file %s", err, pattern)
	}
	out := map[string][]byte{}
	for _, name := range names {
		if out[name], err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// Conform tries a reader on files of its own: it takes them, its report counts every node of the file, every node that it makes is told of
// once, what is not kept says why, and the same file always gives the same workflow. It leaves other files alone.
func Conform(t *testing.T, system importer.System, pattern string) {
	t.Helper()
	for name, content := range files(t, pattern) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			got, err := importer.Import(name, content, Options(system))
			if err != nil || got.System != system.Name() || len(got.Workflows) != 1 {
				t.Fatalf("%+v, %v", got, err)
			}
			check(t, &got.Workflows[0])
			again, err := importer.Import(name, content, Options(system))
			if err != nil ||
				string(workflow.Encode(again.Workflows[0].Definition)) != string(workflow.Encode(got.Workflows[0].Definition)) {
				t.Errorf("the same file gives another workflow: %v", err)
			}
		})
	}
	for name, content := range map[string]string{"Empty": "", "Broken": "{", "Strange": `{"a": 1}`, "List": "[]", "Number": "7"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := importer.Import("x.json", []byte(content), Options(system)); err == nil {
				t.Errorf("%q is taken: %+v", content, got)
			}
		})
	}
}

// Hostile gives a reader files that mean it ill, made of those of its own: everything nested deeply, every value of a wrong type, thousands
// of nodes, and connections in circles. It may refuse them, and must come back either way; what it takes it tells of as always.
func Hostile(t *testing.T, system importer.System, pattern string) {
	t.Helper()
	for name, content := range files(t, pattern) {
		raw, problems := workflow.ToJSON(content, workflow.Options{})
		if raw == nil {
			t.Fatalf("%s: %v", name, problems)
		}
		for how, change := range map[string]func(v any) any{
			"Nested": func(v any) any { return nested(v, 200) }, "Wrong": wrong, "Empty": func(any) any { return nil },
			"Many": func(v any) any { return many(v, 60) }, "Circles": circles,
		} {
			t.Run(filepath.Base(name)+"/"+how, func(t *testing.T) {
				t.Parallel()
				decoded, err := payload.Decode(raw)
				if err != nil {
					t.Fatal(err)
				}
				for _, changed := range variants(decoded, change) {
					hostile, err := payload.Encode(changed)
					if err != nil {
						t.Fatal(err)
					}
					got, err := importer.Import("hostile.json", hostile, Options(system))
					if err != nil {
						continue // refused
					}
					for i := range got.Workflows {
						check(t, &got.Workflows[i])
					}
				}
			})
		}
	}
}

// variants are copies of a value in each of which one field of an object, at any depth, is changed.
func variants(v any, change func(any) any) (out []any) {
	switch in := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(in)) {
			with := func(value any) any {
				copied := maps.Clone(in)
				copied[name] = value
				return copied
			}
			out = append(out, with(change(in[name])))
			for _, inner := range variants(in[name], change) {
				out = append(out, with(inner))
			}
		}
	case []any:
		for i := range in {
			for _, inner := range variants(in[i], change) {
				copied := slices.Clone(in)
				copied[i] = inner
				out = append(out, copied)
			}
		}
	}
	return out
}

// nested puts a value below so many objects and lists.
func nested(v any, depth int) any {
	for i := range depth {
		if i%2 == 0 {
			v = []any{v}
		} else {
			v = map[string]any{"value": v}
		}
	}
	return v
}

// wrong is a value of another type.
func wrong(v any) any {
	switch v.(type) {
	case map[string]any:
		return []any{json.Number("1"), nil, "x"}
	case []any:
		return map[string]any{"0": "x"}
	case string:
		return json.Number("-1e400")
	}
	return "={{ $json['"
}

// many is a list with its items so many times; anything else stays.
func many(v any, times int) any {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		return v
	}
	return slices.Repeat(list, times/len(list)+1)
}

// circles connects everything that a value names with everything.
func circles(v any) any {
	object, ok := v.(map[string]any)
	if !ok {
		return v
	}
	all := []any{}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		all = append(all, map[string]any{"node": name, "type": "main", "index": json.Number("0")})
	}
	out := map[string]any{}
	for name := range object {
		out[name] = map[string]any{"main": []any{all}, "ai_tool": []any{all}}
	}
	return out
}

// check looks at what was made of a file.
func check(t testing.TB, w *importer.Workflow) {
	t.Helper()
	if !w.Report.Valid || w.Report.Kept+w.Report.Approximated+w.Report.Missing != len(w.Report.Nodes) || len(w.Report.Nodes) == 0 {
		t.Errorf("report %+v", w.Report)
	}
	told := map[string]int{}
	for _, n := range w.Report.Nodes {
		for _, id := range n.NodeIDs {
			told[id]++
		}
		if n.Fidelity != "kept" && len(n.Notes) == 0 {
			t.Errorf("%s is %s, and nothing says why", n.Name, n.Fidelity)
		}
	}
	for _, n := range w.Definition.Nodes {
		if told[n.ID] != 1 {
			t.Errorf("the node %q is told of %d times", n.ID, told[n.ID])
		}
	}
}

// Fuzz gives a reader files that nobody has written.
func Fuzz(f *testing.F, system importer.System, pattern string) {
	f.Helper()
	for _, content := range files(f, pattern) {
		f.Add(content)
	}
	f.Add([]byte(`{"nodes":[{"type":"n8n-nodes-base.set","name":"a","parameters":{"x":"={{ $json.a"}}],"connections":{"a":{"main":[[{"node":"a"}]]}}}`))
	o := Options(system)
	f.Fuzz(func(t *testing.T, content []byte) {
		if len(content) > 1<<16 {
			return
		}
		got, err := importer.Import("f", content, o)
		if err != nil {
			return // no file of the system
		}
		for i := range got.Workflows {
			check(t, &got.Workflows[i])
		}
	})
}
