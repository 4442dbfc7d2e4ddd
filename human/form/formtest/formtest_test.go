package formtest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryMedium: whatever talks to people shows values as they read them, and proves it with the same check. Media are the packages
// under integration that bring a channel, the pages, the gateway, the terminal and prompts.
func TestEveryMedium(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	proves := map[string]bool{}
	media := map[string]bool{"gateway": true}
	err := filepath.WalkDir(root, func(name string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if base := entry.Name(); base == "testdata" || base == "node_modules" || strings.HasPrefix(base, ".") && base != ".." {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(name))
		if err != nil {
			return err
		}
		dir = filepath.ToSlash(dir)
		switch test := strings.HasSuffix(name, "_test.go"); {
		case test && strings.Contains(string(text), "formtest.Readable("):
			proves[dir] = true
		case !test && strings.HasPrefix(dir, "integration/") && strings.Contains(string(text), "human.Receipt, error)"):
			media[dir] = true
		case !test && strings.Contains(string(text), "//go:embed page.html style.css"):
			media[dir] = true
		case !test && strings.Contains(string(text), "lineage.AgainLines(") && !strings.Contains(string(text), "tandem/human/sheet") && !strings.HasPrefix(dir, "human") && !strings.HasPrefix(dir, "integration/"):
			media[dir] = true
		case !test && strings.HasSuffix(name, "prompts.go") && strings.Contains(string(text), "payload.JSON("):
			media[dir] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir := range media { // order does not matter
		if !proves[dir] {
			t.Errorf("%s talks to people or models, and no test of it draws formtest.Value and calls formtest.Readable", dir)
		}
	}
	if len(media) < 9 {
		t.Errorf("only %v are taken for media", media)
	}
}
