package console

import (
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"tandem/api"
	"tandem/console/table"
)

// PrintAgents lists agents.
func PrintAgents(w *tabwriter.Writer, list api.Agents, wide bool) {
	head := []string{"AGENT", "PROFILE", "TOOL SERVERS", "AUTO", "UPDATED"}
	if wide {
		head = append(head, "NAME", "REVISION", "LANGUAGE", "DESCRIPTION")
	}
	table.Row(w, head...)
	for _, a := range list.Agents {
		cells := []string{a.ID, a.LLMProfile, strings.Join(a.MCPServers, ","), autoText(a), table.Time(a.UpdatedTime)}
		if wide {
			cells = append(cells, a.Name, strconv.FormatInt(a.Revision, 10), a.Language, a.Description)
		}
		table.Row(w, cells...)
	}
	table.More(w, len(list.Agents), list.TotalCount)
}

// autoText says which calls of an agent need no confirmation, for users who allow that, too.
func autoText(a api.Agent) string {
	if !a.AutoExecute {
		return "no"
	}
	levels := []string{"low"}
	for _, l := range a.Policy.AutoApprove {
		if !slices.Contains(levels, l) {
			levels = append(levels, l)
		}
	}
	return strings.Join(levels, ",")
}
