package local

import (
	"context"
	"iter"
	"slices"
	"testing"

	"tandem/host"
	"tandem/identity"
	"tandem/store"
)

// otherSource has one row of each execution.
type otherSource struct{ host.Source }

func (otherSource) Rows(context.Context, identity.Principal, string, uint64) iter.Seq2[host.Row, error] {
	return func(yield func(host.Row, error) bool) { yield(host.Row{Seq: 9}, nil) }
}

// Rows that are at hand are those of one execution. A fork names values of another, whose rows are read.
func TestAtHand(t *testing.T) {
	t.Parallel()
	s := atHand{otherSource{}, "x", []store.Row{{Seq: 1}, {Seq: 2}, {Seq: 3}}}
	for _, c := range []struct {
		execution string
		after     uint64
		want      []uint64
	}{{"x", 0, []uint64{1, 2, 3}}, {"x", 2, []uint64{3}}, {"x", 3, nil}, {"y", 0, []uint64{9}}} {
		var got []uint64
		for row, err := range s.Rows(t.Context(), identity.Principal{}, c.execution, c.after) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, row.Seq)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("rows of %s after %d: %v, want %v", c.execution, c.after, got, c.want)
		}
	}
}
