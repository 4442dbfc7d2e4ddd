package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"tandem/credential"
	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/store/sqlite/datadir"
)

// RotateOptions say which keys are replaced.
type RotateOptions struct {
	// Dir is the data directory, and Database the address of the database if that is not in it. No process may have it open.
	Dir      string
	Database string
	// MasterKey is the value of TANDEM_MASTER_KEY, if the keys are given by it: the old ones, then the new one.
	MasterKey string
	// KeepOld leaves the old keys in the key file. They open what they have sealed, and seal nothing.
	KeepOld bool

	// reached is called in tests at each point at which the process may die.
	reached func(point string)
}

// Rotation is the result of a rotation.
type Rotation struct {
	// Key is the id of the key that seals now, Old are those of the keys before it, and Dropped says that they are gone from the key file.
	Key     string   `json:"key"`
	Old     []string `json:"old"`
	Dropped bool     `json:"dropped"`
	// File is the key file; empty when the keys are given by the environment.
	File string `json:"file,omitempty"`
	// Resealed and Already count the credentials that were put under the new key, now or before.
	Resealed int `json:"resealed"`
	Already  int `json:"already"`
	// Unreadable are credentials that none of the keys opens, before and after the rotation.
	Unreadable []UnreadableCredential `json:"unreadable"`
}

// UnreadableCredential is a credential that no key opens.
type UnreadableCredential struct {
	Workspace string `json:"workspace"`
	ID        string `json:"id"`
	Name      string `json:"name"`
	Reason    string `json:"reason"`
}

// RotateKey makes a new master key and puts every credential under it. The process may die at any point: the key file has the old
// keys until every credential is on disk under the new one, and a further run finishes what is left.
func RotateKey(ctx context.Context, o RotateOptions) (r Rotation, err error) {
	if o.reached == nil {
		o.reached = func(string) {}
	}
	if _, err := os.Stat(filepath.Join(o.Dir, datadir.DatabaseFile)); err != nil && o.Database == "" {
		return r, fault.Newf(fault.NotFound, "%q is not a data directory of Tandem; name it with --data", o.Dir).WithCause(err)
	}
	db, err := openStore(ctx, &Options{Dir: o.Dir, Database: o.Database, Existing: true})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	dir, err := os.OpenRoot(o.Dir)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	ring, err := o.newKey(dir)
	if err != nil {
		return r, err
	}
	o.reached("key added")
	ids := ring.Keys()
	r.Key, r.Old, r.Unreadable = ids[len(ids)-1], ids[:len(ids)-1], []UnreadableCredential{}
	if o.MasterKey == "" {
		r.File = credential.KeyFile
	}
	if err := reseal(ctx, db.Stores(), ring, &r, o.reached); err != nil {
		return r, err
	}
	if err := enterRotation(ctx, db.Stores(), r); err != nil {
		return r, err
	}
	if o.MasterKey != "" || o.KeepOld || len(r.Unreadable) > 0 {
		return r, nil
	}
	o.reached("all resealed")
	if _, err := credential.KeepNewestKey(dir); err != nil {
		return r, err
	}
	r.Dropped = true
	o.reached("old keys dropped")
	return r, nil
}

// enterRotation notes in the audit log of every workspace that its credentials are sealed with another key now.
func enterRotation(ctx context.Context, stores store.Stores, r Rotation) error {
	list, err := stores.Workspaces.List(ctx, identity.System(""))
	if err != nil {
		return err
	}
	for _, w := range list {
		if err := stores.Audit.Enter(ctx, identity.System(w.ID), store.AuditEntry{
			Time: time.Now().UnixMilli(), User: identity.LocalUser, Action: "key.rotate", Object: "key", ObjectID: r.Key, Outcome: store.AuditDone,
			Detail: store.AuditDetail(map[string]any{"resealed": r.Resealed, "unreadable": len(r.Unreadable)}),
		}); err != nil {
			return err
		}
	}
	return nil
}

// newKey is the ring whose newest key is the new one.
func (o RotateOptions) newKey(dir *os.Root) (*credential.Keyring, error) {
	if o.MasterKey == "" {
		return credential.RotateKeyFile(dir)
	}
	ring, err := credential.ParseKeyring(o.MasterKey)
	if err == nil && len(ring.Keys()) < 2 {
		err = fault.New(fault.Invalid, "TANDEM_MASTER_KEY has one key; write a new one after it, with a space between (openssl rand -base64 32 makes one), and run this again")
	}
	return ring, err
}

// reseal puts every credential of every workspace under the newest key, and looks afterwards that this key alone opens all of them.
func reseal(ctx context.Context, stores store.Stores, ring *credential.Keyring, r *Rotation, reached func(string)) error {
	list, err := stores.Credentials.List(ctx, identity.System(""))
	if err != nil {
		return err
	}
	newest := ring.Newest()
	for _, c := range list {
		p := identity.System(c.Workspace)
		if c, err = stores.Credentials.Get(ctx, p, c.ID); err != nil {
			return err
		}
		place := credential.Context(c.Workspace, c.ID, c.Type)
		sealed, changed, err := ring.Reseal(c.Sealed, place)
		if err == nil {
			err = opens(newest, sealed, place)
		}
		if err != nil {
			r.Unreadable = append(r.Unreadable, UnreadableCredential{c.Workspace, c.ID, c.Name, fault.From(err).Message})
			continue
		}
		if !changed {
			r.Already++
			continue
		}
		c.Sealed = sealed
		if err := stores.Credentials.Swap(ctx, p, c); err != nil {
			return fmt.Errorf("keep credential %q under the new key: %w", c.ID, err)
		}
		r.Resealed++
		reached("one resealed")
	}
	return nil
}

// opens says whether a ring opens a sealed credential.
func opens(ring *credential.Keyring, sealed, place []byte) error {
	data, err := ring.Open(sealed, place)
	clear(data)
	return err
}
