package main

import (
	"context"

	"github.com/spf13/cobra"

	"tandem/console"
	"tandem/doctor"
)

func newRecover() *cobra.Command {
	var dir string
	var accept bool
	cmd := &cobra.Command{
		Use:   "recover",
		Short: "Say what a data directory has lost, and go on without it",
		Long: `Recover compares the database of a data directory with what was acknowledged before, as far as
DATA/tandem.mark tells, and says what is missing: after the log was cut, damaged or removed, or the
database replaced by an older copy. A directory in which something is missing is not opened by any
other command.

If the files can be put back, put them back. If they cannot, or if a copy was restored on purpose,
--accept-loss lets the directory be used again, and keeps in the database that this was accepted.
What is missing stays missing: executions go on from what is there, and what they did after that
they may do again.

Exit status: 0 when nothing is missing or it was accepted, 1 when something is missing.`,
		Args: cobra.NoArgs,
	}
	addData(cmd.Flags(), &dir, "the data directory (TANDEM_DATA)")
	cmd.Flags().BoolVar(&accept, "accept-loss", false, "go on without what is missing")
	return reports(cmd, func(ctx context.Context, _ []string) (doctor.Recovery, error) {
		return doctor.Recover(ctx, dir, accept)
	}, console.PrintRecovery, func(r doctor.Recovery) bool { return r.Lost != "" && !r.Accepted })
}
