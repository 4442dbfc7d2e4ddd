package live

import (
	"sync"

	"tandem/engine"
	"tandem/host"
)

// Runs lets go of what the runs of a process have handed out when they have ended: their outcome may count for nothing, since another
// process has recorded one, and then no row of this one tells of the end.
type Runs struct {
	hub *host.Hub

	mu sync.Mutex
	// goOn are runs that are about to end and after which the activation goes on, now or later: its output stays.
	goOn map[run]struct{}
}

type run struct {
	ref host.Ref
	at  engine.Attempt
}

// NewRuns is for the runs whose output a hub is told.
func NewRuns(hub *host.Hub) *Runs { return &Runs{hub: hub, goOn: map[run]struct{}{}} }

// Recorded takes in a row that this process has recorded; the runs whose outcomes it has end after that.
func (r *Runs) Recorded(ref host.Ref, row *host.Row) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, fact := range row.Facts {
		switch f := fact.(type) {
		case engine.NodeSuspended:
			r.goOn[run{ref, f.Attempt}] = struct{}{}
		case engine.ScopeOpened:
			r.goOn[run{ref, f.Attempt}] = struct{}{}
		case engine.ScopeAdvanced:
			r.goOn[run{ref, f.Attempt}] = struct{}{}
		}
	}
}

// Ended is told of every run, when it has ended and its outcome was recorded or given up.
func (r *Runs) Ended(ref host.Ref, at engine.Attempt) {
	r.mu.Lock()
	_, goesOn := r.goOn[run{ref, at}]
	delete(r.goOn, run{ref, at})
	r.mu.Unlock()
	if !goesOn {
		r.hub.Ended(ref, at)
	}
}
