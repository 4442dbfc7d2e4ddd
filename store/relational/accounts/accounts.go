// Package accounts has the tables of who may come in, and with what: workspaces, users, tokens, sessions, invitations, identities from
// elsewhere, credentials, and where people are reached.
package accounts

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"slices"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/store/relational"
)

// Workspaces implements [store.Workspaces].
type Workspaces struct{ db relational.Database }

// NewWorkspaces are those of a database.
func NewWorkspaces(db relational.Database) Workspaces { return Workspaces{db} }

func scanWorkspace(s relational.Scanner) (w identity.Workspace, err error) {
	return w, s.Scan(&w.ID, &w.Name, &w.Created, &w.Deleted)
}

const workspaceColumns = `workspace_id, name, created, deleted`

// Create implements [store.Workspaces].
func (x Workspaces) Create(ctx context.Context, p identity.Principal, ws identity.Workspace) error {
	if err := store.RequireSystem(p); err != nil {
		return err
	}
	if err := identity.CheckWorkspace(ws.ID); err != nil {
		return err
	}
	return x.db.Write(ctx, func(w relational.Transaction) error {
		taken, err := w.Row(make([]driver.Value, 1), `SELECT 1 FROM workspaces WHERE workspace_id = ?`, ws.ID)
		if err != nil {
			return err
		}
		if taken {
			return fault.Newf(fault.Conflict, "workspace %q exists already, or did once", ws.ID)
		}
		_, err = w.Exec(`INSERT INTO workspaces (workspace_id, name, created) VALUES (?, ?, ?)`, ws.ID, ws.Name, ws.Created)
		return err
	})
}

// Get implements [store.Workspaces].
func (x Workspaces) Get(ctx context.Context, p identity.Principal, id string) (identity.Workspace, error) {
	workspace, all, err := store.ScopeAll(p)
	if err != nil {
		return identity.Workspace{}, err
	}
	missing := fault.Newf(fault.NotFound, "there is no workspace %q", id)
	if !all && workspace != id {
		return identity.Workspace{}, missing
	}
	return relational.QueryOne(ctx, x.db, missing, `SELECT `+workspaceColumns+` FROM workspaces WHERE workspace_id = ? AND deleted = 0`, scanWorkspace, id)
}

// List implements [store.Workspaces].
func (x Workspaces) List(ctx context.Context, p identity.Principal) ([]identity.Workspace, error) {
	workspace, all, err := store.ScopeAll(p)
	if err != nil {
		return nil, err
	}
	if all {
		return relational.Query(ctx, x.db, `SELECT `+workspaceColumns+` FROM workspaces ORDER BY workspace_id`, scanWorkspace)
	}
	return relational.Query(ctx, x.db, `SELECT `+workspaceColumns+` FROM workspaces WHERE workspace_id = ? AND deleted = 0`, scanWorkspace, workspace)
}

// Users implements [store.Users].
type Users struct{ db relational.Database }

// NewUsers are those of a database.
func NewUsers(db relational.Database) Users { return Users{db} }

const userColumns = `workspace_id, id, name, email, roles, settings, auto_execute, disabled, created, updated`

func scanUser(s relational.Scanner) (u identity.User, err error) {
	var roles []byte
	if err := s.Scan(&u.Workspace, &u.ID, &u.Name, &u.Email, &roles, &u.Settings, &u.AutoExecute, &u.Disabled,
		&u.Created, &u.Updated); err != nil {
		return u, err
	}
	if len(u.Settings) == 0 {
		u.Settings = nil
	}
	return u, json.Unmarshal(roles, &u.Roles)
}

// checkUser refuses what no user may be.
func checkUser(u identity.User) (roles string, err error) {
	if u.ID == "" {
		return "", fault.New(fault.Invalid, "a user needs an id")
	}
	for _, r := range u.Roles {
		if !r.Known() {
			return "", fault.Newf(fault.Invalid, "user %q: there is no role %q; the roles are %q", u.ID, r, identity.Roles())
		}
	}
	return relational.Texts(u.Roles)
}

// Create implements [store.Users].
func (x Users) Create(ctx context.Context, p identity.Principal, u identity.User) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	roles, err := checkUser(u)
	if err != nil {
		return err
	}
	return x.db.Write(ctx, func(w relational.Transaction) error {
		if err := mayCreateUser(w, workspace, u.ID); err != nil {
			return err
		}
		return createUser(w, workspace, u, roles)
	})
}

