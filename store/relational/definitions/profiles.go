package definitions

import (
	"context"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/store/relational"
)

// Profiles implements [store.Profiles].
type Profiles struct{ db relational.Database }

// NewProfiles are those of a database.
func NewProfiles(db relational.Database) Profiles { return Profiles{db} }

const profileColumns = `workspace_id, id, body, created, updated`

func scanProfile(s relational.Scanner) (p store.Profile, err error) {
	var body []byte
	err = s.Scan(&p.Workspace, &p.ID, &body, &p.Created, &p.Updated)
	p.Body = body
	return p, err
}

// Put implements [store.Profiles].
func (x Profiles) Put(ctx context.Context, p identity.Principal, profile store.Profile) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	if profile.ID == "" || len(profile.Body) == 0 {
		return fault.New(fault.Invalid, "a profile needs an id and a body")
	}
	return x.db.Write(ctx, func(w relational.Transaction) error {
		_, err := w.Exec(`INSERT INTO profiles (`+profileColumns+`) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (workspace_id, id) DO UPDATE SET body = excluded.body, updated = excluded.updated`,
			workspace, profile.ID, []byte(profile.Body), profile.Created, profile.Updated)
		return err
	})
}

// Get implements [store.Profiles].
func (x Profiles) Get(ctx context.Context, p identity.Principal, id string) (store.Profile, error) {
	return relational.QueryOneIn(ctx, x.db, p, store.NotFound("profile", id), `SELECT `+profileColumns+` FROM profiles WHERE workspace_id = ? AND id = ?`, scanProfile, id)
}

// List implements [store.Profiles].
func (x Profiles) List(ctx context.Context, p identity.Principal) ([]store.Profile, error) {
	return relational.QueryIn(ctx, x.db, p, `SELECT `+profileColumns+` FROM profiles WHERE workspace_id = ? ORDER BY id`, scanProfile)
}

// Delete implements [store.Profiles].
func (x Profiles) Delete(ctx context.Context, p identity.Principal, id string) error {
	return relational.ChangeOneIn(ctx, x.db, p, store.NotFound("profile", id), `DELETE FROM profiles WHERE id = ? AND workspace_id = ?`, id)
}

// AddTo sets what this package keeps in the stores of a database, without the workflows: [NewWorkflows] has to be told what else belongs to
// one.
func AddTo(s *store.Stores, db relational.Database) {
	s.Templates, s.Profiles = NewTemplates(db), NewProfiles(db)
}
