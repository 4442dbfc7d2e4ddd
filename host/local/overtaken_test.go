package local_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"tandem/fault"
	"tandem/host/local"
	"tandem/identity"
	"tandem/node"
	"tandem/store"
)

// refusing is a journal that refuses rows behind the first with some error, as often as that is said.
type refusing struct {
	store.Journal
	why   error
	times int
}

// Append implements store.Journal.
func (r *refusing) Append(ctx context.Context, p identity.Principal, rows ...*store.Append) error {
	if r.times > 0 && rows[0].Create == nil {
		r.times--
		return r.why
	}
	return r.Journal.Append(ctx, p, rows...)
}

// TestVisit_Overtaken has appends refused: one that was overtaken is made again, more slowly after some tries; one of a store that has
// stopped is not.
func TestVisit_Overtaken(t *testing.T) {
	t.Parallel()
	overtaken := fault.New(fault.Conflict, "another was faster")
	for name, c := range map[string]struct {
		refused refusing
		pauses  bool
	}{
		"Once":    {refused: refusing{why: overtaken, times: 1}},
		"Often":   {refused: refusing{why: overtaken, times: 50}, pauses: true},
		"Stopped": {refused: refusing{why: fault.New(fault.Conflict, "no").WithCause(fmt.Errorf("%w: why", store.ErrBroken)), times: 1000}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				refuses := c.refused
				refuses.times = 0
				s := newShop(t, func(j store.Journal) store.Journal { refuses.Journal = j; return &refuses }, func(context.Context) (node.Outcome, error) {
					return node.Done{"result": json.RawMessage(`{}`)}, nil
				})
				refuses.times = c.refused.times
				began := time.Now()
				end := <-s.run(t.Context(), s.first, s.at, local.WasNothing)
				if broken := errors.Is(c.refused.why, store.ErrBroken); broken != errors.Is(end.err, store.ErrBroken) || !broken && end.err != nil {
					t.Errorf("it comes to %+v, %v", end.next, end.err)
				}
				if paused := time.Since(began) > 0; paused != c.pauses {
					t.Errorf("there were pauses: %v", paused)
				}
			})
		})
	}
}

// TestAttend_Unreadable tells as of which row an execution has ended that cannot be read.
func TestAttend_Unreadable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, nil, func(context.Context) (node.Outcome, error) { return nil, nil })
		rows := func() (last uint64) {
			for row, err := range s.stores.Journal.Rows(t.Context(), identity.System("one"), "x", 0) {
				if err != nil {
					t.Fatal(err)
				}
				last = row.Seq
			}
			return last
		}
		damaged := &store.Append{Execution: "x", After: rows(), Time: time.Now().UnixMilli(), Body: []byte("nothing that can be read")}
		if err := s.stores.Journal.Append(t.Context(), identity.System("one"), damaged); err != nil {
			t.Fatal(err)
		}
		for _, want := range []uint64{damaged.After + 2, 0} { // whoever comes later knows only that it has ended
			next, err := s.first.Attend(s.ref)
			if err != nil || !next.Ended || !next.All || next.Seq != want || slices.Contains(next.Stop, s.at) {
				t.Errorf("it has ended with %+v, %v; want row %d", next, err, want)
			}
		}
		if last := rows(); last != damaged.After+2 {
			t.Errorf("its last row is %d", last)
		}
	})
}
