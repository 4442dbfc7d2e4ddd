package app

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"tandem/budget"
	"tandem/cluster"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/host/local"
	"tandem/host/temporal"
	"tandem/live"
	"tandem/store"
	"tandem/store/postgres"
)

// known hands a row that is on disk to everything in this process that follows rows.
func (i *Instance) known(ref store.Ref, row host.Row, commands []engine.Command) {
	if budget.Settled(row) {
		i.purse.Wake()
	}
	for _, c := range commands {
		if w, ok := c.(engine.Withdraw); ok {
			if err := i.purse.Withdrawn(ref, w.Ask); err != nil {
				i.log.Error("nobody asks for a budget instead of who was stopped", "execution", ref.Execution, "error", err)
			}
		}
	}
	i.changed(ref, commands)
	i.hub.Publish(host.Ref(ref), row)
	i.recorded(ref, row, commands)
}

// departing is a database that several processes share, and that reports when one of them has gone.
type departing interface {
	Departures() func(context.Context) (bool, error)
}

var _ departing = (*besideDirectory)(nil) // that of a server

// newClusterHost makes the host of a process that is part of a cluster.
func newClusterHost(e *cluster.Engine, db any) MakeHost {
	part := temporal.Server
	var gone func(context.Context) (bool, error)
	if owned, ok := db.(departing); ok {
		gone = owned.Departures()
	}
	if e.Works() {
		part = temporal.Worker
	}
	return func(ctx context.Context, o local.Options) (Host, error) {
		h, err := temporal.New(ctx, temporal.Options{
			Local: o, Client: e.Client(), TaskQueue: e.TaskQueue(), Namespace: e.Namespace(), Release: e.Release(), Part: part, Gone: gone,
		})
		if err != nil {
			return nil, err
		}
		return h, nil
	}
}

// ready says why nothing new can be begun: the store has stopped or has no room, or Temporal cannot be reached by a worker. Nil: it can.
func (i *Instance) ready() error {
	if err := i.db.Err(); err != nil {
		return err
	}
	if db, ok := i.db.(interface{ Room() error }); ok {
		if err := db.Room(); err != nil {
			return err
		}
	}
	if i.cluster == nil || !i.cluster.Works() {
		return nil
	}
	return i.cluster.Ready(context.Background())
}

// lacking reports that Temporal cannot be reached now: the server records what is started and answered, and it goes on later.
func (i *Instance) lacking(ctx context.Context) error {
	if i.cluster == nil || i.cluster.Works() {
		return nil
	}
	return i.cluster.Ready(ctx)
}

// hears is a host that takes in what other processes record.
type hears interface {
	Heard(ctx context.Context, ref store.Ref, status engine.Status) error
	HeardNothing(ctx context.Context) error
}

// follow listens to the rows that all processes of a cluster record. A worker needs to know only when a budget may have room again.
func (i *Instance) follow(ctx context.Context, o Options) error {
	h, ok := i.host.(hears)
	if o.Cluster == nil || !ok {
		return nil
	}
	ring, err := i.Keyring()
	if err != nil {
		return err
	}
	news, err := postgres.NewsOf(o.Database, ring, i.log)
	if err != nil {
		return err
	}
	db, ok := i.db.(interface{ Wire() *postgres.Wire })
	if !ok {
		return fault.New(fault.Internal, "a process of a cluster has a database without messages")
	}
	if o.Cluster.Works() {
		i.converse(live.NewTeller(i.hub, db.Wire(), i.log).Run)
		i.rows = cluster.FollowRows(cluster.RowsOptions{News: news, Source: i.source, Log: i.log,
			Row: func(_ context.Context, ref store.Ref, row host.Row) error {
				if budget.Settled(row) {
					i.purse.Wake()
				}
				i.hub.Publish(host.Ref(ref), row) // whichever process has recorded the row, a run that it ends has no more output
				return nil
			},
			Missed: func(context.Context) error { i.purse.Wake(); return nil },
		})
		return nil
	}
	follower := live.NewFollower(i.hub, i.source, nil, db.Wire(), i.log)
	i.followed = follower.Followed
	i.converse(follower.Run)
	look := &rarely{every: time.Second, do: i.desk.Look}
	answers := &rarely{every: 50 * time.Millisecond, do: func() { i.triggers.LookForAnswers(context.WithoutCancel(ctx)) }}
	i.rows = cluster.FollowRows(cluster.RowsOptions{News: news, Source: i.source, Log: i.log,
		Row: func(ctx context.Context, ref store.Ref, row host.Row) error {
			if status, changed := cluster.Status(row); changed {
				if err := h.Heard(ctx, ref, status); err != nil {
					return err
				}
			}
			follower.Recorded(host.Ref(ref), &row)
			i.known(ref, row, cluster.Commands(row))
			look.call() // a node may have told somebody something
			answers.call()
			return nil
		},
		Missed: func(ctx context.Context) error {
			follower.Missed(ctx)
			i.hub.Missed()
			i.purse.Wake()
			look.call()
			answers.call()
			return h.HeardNothing(ctx)
		},
	})
	return nil
}

// converse sends or receives output while it is written, until the instance is closed.
func (i *Instance) converse(run func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() { run(ctx) })
	i.unhear = func() {
		cancel()
		ended.Wait()
	}
}

// sealMessages encrypts the messages that processes send each other through the database, since others may connect to it. Without the
// key, as in a command with another data directory, messages hold only the names of executions, and other processes ignore them.
func (i *Instance) sealMessages() {
	db, ok := i.db.(interface {
		SealMessages(store.Seal, *slog.Logger)
	})
	if !ok {
		return
	}
	ring, err := i.Keyring()
	if err != nil {
		i.log.Warn("other processes do not hear at once what is recorded here: the master key cannot be used", "error", err)
		return
	}
	db.SealMessages(ring, i.log)
}

// rarely calls a function after a while, and at most once in that time.
type rarely struct {
	every time.Duration
	do    func()

	mu  sync.Mutex
	set bool
}

func (r *rarely) call() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.set {
		return
	}
	r.set = true
	time.AfterFunc(r.every, func() {
		r.mu.Lock()
		r.set = false
		r.mu.Unlock()
		r.do()
	})
}
