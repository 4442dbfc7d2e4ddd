package tandem_test

import (
	"go/ast"
	"go/token"
	"slices"
	"testing"
)

// TestComments: every exported function and type, and every exported method of such a type, says what it is for. Suites need not.
func TestComments(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, dir := range packageDirs(t, ".") {
		if f, _ := floorOf(floors(), dir); f.suite {
			continue // for tests alone
		}
		fset := token.NewFileSet()
		for _, f := range parseDir(t, fset, dir) {
			if f.test {
				continue
			}
			for _, d := range f.ast.Decls {
				for _, name := range undocumented(d, &seen) {
					t.Errorf("%s: %s has no comment; say what it is for and what it promises", fset.Position(name.Pos()), name.Name)
				}
			}
		}
	}
	if seen < 2000 {
		t.Errorf("only %d exported names were looked at", seen)
	}
}

// undocumented are the exported names of a declaration that have no comment. Methods that implement something of the standard library
// need none.
func undocumented(d ast.Decl, seen *int) []*ast.Ident {
	var list []*ast.Ident
	look := func(name *ast.Ident, comments ...*ast.CommentGroup) {
		if !name.IsExported() {
			return
		}
		*seen++
		if !slices.ContainsFunc(comments, func(c *ast.CommentGroup) bool { return c != nil }) {
			list = append(list, name)
		}
	}
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil || receiver(d).IsExported() && !slices.Contains(standardMethods(), d.Name.Name) {
			look(d.Name, d.Doc)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			if t, ok := s.(*ast.TypeSpec); ok {
				look(t.Name, d.Doc, t.Doc, t.Comment)
			}
		}
	}
	return list
}

func standardMethods() []string {
	return []string{"Error", "Unwrap", "Is", "String", "Close", "MarshalJSON", "UnmarshalJSON", "Read", "Write", "Len", "Less", "Swap", "Defaults"}
}

// receiver is the type that a method belongs to.
func receiver(d *ast.FuncDecl) *ast.Ident {
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x
		default:
			return &ast.Ident{Name: "_"}
		}
	}
}
