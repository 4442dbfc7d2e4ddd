package app

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"

	"tandem/credential"
	"tandem/fault"
	"tandem/identity"
	"tandem/node"
	"tandem/store"
)

// vault opens credentials for runs. Its key is read when the first one is wanted, so that work without credentials needs
// none.
type vault struct {
	dir         string
	key         string
	credentials store.Credentials
	workspaces  store.Workspaces
	redactor    credential.Redactor

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
	all, err := v.workspaces.List(ctx, identity.System(""))
	if err != nil {
		return false, err
	}
	for _, w := range all {
		list, err := v.credentials.List(ctx, identity.System(w.ID))
		if err != nil || len(list) > 0 {
			return len(list) > 0, err
		}
	}
	return false, nil
}

// open opens a credential of one of the types.
func (v *vault) open(ctx context.Context, p identity.Principal, id string, types ...string) (node.Credential, func(), error) {
	stored, err := v.credentials.Get(ctx, p, id)
	if err != nil {
		if fault.CodeOf(err) == fault.NotFound {
			err = v.missing(ctx, p, id)
		}
		return node.Credential{}, nil, err
	}
	if len(types) > 0 && !slices.Contains(types, stored.Type) {
		return node.Credential{}, nil, fault.Newf(fault.CredentialInvalid, "credential %q is of type %s; the node needs %s", id, stored.Type, strings.Join(types, " or "))
	}
	ring, err := v.keyring()
	if err != nil {
		return node.Credential{}, nil, err
	}
	data, release, err := ring.OpenData(&v.redactor, p.Workspace, stored.ID, stored.Type, stored.Sealed)
	if err != nil {
		return node.Credential{}, nil, err
	}
	return node.Credential{ID: stored.ID, Type: stored.Type, Data: data}, release, nil
}

// missing says that there is no credential with an id. Who has written its name instead is told the id.
func (v *vault) missing(ctx context.Context, p identity.Principal, id string) error {
	list, err := v.credentials.List(ctx, p)
	if err != nil {
		return err
	}
	for _, c := range list {
		if c.Name == id {
			return fault.Newf(fault.CredentialMissing, "%q is the name of a credential; write its id, %q", id, c.ID)
		}
	}
	return fault.Newf(fault.CredentialMissing, "credential %q does not exist in this workspace; choose another or create it", id)
}
