package text_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tandem/text"
)

// sources hands over every file of the module whose name has an ending, tests left out, by its path from the root.
func sources(t *testing.T, ending string, each func(name, path string)) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if base := entry.Name(); base == "testdata" || base == "node_modules" || base != ".." && strings.HasPrefix(base, ".") {
				return fs.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(path, ending) && !strings.HasSuffix(path, "_test.go") {
			each(strings.TrimPrefix(filepath.ToSlash(path), "../"), path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// refusing are the packages whose errors answer requests: all of them have words in every language, but for those that tell of a defect.
var refusing = []string{ // read-only
	"app", "budget", "client", "cmd/tandem", "console", "credential", "dataflow", "engine", "files", "host", "host/local", "human", "human/replies", "identity", "limits",
	"login", "mcp", "memory", "node", "outbound", "respond", "revisions", "route", "server", "settings", "store", "store/relational/",
	"story", "trigger", "vault", "visitors",
}

// refusal is what an error says that answers a request: the format of a fault.New, a fault.Newf or a host.Unreadable.
func refusal(file string, call *ast.CallExpr) (format string, is bool) {
	if unreadable(file, call) {
		format, is = literal(call.Args[1])
		return format, is && format != "%w"
	}
	fun, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) < 2 || fun.Sel.Name != "New" && fun.Sel.Name != "Newf" {
		return "", false
	}
	pkg, ok := fun.X.(*ast.Ident)
	dir := path.Dir(file)
	if !ok || pkg.Name != "fault" || !slices.Contains(refusing, dir) && !slices.Contains(refusing, path.Dir(dir)+"/") {
		return "", false
	}
	if code, ok := call.Args[0].(*ast.SelectorExpr); ok && code.Sel.Name == "Internal" && dir != "route" {
		return "", false // only what route makes of a defect is told
	}
	format, is = literal(call.Args[1])
	return format, is && strings.Trim(verb.ReplaceAllString(format, ""), ": ;,.") != ""
}

// unreadable says that a call is one of host.Unreadable.
func unreadable(file string, call *ast.CallExpr) bool {
	if len(call.Args) < 2 {
		return false
	}
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		return fun.Name == "Unreadable" && path.Dir(file) == "host"
	case *ast.SelectorExpr:
		pkg, ok := fun.X.(*ast.Ident)
		return ok && pkg.Name == "host" && fun.Sel.Name == "Unreadable"
	}
	return false
}

// recordSort is what a store.NotFound says is not there: the sort of a record, which is a text that is said by itself.
func recordSort(file string, call *ast.CallExpr) (sort ast.Expr, is bool) {
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		is = fun.Name == "NotFound" && path.Dir(file) == "store"
	case *ast.SelectorExpr:
		pkg, ok := fun.X.(*ast.Ident)
		is = ok && pkg.Name == "store" && fun.Sel.Name == "NotFound"
	}
	if !is || len(call.Args) != 2 {
		return nil, false
	}
	return call.Args[0], true
}

// inTemplate is a text that a template says.
var inTemplate = regexp.MustCompile(`\.Say ("[^"]*")`)

// said finds every text that the code says: the English of each text.Of, with its context behind it in brackets, each format in which a
// problem of a definition is reported or a request is refused, each sort of record, and where it is said. Templates say theirs with .Say.
func said(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	sources(t, ".html", func(name, path string) {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range inTemplate.FindAllStringSubmatch(string(raw), -1) {
			english, err := strconv.Unquote(m[1])
			if err != nil {
				t.Fatalf("%s: %s: %v", name, m[0], err)
			}
			found[english] = name
		}
	})
	sources(t, ".go", func(name, path string) {
		fset := token.NewFileSet()
		tree, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		contexts := map[*ast.CallExpr]string{}
		ast.Inspect(tree, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if at, reports := reporter(name, call); reports {
				if format, ok := literal(call.Args[at]); ok && format != "%s" {
					if n := len(verbs(format)); call.Ellipsis == token.NoPos && n != len(call.Args)-at-1 {
						t.Errorf("%s: %q has %d holes and is given %d values", fset.Position(call.Pos()), format, n, len(call.Args)-at-1)
					}
					found[format] = fset.Position(call.Pos()).String()
				}
				return true
			}
			if sort, is := recordSort(name, call); is {
				english, ok := literal(sort)
				if !ok {
					t.Errorf("%s: store.NotFound is given a sort of record that is not a text in quotes; then nobody can look for its translation", fset.Position(call.Pos()))
				}
				found[english] = fset.Position(call.Pos()).String()
				return true
			}
			if format, is := refusal(name, call); is {
				found[format] = fset.Position(call.Pos()).String()
				return true
			}
			fun, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			if inner, ok := fun.X.(*ast.CallExpr); ok && fun.Sel.Name == "For" {
				if context, ok := literal(call.Args[0]); ok {
					contexts[inner] = " (" + context + ")"
				}
				return true
			}
			if pkg, ok := fun.X.(*ast.Ident); !ok || pkg.Name != "text" || fun.Sel.Name != "Of" {
				return true
			}
			english, ok := literal(call.Args[0])
			if !ok {
				t.Errorf("%s: text.Of is given something else than a text in quotes; then nobody can look for its translation", fset.Position(call.Pos()))
				return true
			}
			if n := len(verbs(english)); len(call.Args) > 1 && call.Ellipsis == token.NoPos && n != len(call.Args)-1 {
				t.Errorf("%s: %q has %d holes and is given %d values", fset.Position(call.Pos()), english, n, len(call.Args)-1)
			}
			found[english+contexts[call]] = fset.Position(call.Pos()).String()
			return true
		})
	})
	return found
}

