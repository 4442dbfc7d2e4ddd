package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"tandem/credential"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/host/local"
	"tandem/identity"
	"tandem/live"
	"tandem/metrics"
	"tandem/standby"
	"tandem/store"
	"tandem/store/postgres"
)

// readStore is a database that another process owns. Nothing is written to it: streams that are read here do not count as a use
// of a token or a session. A request that is refused here is also sent to the owner, which enters the refusal in the audit log.
type readStore struct{ *postgres.DB }

// Close implements [Store].
func (r readStore) Close() error {
	r.DB.Close()
	return nil
}

// Stores implements [Store].
func (r readStore) Stores() store.Stores {
	s := r.DB.Stores()
	s.Tokens, s.Sessions, s.Audit = unnotedTokens{s.Tokens}, unnotedSessions{s.Sessions}, unnotedAudit{s.Audit}
	return s
}

type unnotedTokens struct{ store.Tokens }

// Used implements [store.Tokens].
func (unnotedTokens) Used(context.Context, identity.Principal, string, int64) error { return nil }

type unnotedSessions struct{ store.Sessions }

// Seen implements [store.Sessions].
func (unnotedSessions) Seen(context.Context, identity.Principal, string, int64) error { return nil }

type unnotedAudit struct{ store.Audit }

// Enter implements [store.Audit].
func (unnotedAudit) Enter(context.Context, identity.Principal, store.AuditEntry) error { return nil }

// noHost is the host of an instance that only reads.
type noHost struct{}

func (noHost) refusal() error {
	return fault.New(fault.NotReady, "this process only reads the database, which another owns")
}

// Start implements [host.Host].
func (h noHost) Start(context.Context, identity.Principal, host.StartRequest) (host.Started, error) {
	return host.Started{}, h.refusal()
}

// Act implements [host.Host].
func (h noHost) Act(context.Context, identity.Principal, host.Request) (engine.Status, error) {
	return "", h.refusal()
}

// Fork implements [host.Host].
func (h noHost) Fork(context.Context, identity.Principal, host.ForkRequest) (string, error) {
	return "", h.refusal()
}

// TakeUp implements [Host].
func (h noHost) TakeUp(context.Context, identity.Principal, string) error { return h.refusal() }

// Look implements [Host].
func (noHost) Look(store.Ref) {}

// Own implements [Host].
func (noHost) Own() []store.Ref { return nil }

// Running implements [Host].
func (noHost) Running() int { return 0 }

// Drain implements [Host].
func (noHost) Drain(context.Context) bool { return true }

// Close implements [Host].
func (noHost) Close() {}

// liveStreams serves readers of executions that another process runs.
type liveStreams struct {
	http.Handler
	// end ends the streams and refuses new ones, which are then forwarded.
	end  func()
	i    *Instance
	stop context.CancelFunc
	all  sync.WaitGroup
}

// openStreams opens an instance that only reads, for a server that stands by. It needs the key, to sign the addresses that readers get.
func openStreams(ctx context.Context, o ServeOptions, options Options, listener net.Listener) (_ standby.Streams, err error) {
	if options.MasterKey == "" {
		if _, err := os.Stat(filepath.Join(o.Dir, credential.KeyFile)); err != nil {
			return nil, fmt.Errorf("the key of this server is not there yet: %w", err)
		}
	}
	db, err := postgres.OpenReader(ctx, o.Database)
	if err != nil {
		return nil, err
	}
	options.Store, options.Rest, options.Recorded, options.Removed = readStore{db}, true, nil, nil
	options.Host = func(context.Context, local.Options) (Host, error) { return noHost{}, nil }
	i, err := Open(ctx, options)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, i.Close())
		}
	}()
	ring, err := i.Keyring()
	if err != nil {
		return nil, err
	}
	follower := live.NewFollower(i.hub, i.source, db.News(), db.Wire(), o.Log)
	i.followed = follower.Followed
	api, err := i.server(o, listener, metrics.New(), ring)
	if err != nil {
		return nil, err
	}
	s := &liveStreams{Handler: api.Handler(), end: sync.OnceFunc(api.Close), i: i}
	ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	s.all.Go(func() { // it ends with Close
		follower.Run(ctx)
		s.end() // without news no stream can be served
	})
	s.all.Go(func() { // it ends with Close
		select {
		case <-db.Broken():
			o.Log.Info("streams are forwarded to the server that owns the database", "reason", db.Err())
			s.end()
		case <-ctx.Done():
		}
	})
	return s, nil
}

// Close ends all streams: those who read them come back.
func (s *liveStreams) Close() error {
	s.end()
	s.stop()
	s.all.Wait()
	return s.i.Close()
}
