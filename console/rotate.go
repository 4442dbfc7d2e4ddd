package console

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"tandem/app"
)

// PrintRotation says what a rotation of the master key has done, and what is left to do.
func PrintRotation(w *tabwriter.Writer, r app.Rotation) {
	fmt.Fprintf(w, "%d credentials are sealed with the new key %s", r.Resealed+r.Already, r.Key)
	if r.Already > 0 {
		fmt.Fprintf(w, " (%d of them were before)", r.Already)
	}
	fmt.Fprintln(w, ".")
	old := strings.Join(r.Old, ", ")
	switch {
	case len(r.Unreadable) > 0:
		for _, c := range r.Unreadable {
			fmt.Fprintf(w, "Credential %q (%s) of workspace %q could not be opened before and cannot now: %s\n", c.Name, c.ID, c.Workspace, c.Reason)
		}
		fmt.Fprintf(w, "So the old keys were kept (%s). Enter these credentials anew or delete them, and run this again.\n", old)
	case r.Dropped:
		fmt.Fprintf(w, "%s no longer has the old keys (%s). Backups made before open with the key file from then: keep it with them.\n", r.File, old)
		fmt.Fprintln(w, "Addresses for call backs that were handed out before are no longer good.")
	case r.File != "":
		fmt.Fprintf(w, "%s still has the old keys (%s). They open what they have sealed, and seal nothing.\n", r.File, old)
	default:
		fmt.Fprintf(w, "Take the old keys (%s) out of TANDEM_MASTER_KEY, and keep them with the backups made before.\n", old)
	}
}
