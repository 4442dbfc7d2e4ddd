package accounts

import (
	"context"
	"database/sql/driver"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/store/relational"
)

// Contacts implements [store.ContactChannels].
type Contacts struct{ db relational.Database }

// NewContacts are those of a database.
func NewContacts(db relational.Database) Contacts { return Contacts{db} }

const contactColumns = `workspace_id, name, channel_type, credential_id, in_credential_id, settings, created_by, created, updated`

func scanContact(s relational.Scanner) (c store.ContactChannel, err error) {
	var settings string
	err = s.Scan(&c.Workspace, &c.Name, &c.Channel, &c.Credential, &c.InCredential, &settings, &c.CreatedBy, &c.Created, &c.Updated)
	c.Settings = relational.Raw([]byte(settings))
	return c, err
}

// Put implements [store.ContactChannels].
func (x Contacts) Put(ctx context.Context, p identity.Principal, c store.ContactChannel) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	if c.Name == "" || c.Channel == "" {
		return fault.New(fault.Invalid, "a contact channel needs a name and a channel")
	}
	return x.db.Write(ctx, func(w relational.Transaction) error {
		_, err := w.Exec(`INSERT INTO contact_channels (`+contactColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (workspace_id, name) DO UPDATE SET channel_type = excluded.channel_type, credential_id = excluded.credential_id,
				in_credential_id = excluded.in_credential_id, settings = excluded.settings, updated = excluded.updated`,
			workspace, c.Name, c.Channel, c.Credential, c.InCredential, string(c.Settings), c.CreatedBy, c.Created, c.Updated)
		return err
	})
}

// Get implements [store.ContactChannels].
func (x Contacts) Get(ctx context.Context, p identity.Principal, name string) (store.ContactChannel, error) {
	return relational.QueryOneIn(ctx, x.db, p, store.NotFound("contact channel", name), `SELECT `+contactColumns+` FROM contact_channels WHERE workspace_id = ? AND name = ?`, scanContact, name)
}

// List implements [store.ContactChannels].
func (x Contacts) List(ctx context.Context, p identity.Principal) ([]store.ContactChannel, error) {
	return relational.QueryIn(ctx, x.db, p, `SELECT `+contactColumns+` FROM contact_channels WHERE workspace_id = ? ORDER BY name`, scanContact)
}

// Delete implements [store.ContactChannels].
func (x Contacts) Delete(ctx context.Context, p identity.Principal, name string) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	return x.db.Write(ctx, func(w relational.Transaction) error {
		n, err := w.Change(`DELETE FROM contact_channels WHERE workspace_id = ? AND name = ?`, workspace, name)
		if err == nil && n == 0 {
			err = store.NotFound("contact channel", name)
		}
		return err
	})
}

// Proofs implements [store.AddressProofs].
type Proofs struct{ db relational.Database }

// NewProofs are those of a database.
func NewProofs(db relational.Database) Proofs { return Proofs{db} }

const proofColumns = `workspace_id, user_id, address, contact, hash, tries, created, expires`

func scanProof(s relational.Scanner) (a store.AddressProof, err error) {
	var hash []byte
	err = s.Scan(&a.Workspace, &a.User, &a.Address, &a.Contact, &hash, &a.Tries, &a.Created, &a.Expires)
	copy(a.Hash[:], hash)
	return a, err
}

// Begin implements [store.AddressProofs].
func (x Proofs) Begin(ctx context.Context, p identity.Principal, a store.AddressProof, limit store.ProofLimit) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	return x.db.Write(ctx, func(w relational.Transaction) error {
		known, err := w.Row(make([]driver.Value, 1), `SELECT 1 FROM users WHERE workspace_id = ? AND id = ?`, workspace, a.User)
		if err != nil {
			return err
		}
		if !known {
			return store.NotFound("user", a.User)
		}
		if _, err := w.Exec(`DELETE FROM address_proofs WHERE workspace_id = ? AND user_id = ? AND created < ?`, workspace, a.User, limit.Since); err != nil {
			return err
		}
		var row [2]driver.Value
		if _, err := w.Row(row[:], `SELECT count(*), coalesce(min(created), 0) FROM address_proofs WHERE workspace_id = ? AND user_id = ? AND address <> ?`, workspace, a.User, a.Address); err != nil {
			return err
		}
		if row[0].(int64) >= int64(limit.Most) {
			return limit.Exceeded(row[1].(int64))
		}
		_, err = w.Exec(`INSERT INTO address_proofs (`+proofColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (workspace_id, user_id, address) DO UPDATE SET contact = excluded.contact, hash = excluded.hash, tries = excluded.tries,
				created = excluded.created, expires = excluded.expires`,
			workspace, a.User, a.Address, a.Contact, a.Hash[:], int64(a.Tries), a.Created, a.Expires)
		return err
	})
}

// List implements [store.AddressProofs].
func (x Proofs) List(ctx context.Context, p identity.Principal, user string) ([]store.AddressProof, error) {
	return relational.QueryIn(ctx, x.db, p, `SELECT `+proofColumns+` FROM address_proofs WHERE workspace_id = ? AND user_id = ? ORDER BY address`, scanProof, user)
}

// Try implements [store.AddressProofs].
func (x Proofs) Try(ctx context.Context, p identity.Principal, user, address string) (store.AddressProof, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return store.AddressProof{}, err
	}
	err = x.db.Write(ctx, func(w relational.Transaction) error {
		n, err := w.Change(`UPDATE address_proofs SET tries = tries + 1 WHERE workspace_id = ? AND user_id = ? AND address = ?`, workspace, user, address)
		if err == nil && n == 0 {
			err = store.NotFound("code for the address", address)
		}
		return err
	})
	if err != nil {
		return store.AddressProof{}, err
	}
	return relational.QueryOne(ctx, x.db, store.NotFound("code for the address", address), `SELECT `+proofColumns+` FROM address_proofs WHERE workspace_id = ? AND user_id = ? AND address = ?`,
		scanProof, workspace, user, address)
}

// Delete implements [store.AddressProofs].
func (x Proofs) Delete(ctx context.Context, p identity.Principal, user, address string) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	return x.db.Write(ctx, func(w relational.Transaction) error {
		_, err := w.Exec(`DELETE FROM address_proofs WHERE workspace_id = ? AND user_id = ? AND address = ?`, workspace, user, address)
		return err
	})
}
