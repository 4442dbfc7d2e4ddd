package console

import (
	"strings"
	"text/tabwriter"

	"tandem/api"
	"tandem/console/table"
)

// PrintUser shows a user with their settings.
func PrintUser(w *tabwriter.Writer, me api.User) {
	table.Row(w, "user", me.ID)
	table.Row(w, "name", me.Name)
	table.Row(w, "workspace", me.Workspace)
	table.Row(w, "roles", strings.Join(me.Roles, ", "))
	if me.Language != "" {
		table.Row(w, "language", me.Language)
	}
	table.Row(w, "auto-execute", map[bool]string{true: "on", false: "off"}[me.AutoExecute])
}
