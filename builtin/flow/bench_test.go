package flow_test

import (
	"context"
	"testing"

	"tandem/node/nodetest"
)

// A node may cost some microseconds beside the journal; these are the cheapest ones.
func BenchmarkKinds(b *testing.B) {
	for _, c := range []struct{ kind, config, input string }{
		{"CALL.EMPTY", `{}`, `{"a": 1}`},
		{"FLOW.IF", `{"condition_expression": "a == 1", "timeout": 5}`, `{"a": 1, "b": "x"}`},
		{"FLOW.SORT", `{"sort_field": "a"}`, `{"data": [{"a": 3}, {"a": 2}, {"a": 1}]}`},
	} {
		b.Run(c.kind, func(b *testing.B) {
			k, call := kinds().Kind(b, c.kind), nodetest.NewCall(b, c.config, c.input)
			for b.Loop() {
				if _, err := k.Run(context.Background(), call); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("FLOW.FOR_EACH", func(b *testing.B) {
		scope := kinds().Kind(b, "FLOW.FOR_EACH").Scope
		call := nodetest.NewCall(b, `{}`, `{"data": [1, 2, 3]}`)
		for b.Loop() {
			if _, err := scope.Iteration(call, nil, 1); err != nil {
				b.Fatal(err)
			}
		}
	})
}
