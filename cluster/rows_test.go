package cluster_test

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"tandem/cluster"
	"tandem/engine"
	"tandem/host"
	"tandem/identity"
	"tandem/store"
)

// journals are executions in memory, with news of them.
type journals struct {
	host.Source
	mu   sync.Mutex
	rows map[string]uint64
	told chan func([]store.Fresh)
}

// Listen implements [store.News].
func (j *journals) Listen(ctx context.Context, told func([]store.Fresh)) error {
	told(nil)
	j.told <- told
	<-ctx.Done()
	return context.Cause(ctx)
}

// Rows implements [host.Source].
func (j *journals) Rows(_ context.Context, _ identity.Principal, execution string, after uint64) iter.Seq2[host.Row, error] {
	j.mu.Lock()
	last := j.rows[execution]
	j.mu.Unlock()
	return func(yield func(host.Row, error) bool) {
		for seq := after + 1; seq <= last; seq++ {
			if !yield(host.Row{Seq: seq}, nil) {
				return
			}
		}
	}
}

func (j *journals) write(execution string) store.Fresh {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.rows[execution]++
	return store.Fresh{Ref: store.Ref{Workspace: "w", Execution: execution}, Seq: j.rows[execution]}
}

// TestRows: every row that there is news of is told once and in order, also when telling it fails at first; and that some may have been
// missed is told, until that has been seen to.
func TestRows(t *testing.T) {
	t.Parallel()
	j := &journals{rows: map[string]uint64{"old": 7}, told: make(chan func([]store.Fresh), 1)}
	j.rows["a"], j.rows["b"] = 0, 0
	type one struct {
		execution string
		seq       uint64
	}
	rows, missed := make(chan one, 100), make(chan int, 10)
	tries, looks := map[one]int{}, 0
	var mu sync.Mutex
	r := cluster.FollowRows(cluster.RowsOptions{News: j, Source: j, Log: slog.New(slog.DiscardHandler),
		Row: func(_ context.Context, ref store.Ref, row host.Row) error {
			mu.Lock()
			defer mu.Unlock()
			at := one{ref.Execution, row.Seq}
			if tries[at]++; tries[at] == 1 && at.execution == "b" && at.seq == 2 {
				return errors.New("not now")
			}
			rows <- at
			return nil
		},
		Missed: func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			looks++
			missed <- looks
			if looks == 1 {
				return errors.New("not now")
			}
			return nil
		},
	})
	defer r.Close()
	tell := <-j.told
	for n := range 2 {
		if got := <-missed; got != n+1 {
			t.Errorf("look %d is %d", n+1, got)
		}
	}
	tell([]store.Fresh{j.write("a"), j.write("b")})
	tell([]store.Fresh{j.write("b")})
	tell([]store.Fresh{j.write("old")}) // what was before is told by nobody
	tell([]store.Fresh{j.write("a"), j.write("b")})
	got := map[string][]uint64{}
	for range 6 {
		at := <-rows
		got[at.execution] = append(got[at.execution], at.seq)
	}
	if !slices.Equal(got["a"], []uint64{1, 2}) || !slices.Equal(got["b"], []uint64{1, 2, 3}) || !slices.Equal(got["old"], []uint64{8}) {
		t.Errorf("told %v", got)
	}
	tell(nil)
	if got := <-missed; got != 3 {
		t.Errorf("look 3 is %d", got)
	}
}

// TestCommands: what a row tells those outside.
func TestCommands(t *testing.T) {
	t.Parallel()
	row := host.Row{Seq: 4, Told: []host.Told{
		{What: host.ToldNode, Node: engine.NodeRunning, Activation: "x"},
		{What: host.ToldNode, Node: engine.NodeWaitingInput, Activation: "a", Ask: "q", Purpose: "human_node"},
		{What: host.ToldWithdrawn, Ask: "p"},
		{What: host.ToldExecution, Status: engine.StatusSuccess},
	}}
	list := cluster.Commands(row)
	if len(list) != 3 || list[0].(engine.Ask).Ask != "q" || list[1].(engine.Withdraw).Ask != "p" || list[2].(engine.Finish).Status != engine.StatusSuccess {
		t.Errorf("commands %v", list)
	}
	if status, changed := cluster.Status(row); !changed || status != engine.StatusSuccess {
		t.Errorf("status %s, %v", status, changed)
	}
	if status, changed := cluster.Status(host.Row{Seq: 1}); !changed || status != engine.StatusPending {
		t.Errorf("a beginning that waits: %s, %v", status, changed)
	}
	if _, changed := cluster.Status(host.Row{Seq: 2}); changed {
		t.Error("nothing was told")
	}
}
