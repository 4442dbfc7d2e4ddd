// Package toolservers keeps tool servers, who has activated them with which definitions of their tools, what people decided about single
// tools and the record of what they have accepted: the tables of [store.MCPServers].
//
// The store in SQLite imports it; nothing else does.
package toolservers

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"slices"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/store/relational"
)

// Servers are the tool servers of all workspaces.
type Servers struct{ db relational.Database }

// New keeps tool servers in a database.
func New(db relational.Database) *Servers { return &Servers{db} }

// AddTo sets what this package keeps in the stores of a database.
func AddTo(s *store.Stores, db relational.Database) { s.MCPServers = New(db) }

const mcpServerColumns = `workspace_id, id, name, description, transport, command, args, dir, env, url, headers, credential_id,
	timeout_seconds, idle_seconds, enabled, created, updated`

func scanMCPServer(row relational.Scanner) (s store.MCPServer, err error) {
	var args, env, headers []byte
	if err := row.Scan(&s.Workspace, &s.ID, &s.Name, &s.Description, &s.Transport, &s.Command, &args, &s.Dir, &env,
		&s.URL, &headers, &s.Credential,
		&s.TimeoutSeconds, &s.IdleSeconds, &s.Enabled, &s.Created, &s.Updated); err != nil {
		return s, err
	}
	return s, errors.Join(json.Unmarshal(args, &s.Args), json.Unmarshal(env, &s.Env), json.Unmarshal(headers, &s.Headers))
}

// Put implements [store.MCPServers].
func (x *Servers) Put(ctx context.Context, p identity.Principal, s store.MCPServer) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	s = s.WithDefaults()
	if err := s.Check(); err != nil {
		return err
	}
	if s.Args == nil {
		s.Args = []string{}
	}
	args, aerr := json.Marshal(s.Args)
	env, eerr := json.Marshal(s.Env)
	headers, herr := json.Marshal(s.Headers)
	if err := errors.Join(aerr, eerr, herr); err != nil {
		return err
	}
	return x.db.Write(ctx, func(w relational.Transaction) error {
		_, err := w.Exec(`INSERT INTO mcp_servers (`+mcpServerColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (workspace_id, id) DO UPDATE SET name = excluded.name, description = excluded.description, transport = excluded.transport,
			command = excluded.command, args = excluded.args, dir = excluded.dir, env = excluded.env, url = excluded.url, headers = excluded.headers,
			credential_id = excluded.credential_id, timeout_seconds = excluded.timeout_seconds, idle_seconds = excluded.idle_seconds,
			enabled = excluded.enabled, updated = excluded.updated`,
			workspace, s.ID, s.Name, s.Description, s.Transport, s.Command, string(args), s.Dir, string(env), s.URL,
			string(headers), s.Credential,
			int64(s.TimeoutSeconds), int64(s.IdleSeconds), relational.Flag(s.Enabled), s.Created, s.Updated)
		return err
	})
}

// Get implements [store.MCPServers].
func (x *Servers) Get(ctx context.Context, p identity.Principal, id string) (store.MCPServer, error) {
	return relational.QueryOneIn(ctx, x.db, p, store.NotFound("tool server", id), `SELECT `+mcpServerColumns+` FROM mcp_servers WHERE workspace_id = ? AND id = ?`,
		scanMCPServer, id)
}

// List implements [store.MCPServers].
func (x *Servers) List(ctx context.Context, p identity.Principal) ([]store.MCPServer, error) {
	return relational.QueryIn(ctx, x.db, p, `SELECT `+mcpServerColumns+` FROM mcp_servers WHERE workspace_id = ? ORDER BY id`, scanMCPServer)
}

// Delete implements [store.MCPServers].
func (x *Servers) Delete(ctx context.Context, p identity.Principal, id string) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	return x.db.Write(ctx, func(w relational.Transaction) error {
		n, err := w.Change(`DELETE FROM mcp_servers WHERE workspace_id = ? AND id = ?`, workspace, id)
		if err != nil {
			return err
		}
		if n == 0 {
			return store.NotFound("tool server", id)
		}
		for _, text := range []string{
			`DELETE FROM mcp_activations WHERE workspace_id = ? AND server_id = ?`,
			`DELETE FROM mcp_policies WHERE workspace_id = ? AND server_id = ?`,
			`DELETE FROM mcp_acceptances WHERE workspace_id = ? AND server_id = ?`,
		} {
			if _, err := w.Exec(text, workspace, id); err != nil {
				return err
			}
		}
		return nil
	})
}

const mcpActivationColumns = `workspace_id, server_id, user_id, activated, accepted_by, token_made_by, accepted, tools`

func scanMCPActivation(row relational.Scanner) (a store.MCPActivation, err error) {
	var tools []byte
	if err := row.Scan(&a.Workspace, &a.Server, &a.User, &a.Activated, &a.AcceptedBy, &a.TokenMadeBy, &a.Accepted, &tools); err != nil {
		return a, err
	}
	return a, json.Unmarshal(tools, &a.Tools)
}

// checkPin refuses a pin that nothing can be compared with.
func checkPin(name string, pin store.MCPPin) error {
	if name == "" || pin.Hash == "" || len(pin.Definition) == 0 {
		return fault.Newf(fault.Invalid, "the pin of tool %q needs a definition and its hash", name)
	}
	return nil
}

// Activate implements [store.MCPServers].
func (x *Servers) Activate(ctx context.Context, p identity.Principal, a store.MCPActivation, d store.MCPDecided) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	if a.Server == "" || a.User == "" {
		return fault.New(fault.Invalid, "an activation names a tool server and a user")
	}
	for name, pin := range a.Tools {
		if err := checkPin(name, pin); err != nil {
			return err
		}
	}
	if a.Tools == nil {
		a.Tools = map[string]store.MCPPin{}
	}
	tools, err := json.Marshal(a.Tools)
	if err != nil {
		return err
	}
	if err := checkDecided(d); err != nil {
		return err
	}
	return x.db.Write(ctx, func(w relational.Transaction) error {
		known, err := w.Row(make([]driver.Value, 1), `SELECT 1 FROM mcp_servers WHERE workspace_id = ? AND id = ?`, workspace, a.Server)
		if err != nil {
			return err
		}
		if !known {
			return store.NotFound("tool server", a.Server)
		}
		_, err = w.Exec(`INSERT INTO mcp_activations (`+mcpActivationColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (workspace_id, server_id, user_id) DO UPDATE SET activated = excluded.activated, accepted_by = excluded.accepted_by,
				token_made_by = excluded.token_made_by, accepted = excluded.accepted, tools = excluded.tools`,
			workspace, a.Server, a.User, a.Activated, a.AcceptedBy, a.TokenMadeBy, a.Accepted, tools)
		if err != nil {
			return err
		}
		return keepDecided(w, workspace, d)
	})
}

