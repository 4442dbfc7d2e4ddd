package app

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/builtin"
	"tandem/mcp"
	"tandem/memory"
	"tandem/node"
	"tandem/workflow"
)

// The catalogue and the kinds themselves both say what a workflow may contain. While both exist each is the other's referee.

func refereeRegistry() *node.Registry {
	var r node.Registry
	r.Register(builtin.Kinds(builtin.Options{Memories: memory.New(memory.Options{}), Models: &builtin.Models{}, Tools: &mcp.Pool{}, Agents: agents{}})...)
	return &r
}

// oldShape is what the catalogue says of a whole configuration.
func oldShape(name string) *shape {
	typ, subtype, _ := strings.Cut(name, ".")
	common := map[string]string{"TRIGGER": triggerCommon, "TOOL": toolCommon, "MEMORY": memoryCommon, "HUMAN_IN_THE_LOOP": humanCommon}[typ]
	for family, kinds := range map[string][]kind{"TRIGGER": triggerKinds(), "AI_AGENT": agentKinds(), "ACTION": actionKinds(), "FLOW": flowKinds(), "CALL": callKinds(), "TOOL": toolKinds(), "MEMORY": memoryKinds(), "HUMAN_IN_THE_LOOP": humanKinds()} {
		for _, k := range kinds {
			if family == typ && k.subtype == subtype {
				return parseShape(commonConfig, common, k.config)
			}
		}
	}
	return nil
}

func planText(p workflow.Plan) string {
	slices.SortFunc(p.Expressions, func(a, b workflow.Expression) int { return strings.Compare(a.Path, b.Path) })
	slices.Sort(p.Shielded)
	slices.Sort(p.Bound)
	if p.Keys == nil {
		p.KeyAliases["(keys)"] = "nil"
	}
	raw, _ := json.MarshalIndent(p, "", " ")
	return string(raw)
}

// knownDifference matches what one of the two says on purpose and the other does not.
var knownDifference = regexp.MustCompile(strings.Join([]string{
	`as the default while default_output_key is`, // not said of a default_output_key that is refused itself
	`(is no|is not a) tool of`,
	`\[""\]: ""`,                     // the catalogue takes a text for an object with an empty name
	`configurations\.options\.\w+: `, // the kind knows the options of a format
	`\[\d+\]" must be (a text|a number|an object|a whole number|a text or a number or true or false), not`, // the kinds know what their lists hold
}, "|"))

// oncePerPath leaves out what is said of a value that is refused already.
func oncePerPath(list []workflow.Problem) []workflow.Problem {
	refused := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(list), func(p workflow.Problem) bool {
		again := refused[p.Path] && p.Code == workflow.ProblemConfig || refused[p.Path] && p.Severity == workflow.SeverityWarning
		refused[p.Path] = refused[p.Path] || p.Severity != workflow.SeverityWarning
		return again
	})
}

func problemLines(list []workflow.Problem) []string {
	var lines []string
	for _, p := range list {
		lines = append(lines, fmt.Sprintf("%s %s %s: %s", p.Severity, p.Code, p.Path, p.Message))
	}
	slices.Sort(lines)
	return slices.DeleteFunc(lines, func(line string) bool { return knownDifference.MatchString(line) })
}

// moved matches the kinds that describe themselves.
var moved = regexp.MustCompile(`^(AI_AGENT|HUMAN_IN_THE_LOOP|FLOW|CALL|TRIGGER|ACTION|TOOL|MEMORY)\.`)

