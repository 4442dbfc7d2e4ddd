package tandem_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/scanner"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"unicode/utf8"
)

// limits are what the measures of the module may be. docs/architecture.md says why.
var limits = struct { // read-only
	lines, names, file, branches, depth int
	// columns is how wide a line may be; wide is how many lines of the module are wider still. It may only become smaller.
	columns, wide int
}{lines: 6000, names: 300, file: 600, branches: 25, depth: 9, columns: 140, wide: 20}

// measure is what one package measures, tests left out.
type measure struct {
	dir string
	// lines counts all lines of all files; names counts the functions, types, constants and variables of the package that
	// are not exported, without methods.
	lines, names int
	// file is the longest file, and branches the most branching function, with their sizes.
	file, function      string
	fileLines, branches int
	// depth is the length of the longest chain of imports inside the module that begins here.
	depth int
}

// TestMeasures holds every package to the limits. `make measures` prints what they measure.
func TestMeasures(t *testing.T) {
	t.Parallel()
	all := measures(t)
	var table bytes.Buffer
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	line(w, "package\tlines\tunexported names\tlongest file\tmost branches\tdepth\n")
	for _, m := range all {
		line(w, "%s\t%d\t%d\t%s %d\t%s %d\t%d\n", m.dir, m.lines, m.names, m.file, m.fileLines, m.function, m.branches, m.depth)
		for _, over := range []struct {
			what        string
			have, limit int
		}{
			{"lines", m.lines, limits.lines},
			{"unexported names", m.names, limits.names},
			{"lines in " + m.file, m.fileLines, limits.file},
			{"branches in " + m.function, m.branches, limits.branches},
			{"imports in a chain", m.depth, limits.depth},
		} {
			if over.have > over.limit {
				t.Errorf("%s has %d %s, more than %d", m.dir, over.have, over.what, over.limit)
			}
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", table.String())
}

// TestColumns: lines are not wider than an editor shows. What stands in literals does not count: texts, tags and tables are not wrapped.
func TestColumns(t *testing.T) {
	t.Parallel()
	total, most := 0, map[string]int{}
	for _, dir := range packageDirs(t, ".") {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if name := e.Name(); strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
				content, err := os.ReadFile(filepath.Join(dir, name))
				if err != nil {
					t.Fatal(err)
				}
				n := wideLines(content)
				total, most[dir] = total+n, most[dir]+n
			}
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(most)) {
		if most[dir] > 0 {
			t.Logf("%s has %d lines of more than %d columns", dir, most[dir], limits.columns)
		}
	}
	if total > limits.wide {
		t.Errorf("%d lines have more than %d columns, and %d had; wrap those that are new", total, limits.columns, limits.wide)
	}
}

// wideLines counts the lines of a file that are too wide without what stands in their literals. A tab is four columns.
func wideLines(content []byte) int {
	lines := strings.Split(string(content), "\n")
	width := make([]int, len(lines))
	for i, l := range lines {
		width[i] = utf8.RuneCountInString(l) + 3*strings.Count(l, "\t")
	}
	fset := token.NewFileSet()
	file := fset.AddFile("", fset.Base(), len(content))
	var s scanner.Scanner
	s.Init(file, content, nil, 0)
	for {
		at, tok, text := s.Scan()
		if tok == token.EOF {
			break
		}
		if tok != token.STRING {
			continue
		}
		first := file.Line(at) - 1
		for i, part := range strings.Split(text, "\n") {
			width[first+i] -= utf8.RuneCountInString(part) + 3*strings.Count(part, "\t")
		}
	}
	n := 0
	for _, w := range width {
		if w > limits.columns {
			n++
		}
	}
	return n
}

// TestWideLines holds the counting itself to some lines.
func TestWideLines(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("a", limits.columns)
	for code, want := range map[string]int{
		"package p\n\nvar x = y\n":                                        0,
		"package p\n\nvar " + name + " = 1\n":                             1,
		"package p\n\n// " + name + "\n":                                  1,
		"package p\n\nvar x = \"" + name + "\"\n":                         0,
		"package p\n\nvar x = `" + name + "\n\t" + name + "\n`\n":         0,
		"package p\n\nfunc f() {\n\t" + name[:limits.columns-3] + "()\n}": 1,
	} {
		if got := wideLines([]byte(code)); got != want {
			t.Errorf("%d lines of %q are too wide, want %d", got, code, want)
		}
	}
}

// line writes one line of a table that is kept in memory.
func line(w *tabwriter.Writer, format string, args ...any) { fmt.Fprintf(w, format, args...) }

// measures measures every package, the longest first.
func measures(t *testing.T) []measure {
	t.Helper()
	found := map[string]measure{}
	imports := map[string][]string{}
	for _, dir := range packageDirs(t, ".") {
		fset := token.NewFileSet()
		m := measure{dir: dir}
		for _, f := range parseDir(t, fset, dir) {
			if !f.test {
				m.add(fset, f)
				imports[dir] = append(imports[dir], inside(f.ast)...)
			}
		}
		if m.lines > 0 {
			found[dir] = m
		}
	}
	for dir, m := range found {
		m.depth = depth(dir, imports, map[string]int{})
		found[dir] = m
	}
	return slices.SortedFunc(maps.Values(found), func(a, b measure) int {
		if a.lines != b.lines {
			return b.lines - a.lines
		}
		return strings.Compare(a.dir, b.dir)
	})
}

// add counts one file.
func (m *measure) add(fset *token.FileSet, f source) {
	lines := fset.File(f.ast.Package).LineCount()
	m.lines += lines
	if lines > m.fileLines {
		m.file, m.fileLines = f.name, lines
	}
	for _, d := range f.ast.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				m.name(d.Name)
			}
			if n := branches(d); n > m.branches {
				m.function, m.branches = d.Name.Name, n
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					m.name(s.Name)
				case *ast.ValueSpec:
					for _, n := range s.Names {
						m.name(n)
					}
				}
			}
		}
	}
}

func (m *measure) name(n *ast.Ident) {
	if n.Name != "_" && !n.IsExported() {
		m.names++
	}
}

// branches is the cyclomatic complexity of a function, with the functions inside it.
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
		case *ast.CommClause:
			if x.Comm != nil {
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

// inside lists what a file imports from this module.
func inside(f *ast.File) []string {
	var dirs []string
	for _, i := range f.Imports {
		if dir, ok := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), module+"/"); ok {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// depth is the length of the longest chain of imports from a package on. Go allows no circles.
func depth(dir string, imports map[string][]string, known map[string]int) int {
	if d, ok := known[dir]; ok {
		return d
	}
	d := 0
	for _, next := range imports[dir] {
		d = max(d, 1+depth(next, imports, known))
	}
	known[dir] = d
	return d
}
