package workflow

import (
	"encoding/json"
	"fmt"
	"testing"
)

// largeDefinition is a workflow with n nodes and about 2n connections: a trigger, then stages of a fan-out and its join,
// every tenth stage inside a loop, with placeholders between neighbours.
func largeDefinition(n int) *Definition {
	def := &Definition{Metadata: Metadata{Name: "large", Version: "1.0"}}
	add := func(kind Node) string {
		kind.ID = fmt.Sprintf("n%d", len(def.Nodes))
		kind.Name = kind.ID
		kind.Description = "d"
		kind.InputParams = json.RawMessage(`{"a":"{{x}}"}`)
		def.Nodes = append(def.Nodes, kind)
		return kind.ID
	}
	link := func(from, key, to string) {
		def.Connections = append(def.Connections, Connection{
			ID: fmt.Sprintf("c%d", len(def.Connections)), FromNode: from, ToNode: to, OutputKey: key,
		})
	}
	plain := Node{Type: "CALL", Subtype: "EMPTY"}
	last, key := add(Node{Type: "TRIGGER", Subtype: "MANUAL"}), "result"
	for stage := 0; len(def.Nodes)+6 <= n; stage++ {
		loop := ""
		if stage%10 == 0 {
			loop = add(Node{Type: "FLOW", Subtype: "LOOP"})
			link(last, key, loop)
			last, key = loop, "iteration"
		}
		head := add(plain)
		link(last, key, head)
		tail := add(Node{Type: "FLOW", Subtype: "MERGE", Configurations: json.RawMessage(`{"first":true}`)})
		for range 3 {
			b := add(plain)
			link(head, "result", b)
			link(b, "result", tail)
		}
		link(head, "result", tail)
		last, key = tail, "result"
		if loop != "" {
			link(tail, "result", loop)
			last, key = loop, "completed"
		}
	}
	for len(def.Nodes) < n {
		next := add(plain)
		link(last, key, next)
		last, key = next, "result"
	}
	return def
}

func testRules() Rules {
	return Rules{Kinds: newKinds(), References: fakeReferences, Expression: fakeExpression, Conversion: fakeConversion}
}

func BenchmarkParseValidateCompile(b *testing.B) {
	for _, n := range []int{10, 1000, 100_000} {
		data := Encode(largeDefinition(n))
		rules := testRules()
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				s, problems := Parse(data, Options{Kinds: rules.Kinds})
				if s == nil || HasErrors(problems) {
					b.Fatal(problems)
				}
				if problems := s.Validate(rules); HasErrors(problems) {
					b.Fatal(problems)
				}
				if g, problems := Compile(s.Definition, rules.Kinds); g == nil {
					b.Fatal(problems)
				}
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	for _, n := range []int{10, 1000, 100_000} {
		def := largeDefinition(n)
		kinds := newKinds()
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if g, problems := Compile(def, kinds); g == nil {
					b.Fatal(problems)
				}
			}
		})
	}
}
