package local

import (
	"sync/atomic"
	"testing"

	"tandem/engine"
)

// However many brief runs there are, each is done once, and how they have ended is told in their order.
func TestShareBrief(t *testing.T) {
	t.Parallel()
	for _, count := range []int{0, 1, 2*briefShare - 1, 2 * briefShare, maxBrief, maxBrief + 7} {
		list := make([]briefRun, count)
		for n := range list {
			list[n].said = &said{attempt: engine.Attempt{Attempt: uint32(n)}}
		}
		var done atomic.Int64
		var ended []uint32
		shareBrief(list, func(b *briefRun) outcome {
			done.Add(1)
			return outcome{attempt: b.said.attempt}
		}, func(m outcome) { ended = append(ended, m.attempt.Attempt) })
		if len(ended) != count || int(done.Load()) != count {
			t.Errorf("%d of %d were done, and %d have ended", done.Load(), count, len(ended))
		}
		for n, attempt := range ended {
			if int(attempt) != n {
				t.Errorf("of %d: number %d is %d", count, n, attempt)
			}
		}
	}
}
