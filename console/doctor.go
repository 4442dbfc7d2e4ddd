package console

import (
	"fmt"
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
