package toolservers

import (
	"context"
	"encoding/json"
	"slices"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/store/relational"
)

const mcpPolicyColumns = `workspace_id, server_id, tool, user_id, policy, rules, hash, set_by, token_made_by, set_at`

func scanMCPPolicy(row relational.Scanner) (p store.MCPPolicy, err error) {
	var rules []byte
	if err := row.Scan(&p.Workspace, &p.Server, &p.Tool, &p.User, &p.Policy, &rules, &p.Hash, &p.SetBy,
		&p.TokenMadeBy, &p.Set); err != nil {
		return p, err
	}
	return p, json.Unmarshal(rules, &p.Rules)
}

const mcpAcceptanceColumns = `workspace_id, server_id, tool, user_id, kind, summary, before, before_hash, after, after_hash, accepted_by, token_made_by, execution_id, accepted`

func scanMCPAcceptance(row relational.Scanner) (a store.MCPAcceptance, err error) {
	var before, after []byte
	err = row.Scan(&a.Workspace, &a.Server, &a.Tool, &a.User, &a.Kind, &a.Summary, &before, &a.BeforeHash, &after, &a.AfterHash, &a.By,
		&a.TokenMadeBy, &a.Execution, &a.Accepted)
	if len(before) > 0 {
		a.Before = before
	}
	if len(after) > 0 {
		a.After = after
	}
	return a, err
}

// removes says that a policy stands for its removal.
func removes(p store.MCPPolicy) bool { return p.Policy == "" && len(p.Rules) == 0 }

func checkDecided(d store.MCPDecided) error {
	for _, one := range d.Policies {
		if removes(one) {
			continue
		}
		if err := one.Check(); err != nil {
			return err
		}
	}
	for _, r := range d.Records {
		if r.Server == "" || r.Tool == "" || r.Kind == "" || r.By == "" {
			return fault.New(fault.Invalid, "the record of an acceptance names a tool server, a tool, the kind of the change and who has accepted it")
		}
	}
	return nil
}

// keepDecided keeps what was decided with an acceptance.
func keepDecided(w relational.Transaction, workspace string, d store.MCPDecided) error {
	raw := func(definition json.RawMessage) []byte { return append([]byte{}, definition...) }
	for _, r := range d.Records {
		_, err := w.Exec(`INSERT INTO mcp_acceptances (`+mcpAcceptanceColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			workspace, r.Server, r.Tool, r.User, r.Kind, r.Summary, raw(r.Before), r.BeforeHash, raw(r.After), r.AfterHash, r.By,
			r.TokenMadeBy, r.Execution, r.Accepted)
		if err != nil {
			return err
		}
		if r.BeforeHash == "" || r.AfterHash == "" || !slices.Contains(d.Carry, r.Tool) {
			continue
		}
		_, err = w.Exec(`UPDATE mcp_policies SET hash = ?1 WHERE workspace_id = ?2 AND server_id = ?3 AND tool = ?4 AND hash = ?5 AND (?6 = '' OR user_id = ?6)`,
			r.AfterHash, workspace, r.Server, r.Tool, r.BeforeHash, r.User)
		if err != nil {
			return err
		}
	}
	return setPolicies(w, workspace, d.Policies)
}

func setPolicies(w relational.Transaction, workspace string, policies []store.MCPPolicy) error {
	for _, one := range policies {
		if removes(one) {
			if _, err := w.Exec(`DELETE FROM mcp_policies WHERE workspace_id = ? AND server_id = ? AND tool = ? AND user_id = ?`, workspace, one.Server, one.Tool, one.User); err != nil {
				return err
			}
			continue
		}
		rules, err := json.Marshal(one.Rules)
		if err != nil {
			return err
		}
		_, err = w.Exec(`INSERT INTO mcp_policies (`+mcpPolicyColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (workspace_id, server_id, tool, user_id) DO UPDATE SET policy = excluded.policy, rules = excluded.rules, hash = excluded.hash,
				set_by = excluded.set_by, token_made_by = excluded.token_made_by, set_at = excluded.set_at`,
			workspace, one.Server, one.Tool, one.User, one.Policy, string(rules), one.Hash, one.SetBy, one.TokenMadeBy, one.Set)
		if err != nil {
			return err
		}
	}
	return nil
}

// SetPolicies implements [store.MCPServers].
func (x *Servers) SetPolicies(ctx context.Context, p identity.Principal, policies ...store.MCPPolicy) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	if err := checkDecided(store.MCPDecided{Policies: policies}); err != nil {
		return err
	}
	return x.db.Write(ctx, func(w relational.Transaction) error { return setPolicies(w, workspace, policies) })
}

// Policies implements [store.MCPServers].
func (x *Servers) Policies(ctx context.Context, p identity.Principal, server, tool, user string) ([]store.MCPPolicy, error) {
	return relational.QueryIn(ctx, x.db, p, `SELECT `+mcpPolicyColumns+` FROM mcp_policies
		WHERE workspace_id = ?1 AND server_id = ?2 AND (?3 = '' OR tool = ?3) AND (user_id = '' OR user_id = ?4) ORDER BY tool, user_id`,
		scanMCPPolicy, server, tool, user)
}

// ForgetPolicies implements [store.MCPServers].
func (x *Servers) ForgetPolicies(ctx context.Context, p identity.Principal, user string) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	if user == "" {
		return fault.New(fault.Invalid, "the policies of a user are forgotten by the user's id")
	}
	return x.db.Write(ctx, func(w relational.Transaction) error {
		_, err := w.Exec(`DELETE FROM mcp_policies WHERE workspace_id = ? AND user_id = ?`, workspace, user)
		return err
	})
}

// Acceptances implements [store.MCPServers].
func (x *Servers) Acceptances(ctx context.Context, p identity.Principal, server, user string, limit int) ([]store.MCPAcceptance, error) {
	return relational.QueryIn(ctx, x.db, p, `SELECT `+mcpAcceptanceColumns+` FROM mcp_acceptances
		WHERE workspace_id = ?1 AND server_id = ?2 AND (?3 = '' OR user_id = '' OR user_id = ?3) ORDER BY id DESC LIMIT ?4`,
		scanMCPAcceptance, server, user, limit)
}
