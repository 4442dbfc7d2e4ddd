package tandem_test

import (
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// parseCase parses one snippet as a file of a package.
func parseCase(t *testing.T, fset *token.FileSet, name, text string) source {
	t.Helper()
	f, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatalf("parse the case: %v", err)
	}
	return source{name: name, test: strings.HasSuffix(name, "_test.go"), ast: f}
}

// collector gathers the names of the broken rules.
func collector(rules *[]string) reporter {
	return func(_ token.Pos, rule, _ string) { *rules = append(*rules, rule) }
}

func assertRules(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("broken rules: got %q, want %q", got, want)
	}
}

func TestFloorRules_Imports(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, pkg, file, imports string
		want                     []string
	}{
		{"Lower", "engine", "a.go", "tandem/workflow", nil},
		{"OwnParent", "store/sqlite", "a.go", "tandem/store", nil},
		{"OtherModule", "fault", "a.go", "tandemonium/engine", nil},
		{"Vendor", "integration/slack", "a.go", "tandem/node", nil},
		{"Same", "workflow", "a.go", "tandem/dataflow", []string{"floor"}},
		{"Higher", "expr", "a.go", "tandem/engine", []string{"floor"}},
		{"OwnChild", "store", "a.go", "tandem/store/sqlite", []string{"floor"}},
		{"VendorOfVendor", "integration/slack", "a.go", "tandem/integration/github", []string{"floor"}},
		{"Root", "app", "a.go", "tandem", []string{"floor"}},
		{"Unlisted", "app", "a.go", "tandem/gadget", []string{"unknown_package"}},
		{"UnlistedChild", "app", "a.go", "tandem/workflow/inner", []string{"unknown_package"}},
		{"SuiteInCode", "app", "a.go", "tandem/store/storetest", []string{"suite"}},
		{"SuiteInTest", "store/sqlite", "a_test.go", "tandem/store/storetest", nil},
		{"SelfInTest", "engine", "a_test.go", "tandem/engine", nil},
		{"HigherInTest", "engine", "a_test.go", "tandem/app", []string{"floor"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file := parseCase(t, token.NewFileSet(), c.file, "package a\nimport _ \""+c.imports+"\"\n")
			var got []string
			checkImports(floors(), c.pkg, file, collector(&got))
			assertRules(t, got, c.want...)
		})
	}
}

func TestFloorRules_UnknownPackageHasNoFloor(t *testing.T) {
	t.Parallel()
	for _, pkg := range []string{"gadget", "integration", "integration/slack/inner", "cmd/other", "workflow/inner"} {
		if _, known := floorOf(floors(), pkg); known {
			t.Errorf("floorOf(%q) found a floor, want none", pkg)
		}
	}
}

func TestFloorRules_PackageNames(t *testing.T) {
	t.Parallel()
	cases := []struct {
		dir, pkg string
		want     []string
	}{
		{"engine", "engine", nil},
		{"cmd/tandem", "main", nil},
		{"store/storetest", "storetest_test", nil},
		{"util", "util", []string{"package_name"}},
		{"store/utils", "utils", []string{"package_name"}},
		{"stringutil", "stringutil", []string{"package_name"}},
		{"engine", "common", []string{"package_name"}},
		{"helpers", "engine", []string{"package_name"}},
		{"manager", "manager", []string{"package_name"}},
		{"taskmanager", "taskmanager_test", []string{"package_name"}},
		{"misc", "misc", []string{"package_name"}},
	}
	for _, c := range cases {
		t.Run(c.dir+"_"+c.pkg, func(t *testing.T) {
			t.Parallel()
			file := parseCase(t, token.NewFileSet(), "a.go", "package "+c.pkg)
			var got []string
			checkPackageName(c.dir, []source{file}, collector(&got))
			assertRules(t, got, c.want...)
		})
	}
}

