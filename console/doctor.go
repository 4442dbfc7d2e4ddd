package console

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"tandem/console/table"
	"tandem/doctor"
)

// PrintDiagnosis shows what was found, and what to do about it.
func PrintDiagnosis(w *tabwriter.Writer, found doctor.Diagnosis) {
	for _, f := range found.Findings {
		fmt.Fprintf(w, "%s\t%s\t%s\n", f.Status, f.Name, table.OneLine(f.Message))
		if f.Remedy != "" {
			fmt.Fprintf(w, "\t\t-> %s\n", f.Remedy)
		}
	}
}

// PrintRecovery says what a data directory has lost.
func PrintRecovery(w *tabwriter.Writer, r doctor.Recovery) {
	switch {
	case r.Lost == "":
		fmt.Fprintln(w, "nothing that was acknowledged is missing")
	case r.Accepted:
		fmt.Fprintf(w, "missing: %s\naccepted: the directory can be used again\n", r.Lost)
	default:
		fmt.Fprintf(w, "missing: %s\n", r.Lost)
	}
}

// PrintUpgrade says what an upgrade does, and what becomes of executions.
func PrintUpgrade(w *tabwriter.Writer, u doctor.Upgrade) {
	switch {
	case u.Version == u.Known:
		fmt.Fprintf(w, "database\tversion %d; nothing is changed\n", u.Version)
	case u.Copied:
		fmt.Fprintf(w, "database\tversion %d; the next start copies it and brings it to version %d: %s\n", u.Version, u.Known, strings.Join(u.Changes, ", "))
	default:
		fmt.Fprintf(w, "database\tversion %d; the next start brings it to version %d and keeps no copy, so make a backup first: %s\n", u.Version, u.Known, strings.Join(u.Changes, ", "))
	}
	fmt.Fprintf(w, "executions\t%d have not ended; %d questions are open\n", u.Executions, u.Questions)
	for _, g := range u.Groups {
		fmt.Fprintf(w, "\n%s\trevision %d, rules %d: %d executions (%s), such as %s\n",
			table.OneLine(g.Workspace+"/"+cmp.Or(g.Name, g.Workflow)), g.Revision, g.Rules, g.Count(), statuses(g.Executions), g.One)
		for _, text := range g.Stays {
			fmt.Fprintf(w, "ok\t%s\n", text)
		}
		for _, text := range g.Problems {
			fmt.Fprintf(w, "PROBLEM\t%s\n", table.OneLine(text))
		}
	}
}

// statuses lists how many executions have which status.
func statuses(of map[string]int64) string {
	var list []string
	for _, status := range slices.Sorted(maps.Keys(of)) {
		list = append(list, fmt.Sprintf("%d %s", of[status], status))
	}
	return strings.Join(list, ", ")
}
