package payload_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// byHand are the files that may use the decoder and the encoder of encoding/json by themselves, or read JSON into a value that takes
// anything, and why. Everything else goes through this package, so that there is one rule for digits, order, escapes and what follows a
// value.
var byHand = map[string]string{ // read-only
	"doctor/doctor.go":                    "a small answer, bounded, of which one field is read",
	"mcp/authorize.go":                    "a small answer, bounded, of which one field is read",
	"llm/fingerprint.go":                  "written into a hash, whose bytes must never change",
	"builtin/code/script_linux.go":        "a stream between a process and who watches it",
	"builtin/code/script_warden_linux.go": "a stream between a process and who watches it",
	"cmd/tandem/bench.go":                 "measurements, a line each",
	"cmd/tandem/bench_scale.go":           "measurements, a line each",
	"node/handed/handed.go":               "numbers are the same where no language can tell them apart",
	"sandbox/python.go":                   "a list of what to read into, each with a type of its own",
	"settings/profile_check.go":           "what checks the value wants numbers of Go",
	"story/event_execution.go":            "facts of an error, which journals have as numbers of Go",
	"text/stored.go":                      "it is on the same floor as this package",
}

// measures says that a file is of the measurements, whose requests are as small as they can be.
func measures(file string) bool {
	return strings.HasPrefix(file, "bench/") || strings.HasPrefix(file, "benchmark/")
}

// TestOneReaderAndWriter: nobody else reads or writes JSON by hand.
func TestOneReaderAndWriter(t *testing.T) {
	t.Parallel()
	files, unused := 0, maps.Clone(byHand)
	err := filepath.WalkDir("..", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if base := entry.Name(); base == "testdata" || base == "node_modules" || base != ".." && strings.HasPrefix(base, ".") {
				return fs.SkipDir
			}
			return nil
		}
		file := filepath.ToSlash(strings.TrimPrefix(name, "../"))
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "payload/") || measures(file) {
			return nil
		}
		files++
		fset := token.NewFileSet()
		tree, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		suite := strings.HasSuffix(path.Dir(file), "test") // what it reads into anything is its own data
		for _, use := range handwritten(tree) {
			if _, known := byHand[file]; known {
				delete(unused, file)
			} else if !suite || !use.loose {
				t.Errorf("%s: %s; use payload.Decode, Read, ReadKnown, Encode or Marshal, or say in byHand why not", fset.Position(use.at), use.what)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range slices.Sorted(maps.Keys(unused)) {
		t.Errorf("%s reads and writes nothing by hand any more; take it out of the list", file)
	}
	if files < 300 {
		t.Errorf("only %d files were looked at", files)
	}
}

// TestOneReaderAndWriter_Cases: the rule sees what it is for.
func TestOneReaderAndWriter_Cases(t *testing.T) {
	t.Parallel()
	const imports = "package a\nimport \"encoding/json\"\n"
	for code, want := range map[string]int{
		imports + `var d = json.NewDecoder(r)`:                                                          1,
		imports + `var e = json.NewEncoder`:                                                             1,
		"package a\nimport j \"encoding/json\"\nvar d = j.NewDecoder(r)":                                1,
		"package a\nimport . \"encoding/json\"":                                                         1,
		"package a\nimport \"encoding/json/v2\"":                                                        1,
		imports + `func f() { var v any; json.Unmarshal(raw, &v) }`:                                     1,
		imports + `func f() { var v, w map[string]any; json.Unmarshal(raw, &w) }`:                       1,
		imports + `func f() { v := map[string]any{}; json.Unmarshal(raw, &v) }`:                         1,
		imports + `func f() { var v []any; if json.Unmarshal(raw, &v) != nil {} }`:                      1,
		imports + `func f() { var v interface{}; json.Unmarshal(raw, &v) }`:                             1,
		imports + `func f() { var v map[string]json.RawMessage; json.Unmarshal(raw, &v) }`:              0,
		imports + `func f() { var v struct{ A string }; json.Unmarshal(raw, &v) }`:                      0,
		imports + `func f() { var v any; _ = v }; func g() { var v struct{}; json.Unmarshal(raw, &v) }`: 0,
		`package a; import "tandem/payload"; func f() { var v any; payload.Read(raw, &v) }`:             0,
	} {
		tree, err := parser.ParseFile(token.NewFileSet(), "a.go", code, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if got := handwritten(tree); len(got) != want {
			t.Errorf("%s: %d; want %d", code, len(got), want)
		}
	}
}

// handUse is one place that reads or writes JSON by hand.
type handUse struct {
	at   token.Pos
	what string
	// loose says that it reads into a value that takes anything, which loses digits.
	loose bool
}

// handwritten lists the places of a file that read or write JSON by hand.
func handwritten(tree *ast.File) []handUse {
	var list []handUse
	name := ""
	for _, imported := range tree.Imports {
		from := strings.Trim(imported.Path.Value, `"`)
		switch {
		case from == "encoding/json" && imported.Name == nil:
			name = "json"
		case from == "encoding/json" && imported.Name.Name != ".":
			name = imported.Name.Name
		case from == "encoding/json", strings.HasPrefix(from, "encoding/json/"):
			list = append(list, handUse{at: imported.Pos(), what: "the import of " + from})
		}
	}
	if name == "" {
		return list
	}
	for _, decl := range tree.Decls {
		loose := map[string]bool{} // the variables that take anything
		ast.Inspect(decl, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.ValueSpec:
				for _, one := range x.Names {
					loose[one.Name] = anything(x.Type)
				}
			case *ast.AssignStmt:
				for n, value := range x.Rhs {
					literal, ok := value.(*ast.CompositeLit)
					if variable, named := x.Lhs[n].(*ast.Ident); ok && named {
						loose[variable.Name] = anything(literal.Type)
					}
				}
			case *ast.SelectorExpr:
				if pkg, ok := x.X.(*ast.Ident); ok && pkg.Name == name && (x.Sel.Name == "NewDecoder" || x.Sel.Name == "NewEncoder") {
					list = append(list, handUse{at: x.Pos(), what: "json." + x.Sel.Name})
				}
			case *ast.CallExpr:
				if intoAnything(x, name, loose) {
					list = append(list, handUse{at: x.Pos(), what: "json.Unmarshal into a value that takes anything", loose: true})
				}
			}
			return true
		})
	}
	return list
}

// intoAnything says that a call of the package of a name reads JSON into one of the variables.
func intoAnything(call *ast.CallExpr, name string, loose map[string]bool) bool {
	fun, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || fun.Sel.Name != "Unmarshal" || len(call.Args) != 2 {
		return false
	}
	pkg, ok := fun.X.(*ast.Ident)
	into, pointer := call.Args[1].(*ast.UnaryExpr)
	if !ok || pkg.Name != name || !pointer {
		return false
	}
	variable, ok := into.X.(*ast.Ident)
	return ok && loose[variable.Name]
}

// anything says that a type takes any value, or any values by name or in a list.
func anything(kind ast.Expr) bool {
	switch x := kind.(type) {
	case *ast.Ident:
		return x.Name == "any"
	case *ast.InterfaceType:
		return len(x.Methods.List) == 0
	case *ast.MapType:
		return anything(x.Value)
	case *ast.ArrayType:
		return anything(x.Elt)
	}
	return false
}