// agreed says how the two differ about a node; empty: they do not.
func agreed(old, now workflow.Kinds, n *workflow.Node) string {
	a, okA := old.Kind(n.Kind())
	b, okB := now.Kind(n.Kind())
	if !okA || !okB {
		return ""
	}
	planA, problemsA := a.Plan(n)
	planB, problemsB := b.Plan(n)
	if workflow.HasErrors(problemsA) && workflow.HasErrors(problemsB) {
		// What a node that cannot be used would do is a guess, which need not be the same.
		guess := func(p workflow.Problem) bool { return strings.Contains(p.Message, "on_unknown does nothing") }
		problemsA, problemsB = slices.DeleteFunc(problemsA, guess), slices.DeleteFunc(problemsB, guess)
	}
	if itemType := regexp.MustCompile(`\[\d+\]" must be a (text|number|whole)`); slices.ContainsFunc(problemsB, func(p workflow.Problem) bool { return itemType.MatchString(p.Message) }) {
		return "" // the kinds know what their lists hold, and look no further
	}
	problemsA, problemsB = oncePerPath(problemsA), oncePerPath(problemsB)
	diff := cmp.Diff(strings.Join(problemLines(problemsA), "\n"), strings.Join(problemLines(problemsB), "\n"))
	if !workflow.HasErrors(problemsA) || !workflow.HasErrors(problemsB) {
		diff += cmp.Diff(planText(planA), planText(planB))
	} else if len(problemsA) > 0 { // a node with errors does not run: what it would be is not compared beyond its keys
		diff += cmp.Diff(fmt.Sprint(planA.OnError, planA.TimeoutMS, planA.Disabled), fmt.Sprint(planB.OnError, planB.TimeoutMS, planB.Disabled))
	}
	if diff != "" && cmp.Diff(a.Scope, b.Scope) != "" {
		diff += "scope differs"
	}
	return diff
}

func TestReferee_Fuzz(t *testing.T) {
	t.Parallel()
	old, now := theCatalogue(), refereeRegistry()
	for _, name := range now.Names() {
		if !moved.MatchString(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := oldShape(name)
			rng := rand.New(rand.NewPCG(7, 9))
			bad := 0
			seen := map[string]bool{}
			for range 600 {
				config := fuzzObject(rng, s, true, 0)
				typ, subtype, _ := strings.Cut(name, ".")
				n := &workflow.Node{ID: "n", Name: "n", Type: typ, Subtype: subtype, Configurations: json.RawMessage(config)}
				if diff := agreed(old, now, n); diff != "" {
					key := regexp.MustCompile(`\[?\d+\]?|"[^"]*"`).ReplaceAllString(diff, "#")
					if seen[key] {
						continue
					}
					seen[key] = true
					if bad++; bad > 8 {
						t.Fatalf("and so on")
					}
					t.Errorf("%s\n%s", config, diff)
				}
			}
		})
	}
}

