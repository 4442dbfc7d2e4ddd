package tandem_test

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

// kindName is how the name of a kind of node is written, or the type that such names begin with. read-only
var kindName = regexp.MustCompile("^[\"`](TRIGGER|AI_AGENT|ACTION|EXTERNAL_ACTION|FLOW|HUMAN_IN_THE_LOOP|TOOL|MEMORY|CALL)\\.[A-Z_]*[\"`]$")

// knowKinds are the files outside of the packages of kinds that name some, and why. What a part has to know of a kind is one of its traits
// or stands in its description; so this list may only become shorter. read-only
var knowKinds = map[string]string{
	"agent/spec.go":          "agents are kept as workflows with a node of this kind; the package of the kind takes the name from here",
	"dataflow/sync.go":       "the type of triggers; dataflow and workflow, which has the types, do not know each other, and a test in node compares them",
	"node/filling.go":        "journals and metrics name the step that fills inputs by it; the package of the kind takes the name from here",
	"host/hosttest/kinds.go": "the kinds that a host is tested with",
	"store/storetest":        "records of triggers, as tests write them",
	"importer":               "writes workflows of other systems in kinds",
	"importer/importertest":  "kinds that importers are tested with",
	"cmd/import-report":      "what stands for services while imported workflows run",
	"importer/dify":          "writes workflows of other systems in kinds",
	"importer/n8n":           "writes workflows of other systems in kinds",
	"importer/seed":          "writes workflows of other systems in kinds",
}

// ownNames are names of kinds that are stated in one place of the whole module, their own packages included. read-only
var ownNames = map[string]string{`"CALL.TASK"`: "agent/spec.go", `"CALL.SLOT"`: "node/filling.go"}

// TestKindNames: what a part of the program has to know of a kind, the kind says (About.Traits and its other fields). No part knows kinds
// by their names, except for those that are listed with a reason.
func TestKindNames(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for _, dir := range packageDirs(t, ".") {
		kinds := strings.HasPrefix(dir, "builtin/") || strings.HasPrefix(dir, "integration/") || strings.HasPrefix(dir, "llm/") || dir == "examples" || dir == "bench" // and what is not part of the program
		fset := token.NewFileSet()
		for _, f := range parseDir(t, fset, dir) {
			if f.test {
				continue
			}
			ast.Inspect(f.ast, func(n ast.Node) bool {
				lit, ok := n.(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING || !kindName.MatchString(lit.Value) {
					return true
				}
				file := dir + "/" + f.name
				found[file], found[dir] = true, true
				if own := ownNames[lit.Value]; own != "" && own != file {
					t.Errorf("%s: the kind %s is named in %s; take the name from there", fset.Position(lit.Pos()), lit.Value, own)
				}
				if !kinds && knowKinds[file] == "" && knowKinds[dir] == "" {
					t.Errorf("%s knows the kind %s by its name; let the kind say what has to be known (About.Traits)", fset.Position(lit.Pos()), lit.Value)
				}
				return true
			})
		}
	}
	for file := range knowKinds {
		if !found[file] {
			t.Errorf("%s names no kind any more; take it out of the list", file)
		}
	}
}
