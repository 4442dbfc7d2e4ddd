package app

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"tandem/node"
	"tandem/workflow"
)

// The inventory shows of every configuration field that changing it changes something that can be seen, or that the field is refused or
// warned of when the workflow is saved. A field without an entry fails the test: the author of a new field says what it does.
//
// A family of kinds is an [fieldInventory] in a file of its own. Its bench runs one node with given configurations and tells everything
// that can be seen of the run: what was sent to services, what the node put out, what was stored, who was asked.

// proof shows what a field does.
type proof struct {
	// with are the other configurations of the node, an object without its braces.
	with string
	// one and other are two values of the field, as JSON; empty leaves it out. The runs with them must differ. What begins with "@" is the
	// field with its name and all around it, for those inside of lists.
	one, other string
	// input is what the node is given, an object; empty for nothing.
	input string
	// scene tells the bench what is around the node.
	scene string
	// chain are the inputs of nodes of the same kind that run before it, with the other configurations.
	chain []string
	// before are nodes that run before it, each as nodeOf writes it.
	before []string
	// kind is another kind of the family on which a field is tried that all kinds have.
	kind string
	// waits says that the run is over when the execution waits for a time or a signal. What it waits for is told.
	waits bool
	// told is a part of the problem with which the value other is refused or warned of. There is no run then.
	told string
	// shown names a test of this package, of package builtin, or of the package in front of it that shows it, where no two runs can: why
	// says the reason. There is no run then either.
	shown, why string
	// label says that it names or describes something to readers of the file, and that nothing runs by it.
	label bool
}

// fieldInventory are the proofs of a family of kinds.
type fieldInventory struct {
	// family is the type of the nodes.
	family string
	// every is for the fields that all kinds of the family have, kinds for those of single kinds and where a kind differs.
	every map[string]proof
	kinds map[string]map[string]proof
	// shared is for the fields that all nodes have, of whatever family; they are tried on the kind sample, if the family has one.
	shared map[string]proof
	sample string
	// bench runs a node and tells what was seen. The same again must tell the same again.
	bench func(t *testing.T, kind, config string, p proof) string
	// alike are the kinds that have the same proof for a field of the same name.
	alike map[string][]string
	// told are the runs so far, many fields are tried against the same one, and the tests that there are.
	told *sync.Map
}

// of tells a proof from all others of a field of a name.
func (p proof) of(path string) string { return fmt.Sprintf("%s %+v", path, p) }

// tries says whether a field is tried on a kind. Kinds of a family share fields, which the same code reads: one of these kinds stands for all of them, a
// different one for each field. In the long form (`make test-long`) each is tried.
func (v fieldInventory) tries(kind, path string, p proof) bool {
	list := v.alike[p.of(path)]
	return long() || len(list) == 0 || kind == list[crc32.ChecksumIEEE([]byte(path))%uint32(len(list))]
}

// runTwice are two runs of the same.
type runTwice struct {
	once          sync.Once
	first, second string
}

// twice tells of two runs of the same, which are made once for all fields that need them.
func (v fieldInventory) twice(t *testing.T, kind, config string, p proof) (first, second string) {
	name := fmt.Sprintf("%s %s %s %s %q %q %v", kind, config, p.input, p.scene, p.chain, p.before, p.waits)
	value, _ := v.told.LoadOrStore(name, &runTwice{})
	runs := value.(*runTwice)
	runs.once.Do(func() {
		runs.first = v.bench(t, kind, config, p)
		runs.second = runs.first
		// What differs by chance does so in all runs of a scene: it is looked for in one, in the long form in each. A slow one takes its time.
		_, seen := v.told.LoadOrStore("scene "+kind+" "+p.scene, true)
		if p.scene != "slow" && (!seen || long()) {
			runs.second = v.bench(t, kind, config, p)
		}
	})
	return runs.first, runs.second
}

// check goes through all fields of all kinds of the family that this program can run.
func (v fieldInventory) check(t *testing.T) {
	v.told, v.alike = &sync.Map{}, map[string][]string{}
	found := map[string]bool{}
	for _, k := range NodeKinds() {
		if k.Type != v.family {
			continue
		}
		found[k.Name] = true
		own := shapeOfKind(t, k.Name)
		proofs := map[string]proof{}
		maps.Copy(proofs, v.every)
		for name := range proofs {
			if _, has := v.kinds[k.Name][name]; !has && !slices.Contains(own.paths(""), name) {
				t.Errorf("%s has no field %s, for which there is an entry", k.Name, name)
			}
		}
		maps.Copy(proofs, v.kinds[k.Name])
		for path, p := range proofs { // order does not matter: each is of a place of its own
			v.alike[p.of(path)] = append(v.alike[p.of(path)], k.Name)
		}
		t.Run(k.Subtype, func(t *testing.T) {
			t.Parallel()
			v.walk(t, k.Name, own, proofs)
		})
	}
	for name := range v.kinds { // order does not matter: each is told by itself
		if !found[name] {
			t.Errorf("there are entries for %s, which is not among the kinds that run", name)
		}
	}
	if v.sample == "" {
		return
	}
	t.Run("shared", func(t *testing.T) {
		t.Parallel()
		v.walk(t, v.sample, &shape{fields: node.CommonFields()}, v.shared)
	})
}