func TestFloorRules_Globals(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, file, text string
		want             []string
	}{
		{"Init", "a.go", "func init() {}", []string{"init"}},
		{"InitMethod", "a.go", "type a int\nfunc (a) init() {}", nil},
		{"Counter", "a.go", "var count int", []string{"global"}},
		{"Map", "a.go", "var m = map[string]int{}", []string{"global"}},
		{"OneOfTwo", "a.go", "var (\n\ta = 1 // read-only\n\tb = 2\n)", []string{"global"}},
		{"ReadOnlyDoc", "a.go", "// table is read-only.\nvar table = [...]int{1}", nil},
		{"ReadOnlyLine", "a.go", "var version = \"dev\" // read-only; set by the linker", nil},
		{"Error", "a.go", "import \"errors\"\nvar errGone = errors.New(\"gone\")", nil},
		{"Regexp", "a.go", "import \"regexp\"\nvar word = regexp.MustCompile(`a`)", nil},
		{"Embed", "a.go", "import \"embed\"\n//go:embed a.txt\nvar files embed.FS", nil},
		{"Assertion", "a.go", "type a int\nvar _ error = a(0)", nil},
		{"Test", "a_test.go", "var table = []int{1}", nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file := parseCase(t, token.NewFileSet(), c.file, "package a\n"+c.text)
			var got []string
			checkGlobals([]source{file}, collector(&got))
			assertRules(t, got, c.want...)
		})
	}
}

func TestFloorRules_PureImports(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"context", "os", "os/exec", "net", "net/http", "net/url", "sync", "sync/atomic", "math/rand", "math/rand/v2", "log", "log/slog",
		"crypto/rand", "runtime", "runtime/debug", "syscall", "io/fs", "database/sql", "unsafe", "hash/maphash",
	} {
		if !forbiddenInPure(name) {
			t.Errorf("forbiddenInPure(%q) = false, want true", name)
		}
	}
	for _, name := range []string{"fmt", "errors", "time", "strings", "math", "math/big", "encoding/json", "crypto/sha256", "iter", "slices", "net/mail"} {
		if forbiddenInPure(name) {
			t.Errorf("forbiddenInPure(%q) = true, want false", name)
		}
	}
}

