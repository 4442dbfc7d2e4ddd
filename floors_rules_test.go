package tandem_test

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// reporter is told of every broken rule.
type reporter func(pos token.Pos, rule, text string)

// checkPackageName refuses names that say nothing about what a package is for.
func checkPackageName(dir string, files []source, report reporter) {
	names := []string{path.Base(dir)}
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.ast.Name.Name, "_test"))
	}
	for _, name := range names {
		bad := slices.Contains([]string{"common", "commons", "misc", "shared", "lib", "libs", "stuff", "base"}, name)
		for _, suffix := range []string{"util", "utils", "helper", "helpers", "manager", "managers"} {
			bad = bad || strings.HasSuffix(name, suffix)
		}
		if bad {
			report(files[0].ast.Package, "package_name", fmt.Sprintf("%q says nothing; name the package after what it is responsible for", name))
			return
		}
	}
}

// checkImports holds a file of package pkg to the floors. Tests obey them too, but may import their own package and
// the conformance suites.
func checkImports(table map[string]floor, pkg string, file source, report reporter) {
	own, _ := floorOf(table, pkg)
	for _, spec := range file.ast.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			report(spec.Pos(), "import", err.Error())
			continue
		}
		if name == module {
			report(spec.Pos(), "floor", "the module's root is not a package to import")
			continue
		}
		target, ours := strings.CutPrefix(name, module+"/")
		if !ours {
			continue
		}
		f, known := floorOf(table, target)
		switch {
		case !known:
			report(spec.Pos(), "unknown_package", fmt.Sprintf("%q has no floor; give it a line in floors()", target))
		case file.test && (target == pkg || f.suite):
		case f.suite && !own.suite:
			report(spec.Pos(), "suite", fmt.Sprintf("%q is a conformance suite; only tests and other suites may import it", target))
		case f.level >= own.level:
			report(spec.Pos(), "floor", fmt.Sprintf("%q is on floor %d and may not import %q on floor %d", pkg, own.level, target, f.level))
		}
	}
}

// checkGlobals refuses hidden start-up code and state that anybody could change. Tests may have tables.
func checkGlobals(files []source, report reporter) {
	for _, file := range files {
		if file.test {
			continue
		}
		for _, decl := range file.ast.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.Name == "init" {
					report(d.Pos(), "init", "no init functions; construct where it is needed")
				}
			case *ast.GenDecl:
				if d.Tok != token.VAR {
					continue
				}
				for _, spec := range d.Specs {
					checkGlobal(d, spec.(*ast.ValueSpec), report)
				}
			}
		}
	}
}

func checkGlobal(d *ast.GenDecl, spec *ast.ValueSpec, report reporter) {
	for _, doc := range []*ast.CommentGroup{d.Doc, spec.Doc, spec.Comment} {
		if doc == nil {
			continue
		}
		for _, c := range doc.List {
			if strings.Contains(c.Text, "read-only") || strings.HasPrefix(c.Text, "//go:embed ") {
				return
			}
		}
	}
	for i, name := range spec.Names {
		if name.Name == "_" {
			continue
		}
		if i < len(spec.Values) && constantCall(spec.Values[i]) {
			continue
		}
		report(name.Pos(), "global", fmt.Sprintf("package variable %q; pass it, or say in its comment that it is read-only", name.Name))
	}
}

// constantCall recognises the initialisers of values nobody changes: errors and compiled regular expressions.
func constantCall(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := sel.X.(*ast.Ident)
	return ok && slices.Contains([]string{
		"errors.New", "fmt.Errorf", "fault.New", "fault.Newf", "regexp.MustCompile", "regexp.MustCompilePOSIX",
	}, pkg.Name+"."+sel.Sel.Name)
}

// forbiddenInPure says whether a pure package must not import a package: the world, the clock's company, hidden state,
// chance.
func forbiddenInPure(name string) bool {
	if name == "net/mail" { // it reads addresses out of texts and connects to nothing
		return false
	}
	for _, root := range []string{"os", "net", "sync", "runtime", "database", "syscall", "math/rand", "log", "io/fs", "golang.org/x/sys", "golang.org/x/sync"} {
		if name == root || strings.HasPrefix(name, root+"/") {
			return true
		}
	}
	return slices.Contains([]string{"context", "crypto/rand", "hash/maphash", "io/ioutil", "path/filepath", "plugin", "unsafe", "C"}, name) ||
		strings.HasPrefix(name, "math/rand")
}