// mayCreateUser refuses a user whose workspace is not there or whose id is taken.
func mayCreateUser(w relational.Transaction, workspace, id string) error {
	known, err := w.Row(make([]driver.Value, 1), `SELECT 1 FROM workspaces WHERE workspace_id = ? AND deleted = 0`, workspace)
	if err != nil {
		return err
	}
	if !known {
		return fault.Newf(fault.NotFound, "there is no workspace %q", workspace)
	}
	taken, err := userExists(w, workspace, id)
	if err == nil && taken {
		err = fault.Newf(fault.Conflict, "user %q exists already", id)
	}
	return err
}

func createUser(w relational.Transaction, workspace string, u identity.User, roles string) error {
	_, err := w.Exec(`INSERT INTO users (`+userColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		workspace, u.ID, u.Name, u.Email, roles, u.Settings, relational.Flag(u.AutoExecute),
		relational.Flag(u.Disabled), u.Created, u.Updated)
	return err
}

// Update implements [store.Users].
func (x Users) Update(ctx context.Context, p identity.Principal, u identity.User) error {
	roles, err := checkUser(u)
	if err != nil {
		return err
	}
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	return x.db.Write(ctx, func(w relational.Transaction) error {
		known, err := userExists(w, workspace, u.ID)
		if err != nil {
			return err
		}
		if !known {
			return store.NotFound("user", u.ID)
		}
		if _, err := w.Exec(`UPDATE users SET name = ?, email = ?, roles = ?, settings = ?, auto_execute = ?, disabled = ?, updated = ? WHERE id = ? AND workspace_id = ?`,
			u.Name, u.Email, roles, u.Settings, relational.Flag(u.AutoExecute), relational.Flag(u.Disabled), u.Updated, u.ID,
			workspace); err != nil || !u.Disabled {
			return err
		}
		_, err = w.Exec(`DELETE FROM sessions WHERE workspace_id = ? AND user_id = ?`, workspace, u.ID)
		return err
	})
}

func userExists(w relational.Transaction, workspace, id string) (bool, error) {
	return w.Row(make([]driver.Value, 1), `SELECT 1 FROM users WHERE workspace_id = ? AND id = ?`, workspace, id)
}

// Get implements [store.Users].
func (x Users) Get(ctx context.Context, p identity.Principal, id string) (identity.User, error) {
	return relational.QueryOneIn(ctx, x.db, p, store.NotFound("user", id), `SELECT `+userColumns+` FROM users WHERE workspace_id = ? AND id = ?`, scanUser, id)
}

// List implements [store.Users].
func (x Users) List(ctx context.Context, p identity.Principal) ([]identity.User, error) {
	return relational.QueryIn(ctx, x.db, p, `SELECT `+userColumns+` FROM users WHERE workspace_id = ? ORDER BY id`, scanUser)
}

// Delete implements [store.Users].
func (x Users) Delete(ctx context.Context, p identity.Principal, id string) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	return x.db.Write(ctx, func(w relational.Transaction) error {
		known, err := w.Row(make([]driver.Value, 1), `SELECT 1 FROM users WHERE workspace_id = ? AND id = ?`, workspace, id)
		if err != nil {
			return err
		}
		if !known {
			return store.NotFound("user", id)
		}
		for _, text := range []string{
			`DELETE FROM token_uses WHERE workspace_id = ?1 AND token_id IN (SELECT id FROM tokens WHERE workspace_id = ?1 AND user_id = ?2)`,
			`DELETE FROM tokens WHERE workspace_id = ? AND user_id = ?`,
			`DELETE FROM sessions WHERE workspace_id = ? AND user_id = ?`,
			`DELETE FROM logins WHERE workspace_id = ? AND user_id = ?`,
			`DELETE FROM address_proofs WHERE workspace_id = ? AND user_id = ?`,
		} {
			if _, err := w.Exec(text, workspace, id); err != nil {
				return err
			}
		}
		_, err = w.Exec(`DELETE FROM users WHERE workspace_id = ? AND id = ?`, workspace, id)
		return err
	})
}

// Tokens implements [store.Tokens].
type Tokens struct{ db relational.Database }

