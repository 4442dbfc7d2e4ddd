package accounts

import (
	"context"
	"database/sql/driver"
	"encoding/json"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/store/relational"
)

// Sessions implements [store.Sessions].
type Sessions struct{ db relational.Database }

// NewSessions are those of a database.
func NewSessions(db relational.Database) Sessions { return Sessions{db} }

const sessionColumns = `workspace_id, id, user_id, method, token_id, token_made_by, scopes, address, agent, created, seen, expires`

func scanSession(s relational.Scanner) (x identity.Session, err error) {
	var scopes string
	if err := s.Scan(&x.Workspace, &x.ID, &x.User, &x.Method, &x.Token, &x.TokenMadeBy, &scopes, &x.Address, &x.Agent, &x.Created,
		&x.Seen, &x.Expires); err != nil {
		return x, err
	}
	x.Scopes, err = readScopes(scopes)
	return x, err
}

// Create implements [store.Sessions].
func (x Sessions) Create(ctx context.Context, p identity.Principal, s identity.Session, hash identity.SecretHash) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	if s.ID == "" {
		return fault.New(fault.Invalid, "a session needs an id")
	}
	scopes, err := writeScopes(s.Scopes)
	if err != nil {
		return err
	}
	return x.db.Write(ctx, func(w relational.Transaction) error {
		known, err := w.Row(make([]driver.Value, 1), `SELECT 1 FROM users WHERE workspace_id = ? AND id = ? AND disabled = 0`, workspace, s.User)
		if err != nil {
			return err
		}
		if !known {
			return store.NotFound("user", s.User)
		}
		taken, err := w.Row(make([]driver.Value, 1), `SELECT 1 FROM sessions WHERE hash = ?1 OR (workspace_id = ?2 AND user_id = ?3 AND id = ?4)`, hash[:], workspace, s.User, s.ID)
		if err != nil {
			return err
		}
		if taken {
			return fault.Newf(fault.Conflict, "session %q exists already", s.ID)
		}
		_, err = w.Exec(`INSERT INTO sessions (hash, `+sessionColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			hash[:], workspace, s.ID, s.User, s.Method, s.Token, s.TokenMadeBy, scopes, s.Address, s.Agent, s.Created, s.Seen, s.Expires)
		return err
	})
}

// Resolve implements [store.Sessions].
func (x Sessions) Resolve(ctx context.Context, p identity.Principal, hash identity.SecretHash, now,
	idle int64) (identity.Session, identity.User, error) {
	if err := store.RequireSystem(p); err != nil {
		return identity.Session{}, identity.User{}, err
	}
	missing := fault.New(fault.NotFound, "the session is unknown or has ended")
	s, err := relational.QueryOne(ctx, x.db, missing, `SELECT `+sessionColumns+` FROM sessions AS s WHERE hash = ? AND expires > ? AND seen >= ? AND (token_id = ''
		OR EXISTS (SELECT 1 FROM tokens AS t WHERE t.workspace_id = s.workspace_id AND t.id = s.token_id AND (t.expires = 0 OR t.expires > ?)))`, scanSession, hash[:], now, idle, now)
	if err != nil {
		return identity.Session{}, identity.User{}, err
	}
	u, err := relational.QueryOne(ctx, x.db, missing, `SELECT `+userColumns+` FROM users WHERE workspace_id = ? AND id = ? AND disabled = 0`, scanUser, s.Workspace, s.User)
	if err != nil {
		return identity.Session{}, identity.User{}, err
	}
	return s, u, nil
}

// Seen implements [store.Sessions].
func (x Sessions) Seen(ctx context.Context, p identity.Principal, id string, at int64) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	return x.db.WriteQuietly(ctx, func(w relational.Transaction) error {
		_, err := w.Exec(`UPDATE sessions SET seen = max(seen, ?) WHERE workspace_id = ? AND id = ?`, at, workspace, id)
		return err
	})
}

// List implements [store.Sessions].
func (x Sessions) List(ctx context.Context, p identity.Principal, user string) ([]identity.Session, error) {
	return relational.QueryIn(ctx, x.db, p, `SELECT `+sessionColumns+` FROM sessions WHERE workspace_id = ? AND user_id = ? ORDER BY created DESC, id`, scanSession, user)
}

// End implements [store.Sessions].
func (x Sessions) End(ctx context.Context, p identity.Principal, user, id string) error {
	return relational.ChangeOneIn(ctx, x.db, p, store.NotFound("session", id), `DELETE FROM sessions WHERE user_id = ? AND id = ? AND workspace_id = ?`, user, id)
}

