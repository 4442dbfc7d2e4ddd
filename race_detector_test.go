package tandem_test

import (
	"go/ast"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestRaceDetector makes sure that the packages which `make race` tests without the race detector have no use for it: they are
// pure, and their tests start no goroutine of their own.
func TestRaceDetector(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^ALONE +=(.*)$`).FindSubmatch(makefile)
	if line == nil {
		t.Fatal("the Makefile has no line ALONE")
	}
	alone, err := regexp.Compile(strings.ReplaceAll(strings.TrimSpace(string(line[1])), "$$", "$"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, dir := range packageDirs(t, ".") {
		if dir == "." || !alone.MatchString(module+"/"+dir) {
			continue
		}
		found++
		if f, _ := floorOf(floors(), dir); !f.pure {
			t.Errorf("%s is tested without the race detector, and is not pure", dir)
		}
		fset := token.NewFileSet()
		for _, f := range parseDir(t, fset, dir) {
			ast.Inspect(f.ast, func(n ast.Node) bool {
				if s, ok := n.(*ast.GoStmt); ok {
					t.Errorf("%s: a goroutine is started in a package that is tested without the race detector", fset.Position(s.Pos()))
				}
				return true
			})
			for _, i := range f.ast.Imports {
				if strings.Trim(i.Path.Value, `"`) == "sync" {
					t.Errorf("%s: sync is imported in a package that is tested without the race detector", fset.Position(i.Pos()))
				}
			}
		}
	}
	if found == 0 {
		t.Error("no package is tested without the race detector")
	}
}
