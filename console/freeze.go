package console

import (
	"fmt"
	"text/tabwriter"

	"tandem/api"
	"tandem/console/table"
	"tandem/payload"
)

// PrintFrozen prints what has become of the task. Values of which nobody knows the origin are not part of the definition: they are listed
// on the output for errors.
func PrintFrozen(tty *Terminal, show *table.Listing, want api.FreezeRequest, frozen api.Frozen, out string, file []byte) error {
	if show.JSON {
		return table.JSON(tty.Out, frozen)
	}
	switch {
	case !want.DryRun:
		fmt.Fprintf(tty.Out, "workflow %s\n", table.OneLine(frozen.WorkflowID))
	case out == "":
		if err := WriteOut(tty.Out, "", file); err != nil {
			return err
		}
	}
	if len(frozen.Untraced) == 0 {
		return nil
	}
	fmt.Fprintln(tty.Err, "These values stay as they were in the task:")
	return show.Show(tty.Err, frozen, func(w *tabwriter.Writer) {
		table.Row(w, "STEP", "ARGUMENT", "VALUE", "REASON")
		for _, u := range frozen.Untraced {
			table.Row(w, u.StepID, u.Path, payload.JSON(u.Value), u.Reason)
		}
	})
}