// NewTokens are those of a database.
func NewTokens(db relational.Database) Tokens { return Tokens{db} }

const tokenColumns = `workspace_id, id, user_id, name, made_by, created, expires, scopes`

func scanToken(s relational.Scanner) (t identity.Token, err error) {
	var scopes string
	if err := s.Scan(&t.Workspace, &t.ID, &t.User, &t.Name, &t.MadeBy, &t.Created, &t.Expires, &scopes); err != nil {
		return t, err
	}
	t.Scopes, err = readScopes(scopes)
	return t, err
}

// writeScopes keeps scopes as a column; none are an empty text.
func writeScopes(list []identity.Scope) (string, error) {
	for _, s := range list {
		if !s.Known() {
			return "", fault.Newf(fault.Invalid, "there is no scope %q; the scopes are %q", s, identity.Scopes())
		}
	}
	if len(list) == 0 {
		return "", nil
	}
	return relational.Texts(list)
}

func readScopes(text string) (list []identity.Scope, err error) {
	if text == "" {
		return nil, nil
	}
	return list, json.Unmarshal([]byte(text), &list)
}

// Create implements [store.Tokens].
func (x Tokens) Create(ctx context.Context, p identity.Principal, t identity.Token, hash identity.SecretHash) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	if t.ID == "" {
		return fault.New(fault.Invalid, "a token needs an id")
	}
	scopes, err := writeScopes(t.Scopes)
	if err != nil {
		return err
	}
	return x.db.Write(ctx, func(w relational.Transaction) error {
		known, err := w.Row(make([]driver.Value, 1), `SELECT 1 FROM users WHERE workspace_id = ? AND id = ?`, workspace, t.User)
		if err != nil {
			return err
		}
		if !known {
			return store.NotFound("user", t.User)
		}
		taken, err := w.Row(make([]driver.Value, 1), `SELECT 1 FROM tokens WHERE hash = ? OR (workspace_id = ? AND id = ?)`, hash[:], workspace, t.ID)
		if err != nil {
			return err
		}
		if taken {
			return fault.Newf(fault.Conflict, "token %q exists already", t.ID)
		}
		return createToken(w, workspace, t, hash, scopes)
	})
}

func createToken(w relational.Transaction, workspace string, t identity.Token, hash identity.SecretHash, scopes string) error {
	_, err := w.Exec(`INSERT INTO tokens (hash, `+tokenColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		hash[:], workspace, t.ID, t.User, t.Name, t.MadeBy, t.Created, t.Expires, scopes)
	return err
}

// Resolve implements [store.Tokens].
func (x Tokens) Resolve(ctx context.Context, p identity.Principal, hash identity.SecretHash,
	now int64) (identity.Token, identity.User, error) {
	if err := store.RequireSystem(p); err != nil {
		return identity.Token{}, identity.User{}, err
	}
	missing := fault.New(fault.NotFound, "the token is unknown or has expired")
	t, err := relational.QueryOne(ctx, x.db, missing, `SELECT `+tokenColumns+` FROM tokens WHERE hash = ? AND (expires = 0 OR expires > ?)`, scanToken, hash[:], now)
	if err != nil {
		return identity.Token{}, identity.User{}, err
	}
	u, err := relational.QueryOne(ctx, x.db, missing, `SELECT `+userColumns+` FROM users WHERE workspace_id = ? AND id = ? AND disabled = 0`, scanUser, t.Workspace, t.User)
	if err != nil {
		return identity.Token{}, identity.User{}, err
	}
	return t, u, nil
}

// List implements [store.Tokens].
func (x Tokens) List(ctx context.Context, p identity.Principal, user string) ([]identity.Token, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return nil, err
	}
	list, err := relational.Query(ctx, x.db, `SELECT `+tokenColumns+` FROM tokens WHERE workspace_id = ?1 AND (?2 = '' OR user_id = ?2) ORDER BY created, id`, scanToken, workspace, user)
	if err != nil {
		return nil, err
	}
	type use struct {
		token string
		used  int64
	}
	uses, err := relational.Query(ctx, x.db, `SELECT token_id, used FROM token_uses WHERE workspace_id = ?`,
		func(s relational.Scanner) (u use, err error) { return u, s.Scan(&u.token, &u.used) }, workspace)
	for _, u := range uses {
		if i := slices.IndexFunc(list, func(t identity.Token) bool { return t.ID == u.token }); i >= 0 {
			list[i].LastUsed = u.used
		}
	}
	return list, err
}