// EndAll implements [store.Sessions].
func (x Sessions) EndAll(ctx context.Context, p identity.Principal, user, except string) (int, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return 0, err
	}
	var n int64
	err = x.db.Write(ctx, func(w relational.Transaction) (err error) {
		n, err = w.Change(`DELETE FROM sessions WHERE workspace_id = ? AND user_id = ? AND id <> ?`, workspace, user, except)
		return err
	})
	return int(n), err
}

// Expire implements [store.Sessions].
func (x Sessions) Expire(ctx context.Context, p identity.Principal, now, idle int64) (int, error) {
	if err := store.RequireSystem(p); err != nil {
		return 0, err
	}
	var n int64
	err := x.db.WriteQuietly(ctx, func(w relational.Transaction) (err error) {
		n, err = w.Change(`DELETE FROM sessions WHERE expires <= ? OR seen < ?`, now, idle)
		return err
	})
	return int(n), err
}

// Invitations implements [store.Invitations].
type Invitations struct{ db relational.Database }

// NewInvitations are those of a database.
func NewInvitations(db relational.Database) Invitations { return Invitations{db} }

const invitationColumns = `workspace_id, id, email, name, roles, invited_by, token_made_by, created, expires, accepted, user_id`

func scanInvitation(s relational.Scanner) (i identity.Invitation, err error) {
	var roles string
	if err := s.Scan(&i.Workspace, &i.ID, &i.Email, &i.Name, &roles, &i.InvitedBy, &i.TokenMadeBy, &i.Created, &i.Expires,
		&i.Accepted, &i.User); err != nil {
		return i, err
	}
	return i, json.Unmarshal([]byte(roles), &i.Roles)
}