func fuzzObject(rng *rand.Rand, s *shape, top bool, depth int) string {
	var parts []string
	some := 0.1 + rng.Float64()*0.5
	for _, f := range s.fields {
		chance := some
		if top && slices.Contains([]string{"timeout", "max_retries", "on_error", "default_output", "on_unknown", "enabled", "credential_id", "template_id", "enable_filling", "filling_profile", "to_user", "credit_cost"}, f.name) {
			chance = 0.03
		}
		if f.required {
			chance = 0.93
		}
		if rng.Float64() > chance {
			continue
		}
		name := f.name
		for o, n := range s.older {
			if n == name && rng.Float64() < 0.1 {
				name = o
			}
		}
		parts = append(parts, fmt.Sprintf("%q: %s", name, fuzzValue(rng, &f, depth)))
	}
	for _, d := range s.dropped {
		if rng.Float64() < 0.02 {
			parts = append(parts, fmt.Sprintf("%q: 1", d))
		}
	}
	if rng.Float64() < 0.02 {
		parts = append(parts, `"surely_not": 1`)
	}
	if top && rng.Float64() < 0.02 {
		parts = append(parts, `"api_key": "x"`)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func fuzzValue(rng *rand.Rand, f *field, depth int) string {
	pick := func(list ...string) string { return list[rng.IntN(len(list))] }
	if rng.Float64() < 0.06 {
		return pick(`"{{x}}"`, `"${y}"`, `null`, `5`, `-3`, `"text"`, `true`, `[]`, `{}`, `["a"]`, `1.5`, `"{{$placeholder}}"`, `[5]`, `[null]`)
	}
	t := pick(f.types...)
	if f.enum != nil && t != "list" {
		v := pick(append(slices.Clone(f.enum), f.older...)...)
		if t == "int" {
			return v
		}
		if rng.Float64() < 0.1 {
			v = strings.ToUpper(v)
		}
		return fmt.Sprintf("%q", v)
	}
	switch t {
	case "int", "num":
		lo, hi := -5.0, 50.0
		if f.lo != nil {
			lo = *f.lo
		}
		if f.hi != nil {
			hi = *f.hi
		}
		n := lo + rng.Float64()*(hi-lo)
		if rng.Float64() < 0.1 {
			n = pickNumber(rng, lo, hi)
		}
		if t == "int" {
			return fmt.Sprint(int64(n))
		}
		return fmt.Sprintf("%g", float64(int64(n*10))/10)
	case "bool":
		return pick("true", "false")
	case "obj":
		if f.inner != nil {
			return fuzzObject(rng, f.inner, false, depth+1)
		}
		return pick(`{}`, `{"a": "item.b > 1", "b": "x"}`, `{"type": "object", "properties": {"a": {"type": "string"}}}`, `{"statement": "s"}`)
	case "list":
		var items []string
		for range rng.IntN(4) {
			switch {
			case f.inner != nil && (rng.Float64() < 0.9 || !slices.Contains(f.types, "any")):
				items = append(items, fuzzObject(rng, f.inner, false, depth+1))
			case f.enum != nil:
				items = append(items, fmt.Sprintf("%q", pick(f.enum...)))
			default:
				items = append(items, pick(`"a"`, `"b"`, `"approve"`, `"timeout"`, `"person"`, `"x@example.com"`, `"role:approver"`))
			}
		}
		return "[" + strings.Join(items, ", ") + "]"
	case "expr":
		return pick(`"data.x > 1"`, `"steps.a.b"`, `true`, `"1 +"`)
	case "sql":
		return pick(`"select 1"`, `"select {{a}}"`)
	case "code":
		return pick(`"def main(x): return x"`, `"x => x"`)
	}
	return pick(`"a"`, `"some text"`, `"{{x}} and more"`, `"deployed"`, `"2 days"`, `"approve"`, `"Wort"`)
}

func pickNumber(rng *rand.Rand, lo, hi float64) float64 {
	return []float64{lo, hi, lo - 1, hi + 1, 0, 1}[rng.IntN(6)]
}

// TestReferee_Files compares the two on every node of every workflow that this repository has.
func TestReferee_Files(t *testing.T) {
	t.Parallel()
	old, now := theCatalogue(), refereeRegistry()
	nodes, bad := 0, 0
	node := regexp.MustCompile(`(?s)type: ([A-Z_]+), subtype: ([A-Z_]+)(?:, configurations: (\{.*))?`)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(path, "/.git/") {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var found []workflow.Node
		switch filepath.Ext(path) {
		case ".yaml", ".yml", ".json":
			if source, _ := workflow.Parse(raw, workflow.Options{Kinds: old}); source != nil {
				found = source.Definition.Nodes
			}
		case ".go", ".txtar", ".md":
			for _, line := range strings.Split(string(raw), "\n") {
				m := node.FindStringSubmatch(line)
				if m == nil {
					continue
				}
				config := m[3]
				for end := len(config); end > 0; end-- { // the longest that is an object
					if config[end-1] != '}' {
						continue
					}
					one := fmt.Sprintf("metadata: {name: n}\nnodes: [{id: n, type: %s, subtype: %s, configurations: %s}]", m[1], m[2], config[:end])
					if source, _ := workflow.Parse([]byte(one), workflow.Options{Kinds: old}); source != nil && len(source.Definition.Nodes) == 1 {
						found = append(found, source.Definition.Nodes...)
						break
					}
				}
			}
		}
		for i := range found {
			nodes++
			if !moved.MatchString(found[i].Kind()) {
				continue
			}
			if diff := agreed(old, now, &found[i]); diff != "" && bad < 20 {
				bad++
				t.Errorf("%s: %s %s\n%s", path, found[i].Kind(), found[i].Configurations, diff)
			}
		}
		return nil
	})
	if err != nil || nodes < 200 {
		t.Errorf("%d nodes, %v", nodes, err)
	}
	t.Logf("%d nodes", nodes)
}
