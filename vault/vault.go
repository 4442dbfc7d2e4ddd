package app

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

// vault opens credentials for runs. Its key is read when the first one is wanted, so that work without credentials needs
// none.
type vault struct {
	dir         string
	key         string
	credentials store.Credentials
	types       credential.Types
	redactor    credential.Redactor

	// http asks authorization servers and, with dial, the services that credentials are for.
	http *http.Client
	dial func(ctx context.Context, network, address string) (net.Conn, error)
	log  *slog.Logger
	mu   sync.Mutex // guards gates
	// gates are where those wait who renew the same credential, by workspace and id.
	gates map[[2]string]chan struct{}

	once sync.Once
	ring *credential.Keyring
	err  error
}

// Keyring returns the keys that seal the credentials. The key file is made when there is none and nothing was sealed.
func (i *Instance) Keyring() (*credential.Keyring, error) { return i.vault.keyring() }

func (v *vault) keyring() (*credential.Keyring, error) {
	v.once.Do(func() { v.ring, v.err = v.readKeys() })
	return v.ring, v.err
}

func (v *vault) readKeys() (_ *credential.Keyring, err error) {
	if v.key != "" {
		return credential.ParseKeyring(v.key)
	}
	dir, err := os.OpenRoot(v.dir)
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
func (v *vault) any(ctx context.Context) (bool, error) {
	list, err := v.credentials.List(ctx, identity.System(""))
	return len(list) > 0, err
}

// opener opens the credentials of a principal's workspace.
func (v *vault) opener(p identity.Principal) credential.Opener {
	return func(ctx context.Context, id string, types ...string) (credential.Opened, error) {
		return v.open(ctx, p, id, types)
	}
}

// holding is an opener that keeps what it opens until release is called, for callers that do not release it themselves.
func (v *vault) holding(p identity.Principal) (open credential.Opener, release func()) {
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
func (v *vault) Try(ctx context.Context, p identity.Principal, id string) (credential.Trial, error) {
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
	return known.Try(ctx, c, credential.Outside{HTTP: v.http, Dial: v.dial}, &v.redactor), nil
}

// open opens the credential with an id or a name.
func (v *vault) open(ctx context.Context, p identity.Principal, name string, types []string) (credential.Opened, error) {
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
func (v *vault) opened(ctx context.Context, p identity.Principal, stored store.Credential, known credential.Type, refused string) (credential.Opened, error) {
	if stored.Problem != "" {
		return credential.Opened{}, needsPerson(stored)
	}
	if known.OAuth != nil {
		var err error
		if stored, err = v.renewed(ctx, p, stored, known, refused); err != nil {
			return credential.Opened{}, err
		}
	}
	ring, err := v.keyring()
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
func (v *vault) find(ctx context.Context, p identity.Principal, name string) (store.Credential, error) {
	found, err := v.credentials.Find(ctx, p, name)
	if fault.CodeOf(err) != fault.NotFound {
		return found, err
	}
	list, err := v.credentials.List(ctx, p)
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
