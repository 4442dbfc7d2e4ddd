package app

import (
	"context"

	"tandem/client"
	"tandem/host"
	"tandem/host/local"
	"tandem/identity"
	"tandem/store"
)

// Store is an open database of an instance; store/sqlite has the usual one.
type Store interface {
	Stores() store.Stores
	// Broken is closed when the database can no longer be written to, and Err says why. The instance has to be opened again then.
	Broken() <-chan struct{}
	Err() error
	// Close is called when the instance is closed.
	Close() error
}

// Host drives the executions of an instance; host/local has the usual one, which does so in this process.
type Host interface {
	host.Host
	// TakeUp goes on with an execution that was parked.
	TakeUp(ctx context.Context, p identity.Principal, execution string) error
	// Look says that there is something in the inbox of an execution.
	Look(ref store.Ref)
	// Own lists the executions that this host has begun or taken up; Running is how many it works on now.
	Own() []store.Ref
	Running() int
	// Drain lets nothing new begin and says whether what runs has ended before the context did. Close parks what runs.
	Drain(ctx context.Context) bool
	Close()
}

// MakeHost makes the host of an instance. The options have what executions need, and the functions that the host calls.
type MakeHost func(ctx context.Context, o local.Options) (Host, error)

func newLocalHost(ctx context.Context, o local.Options) (Host, error) { return local.New(ctx, o) }

// API is a client of the API of this instance, for programs in this process: no port is opened, and requests are those of the local
// user. Close it before the instance.
func (i *Instance) API() (api *client.Client, closeAPI func() error, err error) {
	c, err := i.connect("", nil)
	if err != nil {
		return nil, nil, err
	}
	return c.Client, c.pipe.close, nil
}
