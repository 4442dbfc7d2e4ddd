package app

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

var updateNodes = flag.Bool("update", false, "write docs/nodes anew")

// TestNodesReference compares the pages in docs/nodes with the kinds. "go test ./app -run TestNodesReference -update" writes them anew.
func TestNodesReference(t *testing.T) {
	t.Parallel()
	const dir = "../docs/nodes"
	pages, err := NodesReference()
	if err != nil {
		t.Fatal(err)
	}
	if *updateNodes {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, page := range pages { // order does not matter: each is a file of its own
			if err := os.WriteFile(filepath.Join(dir, name), []byte(page), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for i, file := range files {
		files[i] = filepath.Base(file)
	}
	if want := slices.Sorted(maps.Keys(pages)); !slices.Equal(files, want) {
		t.Errorf("docs/nodes has %q, want %q; remove what is too much, and run: go test ./app -run TestNodesReference -update", files, want)
	}
	for name, page := range pages {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != page {
			t.Errorf("docs/nodes/%s is not what the kinds say of themselves (%v); run: go test ./app -run TestNodesReference -update", name, err)
		}
	}
}
