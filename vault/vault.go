// Package vault has the credentials of an instance: it opens them for what runs, renews their tokens, and lets people authorize accounts
// and tool servers with a browser.
package vault

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"

	"tandem/credential"
	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

// Options say what a vault works with.
type Options struct {
	// Dir is the data directory, where the file of the key is. Key is the key itself; empty: the one in that file.
	Dir, Key    string
	Credentials store.Credentials
	// HTTP asks authorization servers and, with Dial, the services that credentials are for.
	HTTP *http.Client
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	Log  *slog.Logger
}

// New makes a vault. It does not know any type of credentials before Know is called.
func New(o Options) *Vault { return &Vault{Options: o} }

// Know says which types of credentials there are. It is called once, before the first one is opened.
func (v *Vault) Know(types credential.Types) { v.types = types }

// Redactor keeps what is opened from leaving in texts and documents.
func (v *Vault) Redactor() *credential.Redactor { return &v.redactor }

// Vault opens credentials for runs. Its key is read when the first one is wanted, so that work without credentials needs
// none.
type Vault struct {
	Options
	types    credential.Types
	redactor credential.Redactor

	mu sync.Mutex // guards gates
	// gates are where those wait who renew the same credential, by workspace and id.
	gates map[[2]string]chan struct{}

	once sync.Once
	ring *credential.Keyring
	err  error
}

// Keyring returns the keys that seal the credentials. The key file is made when there is none and nothing was sealed.
func (v *Vault) Keyring() (*credential.Keyring, error) {
	v.once.Do(func() { v.ring, v.err = v.readKeys() })
	return v.ring, v.err
}

func (v *Vault) readKeys() (_ *credential.Keyring, err error) {
	if v.Key != "" {
		return credential.ParseKeyring(v.Key)
	}
	dir, err := os.OpenRoot(v.Dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if cerr := dir.Close(); err == nil {
			err = cerr
		}
	}()
	ring, err := credential.OpenKeyFile(dir)
	if fault.CodeOf(err) != fault.NotFound {
		return ring, err
	}
	sealed, err := v.any(context.Background())
	if err != nil {
		return nil, err
	}
	if sealed {
		return nil, fault.Newf(fault.CredentialInvalid, "%s is missing from the data directory and there are credentials that it has sealed; put it back, or delete the credentials", credential.KeyFile)
	}
	return credential.CreateKeyFile(dir)
}

// any says whether there is a credential in any workspace.
func (v *Vault) any(ctx context.Context) (bool, error) {
	list, err := v.Credentials.List(ctx, identity.System(""))
	return len(list) > 0, err
}

// Opener opens the credentials of a principal's workspace.
func (v *Vault) Opener(p identity.Principal) credential.Opener {
	return func(ctx context.Context, id string, types ...string) (credential.Opened, error) {
		return v.open(ctx, p, id, types)
	}
}

// Holding is an opener that keeps what it opens until release is called, for callers that do not release it themselves.
func (v *Vault) Holding(p identity.Principal) (open credential.Opener, release func()) {
	var held []func()
	open = func(ctx context.Context, id string, types ...string) (credential.Opened, error) {
		c, err := v.open(ctx, p, id, types)
		if err == nil {
			held = append(held, c.Keep())
		}
		return c, err
	}
	return open, func() {
		for _, one := range held {
			one()
		}
	}
}

// Try shows a credential to its service, which changes nothing there. What is wrong with it is not an error.
func (v *Vault) Try(ctx context.Context, p identity.Principal, id string) (credential.Trial, error) {
	stored, err := v.find(ctx, p, id)
	if err != nil {
		return credential.Trial{}, err
	}
	known, err := v.types.Find(stored.Type)
	if err != nil {
		return credential.Trial{}, err
	}
	c, err := v.opened(ctx, p, stored, known, "")
	if err != nil {
		return credential.TrialOf("", err, &v.redactor), nil
	}
	defer c.Release()
	return known.Try(ctx, c, credential.Outside{HTTP: v.HTTP, Dial: v.Dial}, &v.redactor), nil
}

// open opens the credential with an id or a name.
func (v *Vault) open(ctx context.Context, p identity.Principal, name string, types []string) (credential.Opened, error) {
	stored, err := v.find(ctx, p, name)
	if err != nil {
		return credential.Opened{}, err
	}
	if len(types) > 0 && !slices.Contains(types, stored.Type) {
		return credential.Opened{}, fault.Newf(fault.CredentialInvalid, "credential %q is of type %s; a credential of type %s is needed here", name, stored.Type, strings.Join(types, " or "))
	}
	known, err := v.types.Find(stored.Type)
	if err != nil {
		return credential.Opened{}, err
	}
	return v.opened(ctx, p, stored, known, "")
}

// opened opens a credential that was found, with a token other than one that was refused.
func (v *Vault) opened(ctx context.Context, p identity.Principal, stored store.Credential, known credential.Type,
	refused string) (credential.Opened, error) {
	if stored.Problem != "" {
		return credential.Opened{}, needsPerson(stored)
	}
	if known.OAuth != nil {
		var err error
		if stored, err = v.renewed(ctx, p, stored, known, refused); err != nil {
			return credential.Opened{}, err
		}
	}
	ring, err := v.Keyring()
	if err != nil {
		return credential.Opened{}, err
	}
	c, err := ring.OpenData(&v.redactor, known, p.Workspace, stored.ID, stored.Sealed)
	if err == nil && known.OAuth != nil {
		c.Renew = func(ctx context.Context, refused string) (credential.Opened, error) {
			return v.opened(ctx, p, stored, known, refused)
		}
	}
	return c, err
}

// find returns the credential with an id or a name. Of one that is not there the error says what is similar.
func (v *Vault) find(ctx context.Context, p identity.Principal, name string) (store.Credential, error) {
	found, err := v.Credentials.Find(ctx, p, name)
	if fault.CodeOf(err) != fault.NotFound {
		return found, err
	}
	list, err := v.Credentials.List(ctx, p)
	if err != nil {
		return found, err
	}
	names := make([]string, len(list))
	for i, c := range list {
		names[i] = c.Name
	}
	remedy := "choose another one or create it"
	if near := fault.Nearest(name, names); near != "" {
		remedy = fmt.Sprintf("did you mean %q? If not, %s", near, remedy)
	}
	return found, fault.Newf(fault.CredentialMissing, "credential %q does not exist in this workspace; %s", name, remedy)
}
