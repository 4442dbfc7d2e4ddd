package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"tandem/app"
	"tandem/console"
)

func newRotateKey() *cobra.Command {
	var dir string
	var database databaseFlag
	var keep bool
	cmd := &cobra.Command{
		Use:   "rotate-key",
		Short: "Seal all credentials with a new master key",
		Long: `Rotate-key makes a new master key, puts every credential of the data directory under it, and takes the
old keys out of DATA/master.key. Stop the server first: no process may have the directory open.

It may be interrupted at any time: the old keys stay in the file until everything is on disk under the
new one. Run it again to finish.

Backups made before open with the key file from then, so keep that with them. Addresses for call backs
that were handed out before are no longer good; --keep-old leaves the old keys in the file, so that
they are.

With TANDEM_MASTER_KEY, write the new key after the old one with a space between, run this, and take
the old one out.

Exit status: 0 when every credential is under the new key, 1 when one could not be opened.`,
		Args: cobra.NoArgs,
	}
	addData(cmd.Flags(), &dir, "the data directory (TANDEM_DATA)")
	database.addDatabaseFlag(cmd.Flags(), "")
	cmd.Flags().BoolVar(&keep, "keep-old", false, "leave the old keys in the key file")
	return reports(cmd, func(ctx context.Context, _ []string) (app.Rotation, error) {
		return app.RotateKey(ctx, app.RotateOptions{Dir: dir, Database: database.address(), MasterKey: os.Getenv("TANDEM_MASTER_KEY"), KeepOld: keep})
	}, console.PrintRotation, func(r app.Rotation) bool { return len(r.Unreadable) > 0 })
}
