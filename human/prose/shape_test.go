package prose_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// mostBranches is how many ways through a function there may be.
const mostBranches = 24

// TestSmallFunctions keeps the reader a number of small functions: what is many is data, in files.
func TestSmallFunctions(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				if n := branches(f); n > mostBranches {
					t.Errorf("%s in %s has %d branches, more than %d", f.Name.Name, e.Name(), n, mostBranches)
				}
			}
		}
	}
}

// branches is the cyclomatic complexity of a function.
func branches(f *ast.FuncDecl) int {
	n := 1
	ast.Inspect(f, func(node ast.Node) bool {
		switch x := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			if x.List != nil {
				n++
			}
		case *ast.BinaryExpr:
			if x.Op == token.LAND || x.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}