func TestFloorRules_Pure(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, text string
		want       []string
	}{
		{"Clean", "func f(a, b int) int { return a + b }", nil},
		{"Context", "import \"context\"\nfunc f(context.Context) {}", []string{"impure_import"}},
		{"Env", "import \"os\"\nfunc f() string { return os.Getenv(\"A\") }", []string{"impure_import"}},
		{"Mutex", "import \"sync\"\ntype a struct { mu sync.Mutex }", []string{"impure_import"}},
		{"Now", "import \"time\"\nfunc f() time.Time { return time.Now() }", []string{"clock"}},
		{"NowRenamed", "import clock \"time\"\nfunc f() clock.Time { return clock.Now() }", []string{"clock"}},
		{"NowDot", "import . \"time\"\nfunc f() Time { return Now() }", []string{"clock"}},
		{"NowValue", "import \"time\"\nvar clock = time.Now", []string{"clock"}},
		{"Since", "import \"time\"\nfunc f(t time.Time) time.Duration { return time.Since(t) }", []string{"clock"}},
		{"Sleep", "import \"time\"\nfunc f() { time.Sleep(1) }", []string{"clock"}},
		{"AfterMethod", "import \"time\"\nfunc f(a, b time.Time) bool { return a.After(b) }", nil},
		{"Duration", "import \"time\"\nfunc f() time.Duration { return 3 * time.Second }", nil},
		{"Go", "func f() { go f() }", []string{"goroutine"}},
		{"Send", "func f(c chan int) { c <- 1 }", []string{"channel", "channel"}},
		{"Receive", "func f() { var c = make(chan int); <-c }", []string{"channel", "channel"}},
		{"Select", "func f() { select {} }", []string{"channel"}},
		{"MapRange", "func f(m map[string]int) (s string) { for k := range m { s += k }; return s }", []string{"map_order"}},
		{"NamedMap", "type set map[string]bool\nfunc f(m set) (s string) { for k := range m { s += k }; return s }", []string{"map_order"}},
		{"GenericMap", "func f[M ~map[string]int](m M) (s string) { for k := range m { s += k }; return s }", []string{"map_order"}},
		{"FieldMap", "type a struct{ m map[string]int }\nfunc f(x a) (s string) { for k := range x.m { s += k }; return s }", []string{"map_order"}},
		{"MapFunctionResult", "func g() map[string]int { return nil }\nfunc f() (s string) { for k := range g() { s += k }; return s }", []string{"map_order"}},
		{"SliceRange", "func f(m []int) (s int) { for _, v := range m { s += v }; return s }", nil},
		{"CommentAbove", "func f(m map[string]int) (s int) {\n\t// A sum: order does not matter.\n\tfor _, v := range m { s += v }\n\treturn s\n}", nil},
		{"CommentBeside", "func f(m map[string]int) (s int) {\n\tfor _, v := range m { // order does not matter\n\t\ts += v\n\t}\n\treturn s\n}", nil},
		{"CommentElsewhere", "// order does not matter\nvar _ = 1\nfunc f(m map[string]int) (s int) {\n\tfor _, v := range m { s += v }\n\treturn s\n}", []string{"map_order"}},
		{"Copy", "func f(m map[string]int) map[string]int { c := map[string]int{}; for k, v := range m { c[k] = v }; return c }", nil},
		{"CopyWithCall", "func f(m map[string]int) { c := map[string]int{}; for k := range m { c[k] = len(c) } }", []string{"map_order"}},
		{"SortedKeys", "import \"sort\"\nfunc f(m map[string]int) []string { var k []string; for x := range m { k = append(k, x) }; sort.Strings(k); return k }", nil},
		{"SortedSlice", "import \"slices\"\nfunc f(m map[string]int) []string { var k []string; for x := range m { k = append(k, x) }; slices.Sort(k); return k }", nil},
		{"UnsortedKeys", "func f(m map[string]int) []string { var k []string; for x := range m { k = append(k, x) }; return k }", []string{"map_order"}},
		{"OtherSorted", "import \"slices\"\nfunc f(m map[string]int, o []string) []string { var k []string; for x := range m { k = append(k, x) }; slices.Sort(o); return k }", []string{"map_order"}},
		{"SortedIterator", "import (\"maps\"; \"slices\")\nfunc f(m map[string]int) []string { return slices.Sorted(maps.Keys(m)) }", nil},
		{"CollectedIterator", "import (\"maps\"; \"slices\")\nfunc f(m map[string]int) []string { return slices.Collect(maps.Keys(m)) }", []string{"map_order"}},
		{"RangedIterator", "import \"maps\"\nfunc f(m map[string]int) (s string) { for k := range maps.Keys(m) { s += k }; return s }", []string{"map_order"}},
		{"ReflectKeys", "import \"reflect\"\nfunc f(v reflect.Value) []reflect.Value { return v.MapKeys() }", []string{"map_order"}},
		{"DoesNotCompile", "func f() int { return \"a\" }", []string{"type_check"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			fset := token.NewFileSet()
			file := parseCase(t, fset, "a.go", "package a\n"+c.text)
			var got []string
			checkPure(fset, "a", []source{file}, exports(t), collector(&got))
			assertRules(t, got, c.want...)
		})
	}
}

func TestFloorRules_PureIgnoresTests(t *testing.T) {
	t.Parallel()
	fset := token.NewFileSet()
	file := parseCase(t, fset, "a_test.go", "package a\nimport \"os\"\nfunc f() { go os.Exit(1) }")
	var got []string
	checkPure(fset, "a", []source{file}, exports(t), collector(&got))
	assertRules(t, got)
}