// reporter says that a call reports a problem of a definition or of a field of a request in a format, and which of its arguments that is.
func reporter(file string, call *ast.CallExpr) (at int, reports bool) {
	places, called := map[string]int{}, ""
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		called = fun.Name
		switch {
		case strings.HasPrefix(file, "workflow/"):
			places = map[string]int{"errorAt": 2, "warningAt": 2, "wrongPart": 1}
		case strings.HasPrefix(file, "settings/"):
			places = map[string]int{"refuse": 1}
		case strings.HasPrefix(file, "needs/"):
			places = map[string]int{"warn": 2}
		}
	case *ast.SelectorExpr:
		called = fun.Sel.Name
		on := ""
		switch x := fun.X.(type) {
		case *ast.Ident:
			on = x.Name
		case *ast.SelectorExpr:
			on = x.Sel.Name
		}
		planning := strings.HasPrefix(file, "node/plan") || strings.HasPrefix(file, "builtin/") || strings.HasPrefix(file, "integration/")
		if on == "api" {
			places = map[string]int{"WrongField": 1}
		}
		if on == "route" {
			places = map[string]int{"ConflictOf": 1}
		}
		if planning && on == "p" {
			places = map[string]int{"Invalid": 1, "Refuse": 2, "Warn": 2, "Idle": 1, "Require": 1}
		}
	}
	at, reports = places[called]
	return at, reports && len(call.Args) > at
}

// literal is the value of a text in quotes, or of several that are added up.
func literal(e ast.Expr) (string, bool) {
	switch x := e.(type) {
	case *ast.BasicLit:
		if x.Kind == token.STRING {
			value, err := strconv.Unquote(x.Value)
			return value, err == nil
		}
	case *ast.BinaryExpr:
		a, okA := literal(x.X)
		b, okB := literal(x.Y)
		return a + b, okA && okB && x.Op == token.ADD
	}
	return "", false
}

// verb is a hole of a format, perhaps with the number of its value. read-only
var verb = regexp.MustCompile(`%(?:\[(\d+)\])?[-+# 0-9.]*([a-zA-Z%])`)

// verbs are the holes of a format in the order of their values. A text may stand in other quotation marks in another language, so %q
// counts as %s.
func verbs(format string) []string {
	var list []string
	for _, m := range verb.FindAllStringSubmatch(format, -1) {
		if m[2] == "%" {
			continue
		}
		n := len(list)
		if m[1] != "" {
			at, err := strconv.Atoi(m[1])
			if err != nil {
				return nil
			}
			n = at - 1
		}
		for len(list) <= n {
			list = append(list, "")
		}
		if list[n] = m[2]; m[2] == "q" {
			list[n] = "s"
		}
	}
	return list
}

// TestCatalogues: every text that the code says is in the catalogue of every language, with the same holes or none, and no catalogue has
// anything that nobody says.
func TestCatalogues(t *testing.T) {
	t.Parallel()
	all := said(t)
	if len(all) < 200 {
		t.Errorf("only %d texts are said", len(all))
	}
	for _, language := range text.Languages() {
		if language == text.English {
			continue
		}
		file := language + ".json"
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		words := map[string]string{}
		if err := json.Unmarshal(raw, &words); err != nil {
			t.Fatal(err)
		}
		for english, where := range all { // order does not matter
			told, ok := words[english]
			switch holes := verbs(told); {
			case !ok || told == "":
				t.Errorf("%s: %s has no words for %q", where, file, english)
			case len(holes) > 0 && !slices.Equal(holes, verbs(english)):
				t.Errorf("%s: %s has the holes %q in %q, and English has %q in %q", where, file, holes, told, verbs(english), english)
			}
		}
		for english := range words { // order does not matter
			if _, ok := all[english]; !ok {
				t.Errorf("%s: nobody says %q any more; remove it", file, english)
			}
		}
		if sorted := keys(t, raw); !slices.IsSorted(sorted) || len(slices.Compact(slices.Clone(sorted))) != len(words) {
			t.Errorf("%s is not in the order of the English, or has one twice", file)
		}
	}
}

// keys are the names of an object as they are written.
func keys(t *testing.T, raw []byte) []string {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(raw)))
	var list []string
	for depth := 0; d.More() || depth > 0; {
		token, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case json.Delim:
			if depth++; token == '}' {
				return list
			}
		case string:
			list = append(list, token)
			if _, err := d.Token(); err != nil {
				t.Fatal(err)
			}
		}
	}
	return list
}