// checkPure type-checks the non-test files of a pure package and reports everything that makes its results depend on
// more than its arguments.
func checkPure(fset *token.FileSet, pkg string, files []source, exported map[string]string, report reporter) {
	var trees []*ast.File
	for _, f := range files {
		if f.test {
			continue
		}
		trees = append(trees, f.ast)
		for _, spec := range f.ast.Imports {
			if name, err := strconv.Unquote(spec.Path.Value); err == nil && forbiddenInPure(name) {
				report(spec.Pos(), "impure_import", fmt.Sprintf("a pure package may not import %q", name))
			}
		}
	}
	info := &types.Info{
		Types:      map[ast.Expr]types.TypeAndValue{},
		Uses:       map[*ast.Ident]types.Object{},
		Defs:       map[*ast.Ident]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{},
	}
	conf := types.Config{
		Importer: importer.ForCompiler(fset, "gc", func(name string) (io.ReadCloser, error) {
			file, ok := exported[name]
			if !ok {
				return nil, fmt.Errorf("no export data of %q; does it compile?", name)
			}
			return os.Open(file)
		}),
		Error: func(err error) {
			if e, ok := err.(types.Error); ok {
				report(e.Pos, "type_check", e.Msg)
			}
		},
	}
	// Errors were reported one by one.
	_, _ = conf.Check(pkg, fset, trees, info)
	for _, tree := range trees {
		v := &pureVisitor{info: info, report: report, excused: excusedLines(fset, tree), line: func(p token.Pos) int { return fset.Position(p).Line }}
		ast.Walk(v, tree)
	}
}

// excusedLines are the lines on which a map may be ranged over because a comment there, or on the line above, says so.
func excusedLines(fset *token.FileSet, tree *ast.File) map[int]bool {
	lines := map[int]bool{}
	for _, group := range tree.Comments {
		if strings.Contains(group.Text(), "order does not matter") {
			for line := fset.Position(group.Pos()).Line; line <= fset.Position(group.End()).Line+1; line++ {
				lines[line] = true
			}
		}
	}
	return lines
}

// pureVisitor walks one file. It is copied on the way down so that every node knows its parents.
type pureVisitor struct {
	info    *types.Info
	report  reporter
	excused map[int]bool
	line    func(token.Pos) int
	parents []ast.Node
}

func (v *pureVisitor) Visit(n ast.Node) ast.Visitor {
	switch n := n.(type) {
	case nil:
		return nil
	case *ast.GoStmt:
		v.report(n.Pos(), "goroutine", "a pure package starts no goroutine")
	case *ast.SelectStmt, *ast.SendStmt, *ast.ChanType:
		v.report(n.Pos(), "channel", "a pure package uses no channel")
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			v.report(n.Pos(), "channel", "a pure package uses no channel")
		}
	case *ast.Ident:
		v.checkClock(n)
	case *ast.RangeStmt:
		v.checkRange(n)
	case *ast.CallExpr:
		v.checkMapIterator(n)
	}
	down := *v
	down.parents = append(slices.Clip(v.parents), n)
	return &down
}

// checkClock finds uses of the clock however package time was imported, also as values (clock := time.Now).
func (v *pureVisitor) checkClock(id *ast.Ident) {
	fn, ok := v.info.Uses[id].(*types.Func)
	if !ok || fn.Pkg() == nil || fn.Pkg().Path() != "time" || fn.Signature().Recv() != nil {
		return
	}
	if slices.Contains([]string{"Now", "Since", "Until", "After", "Tick", "NewTimer", "NewTicker", "AfterFunc", "Sleep"}, fn.Name()) {
		v.report(id.Pos(), "clock", fmt.Sprintf("a pure package does not use time.%s; be given the time", fn.Name()))
	}
}

func (v *pureVisitor) checkRange(n *ast.RangeStmt) {
	t := v.info.TypeOf(n.X)
	if t == nil {
		return
	}
	switch coreType(t).(type) {
	case *types.Chan:
		v.report(n.Pos(), "channel", "a pure package uses no channel")
	case *types.Map:
		if !v.excused[v.line(n.Pos())] && !copiesMap(n) && !v.collectsForSorting(n) {
			v.report(n.Pos(), "map_order", `ranges over a map; sort the keys first, or say why the "order does not matter"`)
		}
	}
}

// coreType looks through names and type parameters (func f[M ~map[string]int]).
func coreType(t types.Type) types.Type {
	if p, ok := types.Unalias(t).(*types.TypeParam); ok {
		if i, ok := p.Constraint().Underlying().(*types.Interface); ok && i.NumEmbeddeds() == 1 {
			if u, ok := i.EmbeddedType(0).(*types.Union); ok && u.Len() == 1 {
				return u.Term(0).Type().Underlying()
			}
			return i.EmbeddedType(0).Underlying()
		}
	}
	return t.Underlying()
}

