package tandem_test

import (
	"go/ast"
	"go/token"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestRaceDetector makes sure that somebody has decided what the race detector watches in each package that starts goroutines: without a decision it is every test.
// Packages that are watched in part have tests to be watched, among them each test that starts goroutines itself, and what is left out runs without the detector.
func TestRaceDetector(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("scripts/concurrent.sh").Output()
	if err != nil {
		t.Fatal(err)
	}
	found := strings.Fields(string(out))
	partly, apart, leftIn := madeWith(t, "PARTLY"), madeWith(t, "APART"), madeWith(t, "PUREIN")
	crowded, pure := expressionOf(t, "CROWDED"), expressionOf(t, "PURE")
	for _, dir := range packageDirs(t, ".") {
		path := strings.TrimSuffix(module+"/"+dir, "/.")
		started, own := goroutines(t, dir)
		if len(started) > 0 != slices.Contains(found, path) {
			t.Errorf("%s starts goroutines at %v, and scripts/concurrent.sh lists it: %v", path, started, slices.Contains(found, path))
		}
		inPart, isApart := slices.Contains(partly, dir), slices.Contains(apart, dir)
		if (inPart || isApart) && len(started) == 0 || inPart && isApart {
			t.Errorf("%s is in PARTLY: %v, and in APART: %v, in the Makefile; it starts goroutines at %v", path, inPart, isApart, started)
		}
		if isApart && own > 0 {
			t.Errorf("%s is in APART in the Makefile, and starts goroutines not only in its tests: %v", path, started)
		}
		tests := testsOf(t, dir)
		if inPart {
			checkPartly(t, dir, tests, crowded)
			continue
		}
		left := slices.ContainsFunc(tests, func(x test) bool { return pure.MatchString(x.name) })
		if watched := len(started) > 0 && !isApart; watched && left != slices.Contains(leftIn, "./"+dir) {
			t.Errorf("%s has tests that are left out with the race detector (PURE in the Makefile): %v. Without it they run in %v (PUREIN)", path, left, leftIn)
		}
	}
	for _, dir := range append(append([]string(nil), partly...), apart...) {
		if !slices.Contains(found, module+"/"+dir) {
			t.Errorf("%s starts no goroutines: take it from the Makefile's PARTLY or APART", dir)
		}
	}
}

// checkPartly expects that the race detector watches some tests of a package, and those that start goroutines. The tests of app and server start clients and servers
// everywhere: which of them are watched is chosen by hand.
func checkPartly(t *testing.T, dir string, tests []test, crowded *regexp.Regexp) {
	t.Helper()
	if !slices.ContainsFunc(tests, func(x test) bool { return crowded.MatchString(x.name) }) {
		t.Errorf("the race detector watches no test of %s: name some in CROWDED, in the Makefile, or take it from PARTLY", dir)
	}
	for _, x := range tests {
		if x.starts && !crowded.MatchString(x.name) && dir != "app" && dir != "server" {
			t.Errorf("%s of %s starts goroutines, and the race detector does not watch it: name it in CROWDED, in the Makefile", x.name, dir)
		}
	}
}

// expressionOf is a variable of the Makefile that is a regular expression.
func expressionOf(t *testing.T, name string) *regexp.Regexp {
	t.Helper()
	words := madeWith(t, name)
	if len(words) != 1 {
		t.Fatalf("%s is %q", name, words)
	}
	return regexp.MustCompile(words[0])
}

// madeWith are the words of a variable of the Makefile.
func madeWith(t *testing.T, name string) []string {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^` + name + ` +=(.*)$`).FindSubmatch(makefile)
	if line == nil {
		t.Fatalf("the Makefile has no line %s", name)
	}
	return strings.Fields(strings.ReplaceAll(string(line[1]), "$$", "$"))
}

// goroutines are the places of a package and its tests where goroutines are started, and how many of them are not in tests.
func goroutines(t *testing.T, dir string) (found []token.Position, own int) {
	fset := token.NewFileSet()
	for _, f := range parseDir(t, fset, dir) {
		for _, pos := range startsIn(f.ast) {
			if found = append(found, fset.Position(pos)); !f.test {
				own++
			}
		}
	}
	return found, own
}

// startsIn are the places below a node where goroutines are started: by a statement, or by a group, which starts what it is given.
func startsIn(below ast.Node) (found []token.Pos) {
	ast.Inspect(below, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = append(found, n.Pos())
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Go" {
				found = append(found, n.Pos())
			}
		}
		return true
	})
	return found
}

// test is a test of a package, and whether it starts goroutines itself.
type test struct {
	name   string
	starts bool
}

// testsOf are the tests in a directory.
func testsOf(t *testing.T, dir string) []test {
	var list []test
	for _, f := range parseDir(t, token.NewFileSet(), dir) {
		for _, d := range f.ast.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Recv == nil && strings.HasPrefix(d.Name.Name, "Test") {
				list = append(list, test{d.Name.Name, len(startsIn(d)) > 0})
			}
		}
	}
	return list
}
