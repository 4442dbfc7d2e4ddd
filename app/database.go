package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"tandem/fault"
	"tandem/route"
	"tandem/standby"
	"tandem/store/postgres"
	"tandem/store/sqlite"
	"tandem/store/sqlite/datadir"
)

// openStore opens the database at an address, or the one in the data directory when there is none. Existing refuses one that has no
// data. Lock is the right to open a database elsewhere, if this process has waited for it; nil: it has not.
func openStore(ctx context.Context, o *Options) (Store, error) {
	dir, address, existing, lock := o.Dir, o.Database, o.Existing, o.lock
	if o.Cluster != nil && address == "" {
		return nil, fault.New(fault.Invalid, "executions on Temporal need a database of PostgreSQL, which all servers and workers reach; name it with --database (TANDEM_DATABASE)")
	}
	if address == "" {
		if existing {
			if err := there(ctx, dir); err != nil {
				return nil, err
			}
		}
		db, err := sqlite.Open(ctx, sqlite.Options{Dir: dir})
		if err != nil {
			return nil, err
		}
		return db, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		err = fmt.Errorf("make the data directory: %w", err)
		if lock != nil {
			err = errors.Join(err, lock.Close())
		}
		return nil, err
	}
	if o.Cluster != nil && o.Cluster.Works() {
		m, err := postgres.Join(ctx, address)
		if err != nil {
			return nil, err
		}
		return m, nil
	}
	var held *os.File
	db, err := postgres.OpenOwned(ctx, postgres.Options{URL: address, Existing: existing, Lock: lock, Shared: o.Cluster != nil,
		Before: func(ctx context.Context, begun bool) (err error) {
			if held, err = lockBeside(ctx, dir, lock != nil); err != nil || begun {
				return err
			}
			return datadir.BesideNew(dir)
		}})
	if err != nil {
		if held != nil {
			err = errors.Join(err, datadir.Unlock(held))
		}
		return nil, err
	}
	beside := &besideDirectory{db, held}
	// The directory is in use from now on. Files that a restore has left must not let another restore take it for unused.
	if err := os.RemoveAll(filepath.Join(dir, datadir.RestoreDir)); err != nil {
		return nil, errors.Join(fmt.Errorf("remove what a restore has left: %w", err), beside.Close())
	}
	return beside, nil
}

// How long a process that has waited for a database waits for the directory, and how often it looks. A process that ends frees the
// directory first. One that has only lost its connection to the database keeps it, and gets the database back if it is not free by then.
const (
	directoryPatience = 10 * time.Second
	directoryPause    = 100 * time.Millisecond
)

// lockBeside takes the data directory that belongs to a database elsewhere. Waited says that this process has waited for the database, so
// that the process before it may still have both.
func lockBeside(ctx context.Context, dir string, waited bool) (*os.File, error) {
	for patience := time.Now().Add(directoryPatience); ; {
		held, err := datadir.Lock(dir)
		if !isInUse(err) {
			return held, err
		}
		if !waited {
			// The process that has the directory open uses another database, so that requests cannot go to it instead.
			return nil, fault.Newf(fault.Conflict, "the data directory %q is in use by a process that has another database; name another directory with --data", dir).WithCause(errors.New(err.Error()))
		}
		if time.Now().After(patience) {
			return nil, err
		}
		select {
		case <-time.After(directoryPause):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// besideDirectory is a database elsewhere, with the data directory that this process keeps its files and keys in.
type besideDirectory struct {
	*postgres.Owned
	lock *os.File
}

// Close implements [Store]. The directory is released first: the process that waits for the database may need it as well.
func (b *besideDirectory) Close() error {
	return errors.Join(datadir.Unlock(b.lock), b.Owned.Close())
}

// there returns an error for a data directory that has no database.
func there(ctx context.Context, dir string) error {
	if _, err := os.Stat(filepath.Join(dir, datadir.DatabaseFile)); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := datadir.Sound(ctx, dir); err != nil {
		return err
	}
	return fault.Newf(fault.NotFound, "there is no data in %q; name the data directory with --data, or a server with --server", dir)
}

// whereIs is where a database is that was opened, without a password; empty: in the data directory.
func whereIs(address string) string {
	where, err := postgres.Where(address)
	if err != nil {
		return "" // there is none
	}
	return where
}

// standByPause is how long a server that stands by waits after it could not open the database, before it tries again.
const standByPause = time.Second

// openOrStandBy opens an instance. While another process owns its database, requests that come in are forwarded to that one; the listener
// that is returned is for those that come after, and the turn has the streams that go on. Without an instance or an error it was stopped.
func openOrStandBy(
	ctx context.Context, o ServeOptions, options Options, listener net.Listener,
) (*Instance, net.Listener, *standby.Turn, error) {
	i, err := Open(ctx, options)
	if o.Database == "" || !isInUse(err) {
		return i, listener, nil, err
	}
	proxies, err := route.ParseProxies(o.Proxies)
	if err != nil {
		return nil, nil, nil, err
	}
	o.Log.Info("another process owns the database: requests are forwarded to it, until it is gone")
	relay := standby.NewRelay(listener)
	by := standby.Options{
		Database: o.Database, Version: cmp.Or(o.Version, "dev"), Proxies: proxies, Log: o.Log,
		Streams: func(ctx context.Context) (standby.Streams, error) { return openStreams(ctx, o, options, listener) },
		Ready: sync.OnceFunc(func() {
			if o.Started != nil {
				o.Started(Serving{URL: "http://" + reachable(listener.Addr()), Database: whereIs(o.Database), StandsBy: true})
			}
		}),
	}
	for {
		var turn *standby.Turn
		if turn, err = standby.Serve(ctx, relay.Listen(false), by); err == nil {
			o.Log.Info("the database is free: this process owns it from now on")
			owning := options
			owning.lock = turn.Lock
			if i, err = Open(ctx, owning); err == nil {
				return i, relay.Listen(true), turn, nil
			}
			err = errors.Join(err, turn.Close())
		}
		if ctx.Err() != nil {
			o.Log.Info("stopping", "reason", err)
			return nil, nil, nil, relay.Close()
		}
		switch {
		case isInUse(err):
			o.Log.Warn("the process that had the database still has the data directory: it gets the database back", "error", err)
		case postgres.Passes(err):
			o.Log.Warn("the database cannot be opened now: this process stands by again", "error", err)
			select {
			case <-time.After(standByPause):
			case <-ctx.Done():
			}
		default:
			return nil, nil, nil, errors.Join(err, relay.Close())
		}
	}
}

// announce stores the address under which other servers on the same database reach this one.
func (i *Instance) announce(ctx context.Context, url string) error {
	if db, ok := i.db.(*besideDirectory); ok {
		return db.Announce(ctx, url)
	}
	return nil
}