// Create implements [store.Invitations].
func (x Invitations) Create(ctx context.Context, p identity.Principal, i identity.Invitation, hash identity.SecretHash) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	if i.ID == "" {
		return fault.New(fault.Invalid, "an invitation needs an id")
	}
	roles, err := checkUser(identity.User{ID: i.ID, Roles: i.Roles})
	if err != nil {
		return err
	}
	return x.db.Write(ctx, func(w relational.Transaction) error {
		taken, err := w.Row(make([]driver.Value, 1), `SELECT 1 FROM invitations WHERE hash = ? OR (workspace_id = ? AND id = ?)`, hash[:], workspace, i.ID)
		if err != nil {
			return err
		}
		if taken {
			return fault.Newf(fault.Conflict, "invitation %q exists already", i.ID)
		}
		_, err = w.Exec(`INSERT INTO invitations (hash, `+invitationColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, '')`,
			hash[:], workspace, i.ID, i.Email, i.Name, roles, i.InvitedBy, i.TokenMadeBy, i.Created, i.Expires)
		return err
	})
}

// List implements [store.Invitations].
func (x Invitations) List(ctx context.Context, p identity.Principal) ([]identity.Invitation, error) {
	return relational.QueryIn(ctx, x.db, p, `SELECT `+invitationColumns+` FROM invitations WHERE workspace_id = ? ORDER BY created DESC, id`, scanInvitation)
}

// Delete implements [store.Invitations].
func (x Invitations) Delete(ctx context.Context, p identity.Principal, id string) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	return x.db.Write(ctx, func(w relational.Transaction) error {
		accepted := make([]driver.Value, 1)
		known, err := w.Row(accepted, `SELECT accepted FROM invitations WHERE workspace_id = ? AND id = ?`, workspace, id)
		switch {
		case err != nil:
			return err
		case !known:
			return store.NotFound("invitation", id)
		case accepted[0] != int64(0):
			return fault.Newf(fault.Conflict, "invitation %q was accepted; remove the user instead", id)
		}
		_, err = w.Exec(`DELETE FROM invitations WHERE workspace_id = ? AND id = ?`, workspace, id)
		return err
	})
}

// Resolve implements [store.Invitations].
func (x Invitations) Resolve(ctx context.Context, p identity.Principal, hash identity.SecretHash, now int64) (identity.Invitation, error) {
	if err := store.RequireSystem(p); err != nil {
		return identity.Invitation{}, err
	}
	return relational.QueryOne(ctx, x.db, closedInvitation(), `SELECT `+invitationColumns+` FROM invitations WHERE hash = ? AND accepted = 0 AND expires > ?`, scanInvitation, hash[:], now)
}

func closedInvitation() error {
	return fault.New(fault.NotFound, "the invitation is unknown, was used or has expired; ask for another one")
}

// ForEmail implements [store.Invitations].
func (x Invitations) ForEmail(ctx context.Context, p identity.Principal, email string, now int64) ([]identity.Invitation, error) {
	if err := store.RequireSystem(p); err != nil {
		return nil, err
	}
	return relational.Query(ctx, x.db, `SELECT `+invitationColumns+` FROM invitations WHERE lower(email) = lower(?) AND accepted = 0 AND expires > ? ORDER BY created, id`, scanInvitation, email, now)
}

// Accept implements [store.Invitations].
func (x Invitations) Accept(ctx context.Context, p identity.Principal, a store.Acceptance) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	if a.User.ID == "" {
		return fault.New(fault.Invalid, "a user needs an id")
	}
	scopes, err := writeScopes(a.Token.Scopes)
	if err != nil {
		return err
	}
	return x.db.Write(ctx, func(w relational.Transaction) error {
		roles := make([]driver.Value, 1)
		open, err := w.Row(roles, `SELECT roles FROM invitations WHERE workspace_id = ? AND id = ? AND accepted = 0 AND expires > ?`, workspace, a.Invitation, a.Now)
		if err != nil {
			return err
		}
		if !open {
			return closedInvitation()
		}
		if err := mayCreateUser(w, workspace, a.User.ID); err != nil {
			return err
		}
		if a.Login != nil {
			if err := mayBind(w, *a.Login); err != nil {
				return err
			}
		}
		text, _ := roles[0].(string)
		if err := createUser(w, workspace, a.User, text); err != nil {
			return err
		}
		if a.TokenHash != nil {
			if err := createToken(w, workspace, a.Token, *a.TokenHash, scopes); err != nil {
				return err
			}
		}
		if a.Login != nil {
			if err := bindLogin(w, workspace, *a.Login); err != nil {
				return err
			}
		}
		_, err = w.Exec(`UPDATE invitations SET accepted = ?, user_id = ? WHERE workspace_id = ? AND id = ?`, a.Now, a.User.ID, workspace, a.Invitation)
		return err
	})
}

// Logins implements [store.Logins].
type Logins struct{ db relational.Database }

// NewLogins are those of a database.
func NewLogins(db relational.Database) Logins { return Logins{db} }

// Resolve implements [store.Logins].
func (x Logins) Resolve(ctx context.Context, p identity.Principal, issuer, subject string) (identity.Login, identity.User, error) {
	if err := store.RequireSystem(p); err != nil {
		return identity.Login{}, identity.User{}, err
	}
	missing := fault.New(fault.NotFound, "nobody has logged in like this before")
	l, err := relational.QueryOne(ctx, x.db, missing, `SELECT issuer, subject, workspace_id, user_id, created FROM logins WHERE issuer = ? AND subject = ?`, func(s relational.Scanner) (l identity.Login, err error) {
		return l, s.Scan(&l.Issuer, &l.Subject, &l.Workspace, &l.User, &l.Created)
	}, issuer, subject)
	if err != nil {
		return identity.Login{}, identity.User{}, err
	}
	u, err := relational.QueryOne(ctx, x.db, missing, `SELECT `+userColumns+` FROM users WHERE workspace_id = ? AND id = ?`, scanUser, l.Workspace, l.User)
	return l, u, err
}

// Bind implements [store.Logins].
func (x Logins) Bind(ctx context.Context, p identity.Principal, l identity.Login) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	return x.db.Write(ctx, func(w relational.Transaction) error {
		known, err := userExists(w, workspace, l.User)
		if err != nil {
			return err
		}
		if !known {
			return store.NotFound("user", l.User)
		}
		if err := mayBind(w, l); err != nil {
			return err
		}
		return bindLogin(w, workspace, l)
	})
}

// mayBind refuses somebody who is a user already.
func mayBind(w relational.Transaction, l identity.Login) error {
	taken, err := w.Row(make([]driver.Value, 1), `SELECT 1 FROM logins WHERE issuer = ? AND subject = ?`, l.Issuer, l.Subject)
	if err == nil && taken {
		err = fault.New(fault.Conflict, "who logs in like this is a user already")
	}
	return err
}

func bindLogin(w relational.Transaction, workspace string, l identity.Login) error {
	_, err := w.Exec(`INSERT INTO logins (issuer, subject, workspace_id, user_id, created) VALUES (?, ?, ?, ?, ?)`, l.Issuer, l.Subject, workspace, l.User, l.Created)
	return err
}
