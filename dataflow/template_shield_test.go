package dataflow

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestShield_Naive compares the tree with what it stands for: a path is shielded if some shielded path is a beginning
// of it, step by step, "*" being any step.
func TestShield_Naive(t *testing.T) {
	t.Parallel()
	step := rapid.SampledFrom([]string{"a", "b", "0", "1", "*"})
	rapid.Check(t, func(rt *rapid.T) {
		patterns := rapid.SliceOfN(rapid.SliceOfN(step, 1, 4), 0, 12).Draw(rt, "shielded")
		var shielded []string
		for _, p := range patterns {
			shielded = append(shielded, strings.Join(p, "."))
		}
		isShielded := func(path []string) bool {
			for _, p := range patterns {
				match := len(p) <= len(path)
				for i := 0; i < len(p) && match; i++ {
					match = p[i] == "*" || p[i] == path[i]
				}
				if match {
					return true
				}
			}
			return false
		}
		// A value of all paths up to four steps, lists and objects in turns, whose every leaf is a placeholder.
		want := map[string]bool{}
		var build func(path []string) any
		build = func(path []string) any {
			if len(path) == 4 {
				if at := strings.Join(path, "."); !isShielded(path) {
					want[at] = true
				}
				return "{{x}}"
			}
			if len(path)%2 == 0 {
				return map[string]any{"a": build(append(path[:len(path):len(path)], "a")), "b": build(append(path[:len(path):len(path)], "b"))}
			}
			return []any{build(append(path[:len(path):len(path)], "0")), build(append(path[:len(path):len(path)], "1"))}
		}
		raw, err := json.Marshal(build(nil))
		if err != nil {
			rt.Fatal(err)
		}
		references, err := References(raw, shielded...)
		if err != nil {
			rt.Fatal(err)
		}
		got := map[string]bool{}
		for _, r := range references {
			got[strings.NewReplacer("[", ".", "]", "").Replace(r.Path)] = true
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			rt.Fatalf("shielding %q leaves %v; want %v", shielded, got, want)
		}
	})
}

// TestShield_Steps: one step into a value looks at one node of the tree, however many paths are shielded.
func TestShield_Steps(t *testing.T) {
	t.Parallel()
	const paths = 2000
	root := &shield{}
	for i := range paths {
		for _, path := range []string{fmt.Sprintf("rules[%d].when", i), fmt.Sprintf("rules[%d].code", i), fmt.Sprintf("all[*].field%d", i)} {
			end, err := root.addPath(path)
			if err != nil {
				t.Fatal(err)
			}
			end.here = true
		}
	}
	for _, path := range [][]string{{"rules", "0", "when"}, {"rules", "1999", "code"}, {"all", "7", "field1999"}} {
		left := []*shield{root}
		for i, key := range path {
			if left = under(left, key); len(left) != 1 || left[0].here != (i == len(path)-1) {
				t.Fatalf("%q: after step %d there are %d nodes; want one, that ends with the path", path, i, len(left))
			}
		}
	}
	if left := under(under([]*shield{root}, "rules"), "2000"); left != nil {
		t.Fatalf("got %v for a path that is not shielded", left)
	}
}

// BenchmarkCompile_Shielded is linear: ns/path stays the same.
func BenchmarkCompile_Shielded(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			shielded := make([]string, n)
			for i := range shielded {
				shielded[i] = fmt.Sprintf("rules[%d].code", i)
			}
			raw := json.RawMessage(`{"rules":[` + strings.Repeat(`{"code":"{{x}}"},`, n-1) + `{"code":"{{x}}"}]}`)
			for b.Loop() {
				if _, err := Compile(raw, shielded...); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/path")
		})
	}
}
