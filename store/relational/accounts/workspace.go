package accounts

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/store/relational"
)

// whole refuses anyone who is not Tandem itself, for the whole installation.
func whole(p identity.Principal) error {
	if err := store.RequireSystem(p); err != nil {
		return err
	}
	if _, all, err := store.ScopeAll(p); err != nil || !all {
		return fault.New(fault.Forbidden, "this is for the whole installation")
	}
	return nil
}

// Rename implements [store.Workspaces].
func (x Workspaces) Rename(ctx context.Context, p identity.Principal, id, name string) error {
	if err := whole(p); err != nil {
		return err
	}
	return x.db.Write(ctx, func(w relational.Transaction) error {
		n, err := w.Change(`UPDATE workspaces SET name = ? WHERE workspace_id = ? AND deleted = 0`, name, id)
		if err == nil && n == 0 {
			err = store.NotFound("workspace", id)
		}
		return err
	})
}

// Delete implements [store.Workspaces].
func (x Workspaces) Delete(ctx context.Context, p identity.Principal, id string, now int64) error {
	if err := whole(p); err != nil {
		return err
	}
	return x.db.Write(ctx, func(w relational.Transaction) error {
		n, err := w.Change(`UPDATE workspaces SET deleted = ? WHERE workspace_id = ? AND deleted = 0`, now, id)
		if err != nil {
			return err
		}
		if n == 0 {
			return store.NotFound("workspace", id)
		}
		if err := holdsNothing(w, id); err != nil {
			return err
		}
		tables, err := tablesOfWorkspaces(w)
		if err != nil {
			return err
		}
		for _, table := range tables {
			if _, err := w.Exec(`DELETE FROM `+table+` WHERE workspace_id = ?`, id); err != nil {
				return err
			}
		}
		return nil
	})
}

// holdsNothing refuses to remove a workspace that has something which somebody might miss, or that something might still come of.
func holdsNothing(w relational.Transaction, id string) error {
	var held []string
	for _, one := range []struct{ what, from string }{
		{"workflows or agents", `workflows WHERE workspace_id = ? AND deleted = 0`}, {"executions", `executions WHERE workspace_id = ?`}, {"credentials", `credentials WHERE workspace_id = ?`},
		{"tool servers", `mcp_servers WHERE workspace_id = ?`}, {"memories", `memory_scopes WHERE workspace_id = ?`},
	} {
		row := make([]driver.Value, 1)
		if _, err := w.Row(row, `SELECT count(*) FROM `+one.from, id); err != nil {
			return err
		}
		if n, _ := row[0].(int64); n > 0 {
			held = append(held, fmt.Sprintf("%d %s", n, one.what))
		}
	}
	if len(held) > 0 {
		return fault.Newf(fault.Conflict, "workspace %q still holds %s; remove these first", id, strings.Join(held, ", "))
	}
	return nil
}

// tablesOfWorkspaces are the tables whose rows belong to workspaces, except for those that outlive one: its name, and its audit log.
func tablesOfWorkspaces(w relational.Transaction) (list []string, err error) {
	tables, err := w.Tables("workspace_id")
	for _, name := range tables {
		switch name {
		case "workspaces", "audit", "audit_retained":
		default:
			list = append(list, name)
		}
	}
	return list, err
}

// AddTo sets what this package keeps in the stores of a database.
func AddTo(s *store.Stores, db relational.Database) {
	s.Workspaces = NewWorkspaces(db)
	s.Users = NewUsers(db)
	s.Tokens = NewTokens(db)
	s.Credentials = NewCredentials(db)
	s.Sessions = NewSessions(db)
	s.Invitations = NewInvitations(db)
	s.Logins = NewLogins(db)
	s.Contacts = NewContacts(db)
	s.Proofs = NewProofs(db)
}