func tokenExists(w relational.Transaction, workspace, id string) (bool, error) {
	return w.Row(make([]driver.Value, 1), `SELECT 1 FROM tokens WHERE workspace_id = ? AND id = ?`, workspace, id)
}

// Used implements [store.Tokens].
func (x Tokens) Used(ctx context.Context, p identity.Principal, id string, at int64) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	return x.db.WriteQuietly(ctx, func(w relational.Transaction) error {
		known, err := tokenExists(w, workspace, id)
		if err != nil || !known {
			return err
		}
		_, err = w.Exec(`INSERT INTO token_uses (workspace_id, token_id, used) VALUES (?, ?, ?) ON CONFLICT (workspace_id, token_id) DO UPDATE SET used = max(token_uses.used, excluded.used)`, workspace, id, at)
		return err
	})
}

// Delete implements [store.Tokens].
func (x Tokens) Delete(ctx context.Context, p identity.Principal, id string) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	return x.db.Write(ctx, func(w relational.Transaction) error {
		known, err := tokenExists(w, workspace, id)
		if err != nil {
			return err
		}
		if !known {
			return store.NotFound("token", id)
		}
		if _, err := w.Exec(`DELETE FROM token_uses WHERE workspace_id = ? AND token_id = ?`, workspace, id); err != nil {
			return err
		}
		_, err = w.Exec(`DELETE FROM tokens WHERE workspace_id = ? AND id = ?`, workspace, id)
		return err
	})
}

// Credentials implements [store.Credentials].
type Credentials struct{ db relational.Database }

// NewCredentials are those of a database.
func NewCredentials(db relational.Database) Credentials { return Credentials{db} }

const credentialColumns = `workspace_id, id, name, type, created_by, token_made_by, created, updated, problem, version`

// scanCredential reads the columns and whatever stands after them.
func scanCredential(s relational.Scanner, more ...func(*store.Credential) any) (c store.Credential, err error) {
	into := []any{&c.Workspace, &c.ID, &c.Name, &c.Type, &c.CreatedBy, &c.TokenMadeBy, &c.Created, &c.Updated, &c.Problem, &c.Version}
	for _, field := range more {
		into = append(into, field(&c))
	}
	return c, s.Scan(into...)
}

func scanSealed(s relational.Scanner) (store.Credential, error) {
	return scanCredential(s, func(c *store.Credential) any { return &c.Sealed })
}

// nameTaken refuses a name that another credential has, as its name or as its id.
func nameTaken(w relational.Transaction, workspace, id, name string) error {
	taken, err := w.Row(make([]driver.Value, 1), `SELECT 1 FROM credentials WHERE workspace_id = ? AND (name = ? OR id = ?) AND id <> ?`, workspace, name, name, id)
	if err == nil && taken {
		err = fault.Newf(fault.Conflict, "a credential with the name %q exists already; choose another name", name)
	}
	return err
}

func credentialExists(w relational.Transaction, workspace, id string) (bool, error) {
	return w.Row(make([]driver.Value, 1), `SELECT 1 FROM credentials WHERE workspace_id = ? AND id = ?`, workspace, id)
}

// Create implements [store.Credentials].
func (x Credentials) Create(ctx context.Context, p identity.Principal, c store.Credential) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	if c.ID == "" || c.Name == "" {
		return fault.New(fault.Invalid, "a credential needs an id and a name")
	}
	return x.db.Write(ctx, func(w relational.Transaction) error {
		if err := nameTaken(w, workspace, c.ID, c.Name); err != nil {
			return err
		}
		taken, err := credentialExists(w, workspace, c.ID)
		if err != nil {
			return err
		}
		if taken {
			return fault.Newf(fault.Conflict, "credential %q exists already", c.ID)
		}
		_, err = w.Exec(`INSERT INTO credentials (`+credentialColumns+`, sealed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?)`,
			workspace, c.ID, c.Name, c.Type, c.CreatedBy, c.TokenMadeBy, c.Created, c.Updated, c.Problem, c.Sealed)
		return err
	})
}

