// Package importertest is what every reader of files of another system must do. Only tests import it.
package importertest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tandem/importer"
	"tandem/workflow"
)

// kinds takes every kind for one that exists, and says nothing of its configuration.
type kinds struct{}

func (kinds) Kind(name string) (workflow.Kind, bool) {
	return workflow.Kind{Name: name, Plan: func(*workflow.Node) (workflow.Plan, []workflow.Problem) { return workflow.Plan{}, nil }}, strings.Contains(name, ".")
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

// Conform tries a reader on files of its own: it takes them, its report counts every node of the file, every node that it makes is told of once, what is not
// kept says why, and the same file always gives the same workflow. What is no such file it leaves alone.
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
			if err != nil || string(workflow.Encode(again.Workflows[0].Definition)) != string(workflow.Encode(got.Workflows[0].Definition)) {
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
