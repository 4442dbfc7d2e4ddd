package payload_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// streams are the files that may use the decoder and the encoder of encoding/json by themselves, since what they read or write is a
// stream: an answer that ends, reports of a process, lines for a terminal. Everything else goes through this package, so that there is
// one rule for digits, order, escapes and what follows a value.
func streams(file string) bool {
	if strings.Contains(file, "bench") { // measurements, a line each, and requests as small as they can be
		return true
	}
	return slices.Contains([]string{
		"doctor.go", "authorize.go", // small answers, bounded, of which one field is read
		"fingerprint.go",                            // written into a hash, whose bytes must never change
		"script_linux.go", "script_warden_linux.go", // between a process and who watches it
	}, path.Base(file))
}

// TestOneReaderAndWriter: nobody else reads or writes JSON by hand.
func TestOneReaderAndWriter(t *testing.T) {
	t.Parallel()
	files := 0
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
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "payload/") || streams(file) {
			return nil
		}
		files++
		fset := token.NewFileSet()
		tree, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			call, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if pkg, ok := call.X.(*ast.Ident); ok && pkg.Name == "json" && (call.Sel.Name == "NewDecoder" || call.Sel.Name == "NewEncoder") {
				t.Errorf("%s: json.%s; use payload.Decode, Read, ReadKnown, Encode or Marshal, or say in streams() why not", fset.Position(call.Pos()), call.Sel.Name)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 300 {
		t.Errorf("only %d files were looked at", files)
	}
}
