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

	"tandem/fault"
	"tandem/standby"
	"tandem/store"
	"tandem/store/postgres"
	"tandem/store/sqlite"
	"tandem/store/sqlite/datadir"
)

// openStore opens the database at an address, or the one in the data directory when there is none. Existing refuses one that has no
// data. Lock is the right to open a database elsewhere that was waited for; nil: it was not.
func openStore(ctx context.Context, dir, address string, existing bool, lock *postgres.Lock) (Store, error) {
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
	db, err := postgres.OpenOwned(ctx, postgres.Options{URL: address, Existing: existing, Lock: lock})
	if err != nil {
		return nil, err
	}
	held, err := datadir.Lock(dir)
	if err != nil {
		if f, ok := errors.AsType[*fault.Error](err); ok && f.Details[store.InUse] != nil {
			// What has the directory open has another database, so that it cannot be asked instead.
			err = fault.Newf(fault.Conflict, "the data directory %q is in use by a process that has another database; name another directory with --data", dir).WithCause(err)
		}
		return nil, closing(err, db)
	}
	return &besideDirectory{db, held}, nil
}

// besideDirectory is a database elsewhere, with the data directory that this process keeps its files and keys in.
type besideDirectory struct {
	*postgres.Owned
	lock *os.File
}

// Close implements [Store]. The directory is let go first: who waits for the database may want it as well.
func (b *besideDirectory) Close() error { return errors.Join(b.lock.Close(), b.Owned.Close()) }

// there refuses a data directory that has no database.
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

// openOrStandBy opens an instance. While another process owns its database, requests that come in are forwarded to that one; the listener that is returned
// is for those that come after. Without an error and an instance it was told to stop.
func openOrStandBy(ctx context.Context, o ServeOptions, options Options, listener net.Listener) (*Instance, net.Listener, error) {
	i, err := Open(ctx, options)
	if o.Database == "" || !isInUse(err) {
		return i, listener, err
	}
	o.Log.Info("another process owns the database: requests are forwarded to it, until it is gone")
	relay := standby.NewRelay(listener)
	options.lock, err = standby.Serve(ctx, relay.Listen(false), standby.Options{Database: o.Database, Version: cmp.Or(o.Version, "dev"), Log: o.Log, Ready: func() {
		if o.Started != nil {
			o.Started(Serving{URL: "http://" + reachable(listener.Addr()), Database: whereIs(o.Database), StandsBy: true})
		}
	}})
	if err == nil {
		o.Log.Info("the database is free: this process owns it from now on")
		i, err = Open(ctx, options)
	}
	if err != nil {
		err = errors.Join(err, relay.Close())
		if ctx.Err() != nil {
			o.Log.Info("stopping", "reason", err)
			err = nil
		}
		return nil, nil, err
	}
	return i, relay.Listen(true), nil
}

// announce says where others that use the same database reach this server.
func (i *Instance) announce(ctx context.Context, url string) error {
	if db, ok := i.db.(*besideDirectory); ok {
		return db.Announce(ctx, url)
	}
	return nil
}
