package main

import (
	"context"

	"github.com/spf13/cobra"

	"tandem/app"
	"tandem/console"
	"tandem/doctor"
)

func newUpgradeReport() *cobra.Command {
	var o app.Options
	var database databaseFlag
	cmd := &cobra.Command{
		Use:   "upgrade-report",
		Short: "Say before an upgrade what becomes of executions that have not ended",
		Long: `Upgrade-report is run with the new program on the data directory of the old one, or on its database of PostgreSQL. It says which version the
database has and what a start of the new program would change in it, and lists the executions that have
not ended by the revision of their workflow and the rules of the engine they follow: what stays as it
is for them, and what keeps them from going on. Each revision is made ready as a start would. It changes nothing; the old server may run meanwhile.

A program that brings kinds of its own, with Tandem as a library, calls app.ReportUpgrade with its options: this
command knows only the kinds that Tandem has.

Exit status: 0 when every execution can go on, 1 when one cannot, or the database cannot be read.`,
		Example: "  ./tandem-new upgrade-report --data /var/lib/tandem\n  TANDEM_DATABASE=postgres://… ./tandem-new upgrade-report",
		Args:    cobra.NoArgs,
	}
	database.addDatabaseFlag(cmd.Flags(), "")
	addData(cmd.Flags(), &o.Dir, "the data directory (TANDEM_DATA)")
	return reports(cmd, func(ctx context.Context, _ []string) (doctor.Upgrade, error) {
		o.Database = database.address()
		return app.ReportUpgrade(ctx, o)
	}, console.PrintUpgrade, func(u doctor.Upgrade) bool { return !u.OK })
}
