package console

import (
	"fmt"
	"strconv"
	"text/tabwriter"

	"tandem/api"
	"tandem/console/table"
)

// PrintBudgets lists budgets, what is spent of them and who waits.
func PrintBudgets(w *tabwriter.Writer, list api.Budgets, wide bool) {
	head := []string{"BUDGET", "UNIT", "LIMIT", "RAISED", "SPENT", "RESERVED", "REMAINING", "WAITING"}
	if wide {
		head = append(head, "EXECUTIONS")
	}
	table.Row(w, head...)
	for _, b := range list.Budgets {
		cells := []string{b.Budget, b.Unit, table.Amount(b.Limit), table.Amount(b.Raised), table.Amount(b.Spent), table.Amount(b.Reserved),
			table.Amount(b.Remaining), strconv.Itoa(len(b.Waiting))}
		if wide {
			ids := ""
			for _, x := range b.Waiting {
				ids += x.ExecutionID + " "
			}
			cells = append(cells, ids)
		}
		table.Row(w, cells...)
	}
	if list.More {
		fmt.Fprintln(w, "there are more; --limit shows them, --profile and --per narrow the list")
	}
}