// copiesMap recognises the one loop whose order plainly does not matter: every key goes to the same key elsewhere.
func copiesMap(n *ast.RangeStmt) bool {
	key, ok := n.Key.(*ast.Ident)
	if !ok || len(n.Body.List) != 1 {
		return false
	}
	assign, ok := n.Body.List[0].(*ast.AssignStmt)
	if !ok || assign.Tok != token.ASSIGN || len(assign.Lhs) != 1 || len(assign.Rhs) != 1 {
		return false
	}
	index, ok := assign.Lhs[0].(*ast.IndexExpr)
	if !ok {
		return false
	}
	at, ok := index.Index.(*ast.Ident)
	if !ok || at.Name != key.Name {
		return false
	}
	switch assign.Rhs[0].(type) {
	case *ast.Ident, *ast.BasicLit, *ast.CompositeLit:
		return true
	}
	return false
}

// collectsForSorting recognises a loop that only appends to a slice that the same function sorts afterwards.
func (v *pureVisitor) collectsForSorting(n *ast.RangeStmt) bool {
	if len(n.Body.List) != 1 {
		return false
	}
	assign, ok := n.Body.List[0].(*ast.AssignStmt)
	if !ok || len(assign.Lhs) != 1 || len(assign.Rhs) != 1 {
		return false
	}
	call, ok := assign.Rhs[0].(*ast.CallExpr)
	if !ok {
		return false
	}
	if fun, ok := call.Fun.(*ast.Ident); !ok || fun.Name != "append" {
		return false
	}
	list := types.ExprString(assign.Lhs[0])
	sorted := false
	for _, parent := range slices.Backward(v.parents) {
		body := functionBody(parent)
		if body == nil {
			continue
		}
		ast.Inspect(body, func(c ast.Node) bool {
			sort, ok := c.(*ast.CallExpr)
			if !ok || sort.Pos() < n.End() || len(sort.Args) == 0 || types.ExprString(sort.Args[0]) != list {
				return true
			}
			if sel, ok := sort.Fun.(*ast.SelectorExpr); ok {
				if pkg, ok := sel.X.(*ast.Ident); ok && (pkg.Name == "sort" || pkg.Name == "slices" && strings.HasPrefix(sel.Sel.Name, "Sort")) {
					sorted = true
				}
			}
			return true
		})
		break
	}
	return sorted
}

func functionBody(n ast.Node) *ast.BlockStmt {
	switch f := n.(type) {
	case *ast.FuncDecl:
		return f.Body
	case *ast.FuncLit:
		return f.Body
	}
	return nil
}

// checkMapIterator refuses maps.Keys and its like unless their result is sorted or makes another map at once.
func (v *pureVisitor) checkMapIterator(call *ast.CallExpr) {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return
	}
	fn, ok := v.info.Uses[sel.Sel].(*types.Func)
	if !ok || fn.Pkg() == nil {
		return
	}
	name := fn.Pkg().Path() + "." + fn.Name()
	if fn.Signature().Recv() != nil {
		name = fn.FullName()
	}
	if !slices.Contains([]string{"maps.Keys", "maps.Values", "maps.All", "(reflect.Value).MapKeys", "(reflect.Value).MapRange"}, name) {
		return
	}
	if v.excused[v.line(call.Pos())] {
		return
	}
	if outer, ok := v.parents[len(v.parents)-1].(*ast.CallExpr); ok {
		if f, ok := outer.Fun.(*ast.SelectorExpr); ok {
			if user, ok := v.info.Uses[f.Sel].(*types.Func); ok && user.Pkg() != nil {
				by := user.Pkg().Path() + "." + user.Name()
				if strings.HasPrefix(by, "slices.Sorted") || by == "maps.Collect" || by == "maps.Insert" {
					return
				}
			}
		}
	}
	v.report(call.Pos(), "map_order", fmt.Sprintf("%s has no order; use slices.Sorted", name))
}

// exports maps import paths to files of export data: of everything the module's packages and the rules' own cases
// import. The compiler makes them, so type-checking here sees what the build sees.
func exports(t *testing.T) map[string]string {
	t.Helper()
	found, err := listExports()
	if err != nil {
		t.Fatalf("list export data: %v", err)
	}
	return found
}

var listExports = sync.OnceValues(func() (map[string]string, error) {
	args := []string{"list", "-e", "-export", "-deps", "-f", "{{if .Export}}{{.ImportPath}}={{.Export}}{{end}}"}
	for name, f := range floors() {
		if !f.pure {
			continue
		}
		if _, err := os.Stat(name); err == nil {
			args = append(args, "./"+name)
		}
	}
	args = append(args, "time", "context", "os", "maps", "slices", "sort", "reflect", "sync", "fmt")
	cmd := exec.Command("go", args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, stderr.String())
	}
	found := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if name, file, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			found[name] = file
		}
	}
	return found, nil
})
