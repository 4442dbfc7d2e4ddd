package tandem_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestArchitecture_NamesEveryPackage: a stranger finds each package of the module in docs/architecture.md.
func TestArchitecture_NamesEveryPackage(t *testing.T) {
	t.Parallel()
	_, floors, _ := strings.Cut(architecture(t), "\n## Floors\n")
	floors, _, _ = strings.Cut(floors, "\n### ")
	for _, dir := range packageDirs(t, ".") {
		if dir != "." && dir != "examples" && !strings.Contains(floors, "`"+dir+"`") {
			t.Errorf("the floors in docs/architecture.md do not say what %s is for", dir)
		}
	}
}

// TestArchitecture_Glossary: the words of our own are in order, and each is used in the packages that it is said to be at home in.
func TestArchitecture_Glossary(t *testing.T) {
	t.Parallel()
	_, glossary, _ := strings.Cut(architecture(t), "## Words of our own")
	glossary, _, _ = strings.Cut(glossary, "\n## ")
	row, remark := regexp.MustCompile(`(?m)^\| ([a-z][^|]*) \| (`+"`"+`[^|]*) \| `), regexp.MustCompile(` \([^)]*\)`)
	var words []string
	for _, m := range row.FindAllStringSubmatch(glossary, -1) {
		words = append(words, m[1])
		for _, dir := range strings.Split(m[2], ", ") {
			source := strings.ToLower(sourceBelow(t, strings.Trim(dir, "`")))
			for _, word := range strings.Split(remark.ReplaceAllString(m[1], ""), ", ") {
				if !strings.Contains(source, word) && !strings.Contains(source, strings.ReplaceAll(word, " ", "")) {
					t.Errorf("%q is not a word of %s", word, dir)
				}
			}
		}
	}
	if len(words) < 50 || !slices.IsSorted(words) {
		t.Errorf("%d words, in this order: %q", len(words), words)
	}
}

// TestExtending_IsCompiled: what docs/extending.md shows of a file stands in that file, which the tests of package app compile and run.
func TestExtending_IsCompiled(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("docs/extending.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)<!-- not run: a part of ([^ ]+) -->\n```go\n(.*?)```").FindAllStringSubmatch(string(document), -1)
	if len(blocks) < 4 {
		t.Fatalf("%d blocks", len(blocks))
	}
	for _, block := range blocks {
		content, err := os.ReadFile(block[1])
		if err != nil {
			t.Fatal(err)
		}
		source := strings.Split(string(content), "\n")
		for line := range strings.Lines(block[2]) {
			if line = strings.TrimSuffix(line, "\n"); !slices.Contains(source, line) {
				t.Errorf("%s does not have the line %q", block[1], line)
			}
		}
	}
}

func architecture(t *testing.T) string {
	t.Helper()
	document, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(document)
}

// sourceBelow is the source of a package and of those below it, without tests.
func sourceBelow(t *testing.T, dir string) string {
	t.Helper()
	var source strings.Builder
	for _, below := range packageDirs(t, dir) {
		files, err := filepath.Glob(filepath.Join(below, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			content, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			source.Write(content)
		}
	}
	return source.String()
}
