package console

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"tandem/api"
	"tandem/console/table"
)

// PrintUsers lists users.
func PrintUsers(w *tabwriter.Writer, list api.Users) {
	table.Row(w, "USER", "NAME", "EMAIL", "ROLES", "STATE")
	for _, u := range list.Users {
		state := "active"
		if u.Disabled {
			state = "disabled"
		}
		table.Row(w, u.ID, u.Name, u.Email, strings.Join(u.Roles, ","), state)
	}
}

// PrintTokens lists tokens.
func PrintTokens(w *tabwriter.Writer, list api.Tokens) {
	table.Row(w, "TOKEN", "NAME", "SCOPES", "MADE BY", "CREATED", "EXPIRES", "LAST USED")
	for _, t := range list.Tokens {
		scopes := strings.Join(t.Scopes, ",")
		if scopes == "" {
			scopes = "all"
		}
		table.Row(w, t.ID, t.Name, scopes, t.MadeBy, table.Time(t.CreatedTime), orNever(t.ExpiresTime), orNever(t.LastUsedTime))
	}
}

// orNever is a time that may not be set.
func orNever(ms int64) string {
	if ms == 0 {
		return "never"
	}
	return table.Time(ms)
}

// PrintInvitations lists invitations.
func PrintInvitations(w *tabwriter.Writer, list api.Invitations) {
	table.Row(w, "INVITATION", "EMAIL", "ROLES", "INVITED BY", "EXPIRES", "ACCEPTED", "USER")
	for _, i := range list.Invitations {
		table.Row(w, i.ID, i.Email, strings.Join(i.Roles, ","), i.InvitedBy, table.Time(i.ExpiresTime), orNever(i.AcceptedTime), i.UserID)
	}
}

// PrintAudit lists entries of the audit log.
func PrintAudit(w *tabwriter.Writer, list api.AuditEntries, wide bool) {
	head := []string{"TIME", "USER", "BY", "ACTION", "OBJECT"}
	if wide {
		head = append(head, "FROM", "OUTCOME", "DETAIL")
	}
	table.Row(w, head...)
	for _, e := range list.Entries {
		user := e.UserID
		if user == "" {
			user = "-"
		}
		action := e.Action
		if e.Outcome == "refused" && !wide {
			action += " (refused)"
		}
		cells := []string{table.Time(e.Time), user, e.Means.Describe(e.UserID), action, e.ObjectID}
		if wide {
			cells = append(cells, e.Address, e.Outcome, table.Cell(e.Detail))
		}
		table.Row(w, cells...)
	}
}

// PrintWorkspaces lists workspaces.
func PrintWorkspaces(w *tabwriter.Writer, list api.Workspaces) {
	table.Row(w, "WORKSPACE", "NAME", "CREATED")
	for _, one := range list.Workspaces {
		table.Row(w, one.ID, one.Name, table.Time(one.CreatedTime))
	}
}

// PrintNewWorkspace tells a workspace and the token of its admin, which is shown once.
func PrintNewWorkspace(w *tabwriter.Writer, made api.NewWorkspace) {
	fmt.Fprintf(w, "workspace %s; token %s of its admin %s, shown this once:\n  %s\n", made.Workspace.ID, made.Token.ID, table.OneLine(made.User.ID), made.Secret)
}