// noActivation says that a user does not use a server.
func noActivation(server, user string) error {
	return fault.Newf(fault.NotFound, "user %q has not activated tool server %q", user, server)
}

// Deactivate implements [store.MCPServers].
func (x *Servers) Deactivate(ctx context.Context, p identity.Principal, server, user string) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	return relational.ChangeOne(ctx, x.db, noActivation(server, user), `DELETE FROM mcp_activations WHERE workspace_id = ? AND server_id = ? AND user_id = ?`, workspace, server, user)
}

// Activation implements [store.MCPServers].
func (x *Servers) Activation(ctx context.Context, p identity.Principal, server, user string) (store.MCPActivation, error) {
	return relational.QueryOneIn(ctx, x.db, p, noActivation(server, user), `SELECT `+mcpActivationColumns+` FROM mcp_activations
		WHERE workspace_id = ? AND server_id = ? AND user_id = ?`, scanMCPActivation, server, user)
}

// Activations implements [store.MCPServers].
func (x *Servers) Activations(ctx context.Context, p identity.Principal, server, user string) ([]store.MCPActivation, error) {
	return relational.QueryIn(ctx, x.db, p, `SELECT `+mcpActivationColumns+` FROM mcp_activations
		WHERE workspace_id = ?1 AND (?2 = '' OR server_id = ?2) AND (?3 = '' OR user_id = ?3) ORDER BY server_id, user_id`,
		scanMCPActivation, server, user)
}

// Repin implements [store.MCPServers].
func (x *Servers) Repin(ctx context.Context, p identity.Principal, r store.MCPRepin) (a store.MCPActivation, err error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return a, err
	}
	for name, pin := range r.Tools {
		if pin == nil {
			continue
		}
		if err := checkPin(name, *pin); err != nil {
			return a, err
		}
	}
	if err := checkDecided(r.Decided); err != nil {
		return a, err
	}
	err = x.db.Write(ctx, func(w relational.Transaction) error {
		users := []string{r.User}
		if r.Everyone {
			err := w.Rows(1, func(row []driver.Value) {
				if user := row[0].(string); user != r.User {
					users = append(users, user)
				}
			}, `SELECT user_id FROM mcp_activations WHERE workspace_id = ? AND server_id = ? ORDER BY user_id`, workspace, r.Server)
			if err != nil {
				return err
			}
		}
		changed := map[string]bool{}
		for _, user := range users {
			one, err := repin(w, workspace, user, r, changed)
			if err != nil {
				return err
			}
			if user == r.User {
				a = one
			}
		}
		d := r.Decided
		d.Records = slices.DeleteFunc(slices.Clone(d.Records), func(one store.MCPAcceptance) bool { return !changed[one.Tool] })
		return keepDecided(w, workspace, d)
	})
	if err != nil {
		return store.MCPActivation{}, err
	}
	return a, nil
}

// repin changes the pins of one user, and notes which tools have other pins then.
func repin(w relational.Transaction, workspace, user string, r store.MCPRepin, changed map[string]bool) (store.MCPActivation, error) {
	a := store.MCPActivation{Workspace: workspace, Server: r.Server, User: user, AcceptedBy: r.AcceptedBy,
		TokenMadeBy: r.TokenMadeBy, Accepted: r.Accepted}
	row := make([]driver.Value, 2)
	known, err := w.Row(row, `SELECT activated, tools FROM mcp_activations WHERE workspace_id = ? AND server_id = ? AND user_id = ?`, workspace, r.Server, user)
	if err != nil {
		return a, err
	}
	if !known {
		return a, noActivation(r.Server, user)
	}
	a.Activated = row[0].(int64)
	if err := json.Unmarshal(row[1].([]byte), &a.Tools); err != nil {
		return a, err
	}
	for name, pin := range r.Tools { // order does not matter: each is of another tool
		was, there := a.Tools[name]
		if pin == nil {
			changed[name] = changed[name] || there
			delete(a.Tools, name)
			continue
		}
		changed[name] = changed[name] || was.Hash != pin.Hash
		a.Tools[name] = *pin
	}
	tools, err := json.Marshal(a.Tools)
	if err != nil {
		return a, err
	}
	_, err = w.Exec(`UPDATE mcp_activations SET tools = ?, accepted_by = ?, token_made_by = ?, accepted = ? WHERE workspace_id = ? AND server_id = ? AND user_id = ?`,
		tools, r.AcceptedBy, r.TokenMadeBy, r.Accepted, workspace, r.Server, user)
	return a, err
}