func (v fieldInventory) walk(t *testing.T, kind string, s *shape, proofs map[string]proof) {
	paths := s.paths("")
	for _, path := range slices.Sorted(maps.Keys(proofs)) {
		if !slices.Contains(paths, path) {
			t.Errorf("%s has no field %s, for which there is an entry", kind, path)
		}
	}
	for _, path := range paths {
		p, ok := proofs[path]
		if !ok {
			t.Errorf("nothing shows what %s does in %s; add an entry", path, kind)
			continue
		}
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			v.try(t, kind, path, p)
		})
	}
	for _, name := range s.dropped {
		if told := fieldProblems(t, kind, configOf(t, "", name, `"x"`), name); !strings.Contains(told, "ignored") {
			t.Errorf("%s drops %s and says %q", kind, name, told)
		}
	}
}

func (v fieldInventory) try(t *testing.T, kind, path string, p proof) {
	tried := v.tries(kind, path, p)
	if p.kind != "" {
		kind = p.kind
	}
	if p.told != "" {
		if told := fieldProblems(t, kind, configOf(t, p.with, path, p.other), path); !strings.Contains(told, p.told) {
			t.Errorf("%s = %s is told as %q; want %q", path, p.other, told, p.told)
		}
		return
	}
	if p.label {
		if !strings.HasSuffix(path, "name") && !strings.HasSuffix(path, "description") {
			t.Errorf("%s is said to be a label", path)
		}
		return
	}
	if p.shown != "" {
		if !v.hasTest(t, p.shown) || p.why == "" {
			t.Errorf("there is no test %s, which is to show what %s does, or no reason why no two runs do", p.shown, path)
		}
		return
	}
	if !tried {
		return
	}
	one, other := configOf(t, p.with, path, p.one), configOf(t, p.with, path, p.other)
	first, again := v.twice(t, kind, one, p)
	if first != again {
		t.Fatalf("two runs of the same differ, so that the field would not be noticed:\n%s\n%s", first, again)
	}
	if changed := v.bench(t, kind, other, p); first == changed {
		t.Errorf("%s of %s changes nothing: with %s and with %s it is\n%s", path, kind, one, other, changed)
	}
}

// hasTest says whether there is a test of a name: of this package or builtin, or of the package in front of the name.
func (v fieldInventory) hasTest(t *testing.T, name string) bool {
	t.Helper()
	dirs := []string{"app", "builtin"}
	if dir, rest, ok := strings.Cut(name, "."); ok {
		dirs, name = []string{dir}, rest
	}
	for _, dir := range dirs {
		value, _ := v.told.LoadOrStore("tests of "+dir, sync.OnceValue(func() string { return testFiles(t, dir) }))
		if strings.Contains(value.(func() string)(), "\nfunc "+name+"(t *testing.T)") {
			return true
		}
	}
	return false
}

// testFiles is the text of all tests of a package.
func testFiles(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		all.Write(fileText(t, file))
	}
	return all.String()
}

// shape are the fields of a configuration.
type shape struct {
	fields  []node.Field
	dropped []string
}

// shapeOfKind are the fields of a kind's own configuration.
func shapeOfKind(t *testing.T, name string) *shape {
	t.Helper()
	k, ok := theKinds().Get(name)
	if !ok {
		t.Fatalf("there is no kind %s", name)
	}
	return &shape{k.Fields(), k.Dropped()}
}

// paths are the fields by name, those of objects below them with dots.
func (s *shape) paths(prefix string) []string {
	var list []string
	for _, f := range s.fields {
		list = append(list, prefix+f.Name)
		list = append(list, (&shape{fields: f.Fields}).paths(prefix+f.Name+".")...)
	}
	return list
}

// configOf are configurations with a field set to a value.
func configOf(t *testing.T, with, path, value string) string {
	t.Helper()
	parts := []string{}
	if with != "" {
		parts = append(parts, with)
	}
	if whole, ok := strings.CutPrefix(value, "@"); ok {
		parts = append(parts, whole)
	} else if value != "" {
		names := strings.Split(path, ".")
		for i, name := range slices.Backward(names) {
			if value = fmt.Sprintf("%q: %s", name, value); i > 0 {
				value = "{" + value + "}"
			}
		}
		parts = append(parts, value)
	}
	config := "{" + strings.Join(parts, ", ") + "}"
	if !json.Valid([]byte(config)) {
		t.Fatalf("%s is not JSON", config)
	}
	return config
}

// listIndex matches the place in a list.
var listIndex = regexp.MustCompile(`\[\d+\]`)

// fieldProblems is what validation says about a field of a node, in its own words.
func fieldProblems(t *testing.T, kind, config, path string) string {
	t.Helper()
	known, ok := Kinds().Kind(kind)
	if !ok {
		t.Fatalf("there is no kind %s", kind)
	}
	typ, subtype, _ := strings.Cut(kind, ".")
	_, problems := known.Plan(&workflow.Node{ID: "n", Name: "n", Type: typ, Subtype: subtype, Configurations: json.RawMessage(config)})
	var told []string
	for _, p := range problems {
		at := listIndex.ReplaceAllString(p.Path, "")
		of := strings.HasPrefix("configurations."+path, at+".") && at != "configurations" // of what it is a part of
		if of || strings.HasPrefix(at, "configurations."+path) {
			told = append(told, p.Message)
		}
	}
	return strings.Join(told, "; ")
}