// Update implements [store.Credentials].
func (x Credentials) Update(ctx context.Context, p identity.Principal, c store.Credential) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	return x.db.Write(ctx, func(w relational.Transaction) error {
		known, err := credentialExists(w, workspace, c.ID)
		if err != nil {
			return err
		}
		if !known {
			return store.NotFound("credential", c.ID)
		}
		if err := nameTaken(w, workspace, c.ID, c.Name); err != nil {
			return err
		}
		_, err = w.Exec(`UPDATE credentials SET name = ?, type = ?, sealed = ?, updated = ?, problem = ?, version = version + 1, lease = '', lease_until = 0 WHERE id = ? AND workspace_id = ?`,
			c.Name, c.Type, c.Sealed, c.Updated, c.Problem, c.ID, workspace)
		return err
	})
}

// Swap implements [store.Credentials].
func (x Credentials) Swap(ctx context.Context, p identity.Principal, c store.Credential) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	return x.db.Write(ctx, func(w relational.Transaction) error {
		version := make([]driver.Value, 1)
		known, err := w.Row(version, `SELECT version FROM credentials WHERE workspace_id = ? AND id = ?`, workspace, c.ID)
		switch {
		case err != nil:
			return err
		case !known:
			return store.NotFound("credential", c.ID)
		case version[0] != driver.Value(c.Version):
			return fault.Newf(fault.Conflict, "credential %q was changed in the meantime", c.ID)
		}
		_, err = w.Exec(`UPDATE credentials SET sealed = ?, updated = ?, problem = ?, version = version + 1 WHERE id = ? AND workspace_id = ?`,
			c.Sealed, c.Updated, c.Problem, c.ID, workspace)
		return err
	})
}

// Lease implements [store.Credentials].
func (x Credentials) Lease(ctx context.Context, p identity.Principal, id, holder string, now, until int64) (held bool, err error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return false, err
	}
	if holder == "" {
		return false, fault.New(fault.Invalid, "a lease needs a holder")
	}
	err = x.db.Write(ctx, func(w relational.Transaction) error {
		lease := make([]driver.Value, 2)
		known, err := w.Row(lease, `SELECT lease, lease_until FROM credentials WHERE workspace_id = ? AND id = ?`, workspace, id)
		if err != nil {
			return err
		}
		if !known {
			return store.NotFound("credential", id)
		}
		ends, ok := lease[1].(int64)
		if lease[0] != driver.Value("") && lease[0] != driver.Value(holder) && ok && ends > now {
			return nil
		}
		if held = until > now; !held {
			holder, until = "", 0
		}
		_, err = w.Exec(`UPDATE credentials SET lease = ?, lease_until = ? WHERE id = ? AND workspace_id = ?`, holder, until, id, workspace)
		return err
	})
	return held && err == nil, err
}

// Get implements [store.Credentials].
func (x Credentials) Get(ctx context.Context, p identity.Principal, id string) (store.Credential, error) {
	return relational.QueryOneIn(ctx, x.db, p, store.NotFound("credential", id), `SELECT `+credentialColumns+`, sealed FROM credentials WHERE workspace_id = ? AND id = ?`, scanSealed, id)
}

// Find implements [store.Credentials].
func (x Credentials) Find(ctx context.Context, p identity.Principal, name string) (store.Credential, error) {
	return relational.QueryOneIn(ctx, x.db, p, store.NotFound("credential", name), `SELECT `+credentialColumns+`, sealed FROM credentials
		WHERE workspace_id = ?1 AND (id = ?2 OR name = ?2) ORDER BY id <> ?2 LIMIT 1`, scanSealed, name)
}

// List implements [store.Credentials].
func (x Credentials) List(ctx context.Context, p identity.Principal) ([]store.Credential, error) {
	workspace, all, err := store.ScopeAll(p)
	if err != nil {
		return nil, err
	}
	return relational.Query(ctx, x.db, `SELECT `+credentialColumns+` FROM credentials WHERE ?1 OR workspace_id = ?2 ORDER BY workspace_id, name`,
		func(s relational.Scanner) (store.Credential, error) { return scanCredential(s) }, all, workspace)
}

// Delete implements [store.Credentials].
func (x Credentials) Delete(ctx context.Context, p identity.Principal, id string) error {
	return relational.ChangeOneIn(ctx, x.db, p, store.NotFound("credential", id), `DELETE FROM credentials WHERE id = ? AND workspace_id = ?`, id)
}
