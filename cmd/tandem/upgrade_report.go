package main

import (
	"cmp"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tandem/app"
	"tandem/console"
	"tandem/doctor"
	"tandem/revisions"
	"tandem/store"
)

func newUpgradeReport() *cobra.Command {
	var dir string
	var show listing
	cmd := &cobra.Command{
		Use:   "upgrade-report",
		Short: "Say before an upgrade what becomes of executions that have not ended",
		Long: `Upgrade-report is run with the new program on the data directory of the old one. It says which version the
database has and what a start of the new program would change in it, and lists the executions that have
not ended by the revision of their workflow and the rules of the engine they follow: what stays as it
is for them, and what keeps them from going on. Each revision is made ready as a start would. It changes nothing; the old server may run meanwhile.

It is for data directories with a database of SQLite, and refuses when TANDEM_DATABASE is set.

Exit status: 0 when every execution can go on, 1 when one cannot, or the database cannot be read.`,
		Example: "  ./tandem-new upgrade-report --data /var/lib/tandem",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			if err := onlySQLite(); err != nil {
				return failed(cmd, err)
			}
			u, err := doctor.ReportUpgrade(ctx, dir, func(r store.Revision, templates revisions.TemplateSet, pinned string) error {
				_, _, err := revisions.Compile(r, templates, pinned, app.Kinds(), app.Kinds())
				return err
			})
			if err != nil {
				return failed(cmd, err)
			}
			if err := show.Show(cmd.OutOrStdout(), u, func(w *tabwriter.Writer) { console.PrintUpgrade(w, u) }); err != nil {
				return failed(cmd, err)
			}
			if !u.OK {
				return console.ErrReported
			}
			return nil
		},
	}
	show.add(cmd, false)
	cmd.Flags().StringVar(&dir, "data", cmp.Or(os.Getenv("TANDEM_DATA"), "data"), "the data directory (TANDEM_DATA)")
	return cmd
}
