package main

import (
	"cmp"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tandem/app"
	"tandem/console"
	"tandem/doctor"
)

func newDoctor() *cobra.Command {
	d := doctor.Doctor{Listen: app.Listen}
	var show listing
	var database databaseFlag
	var engine engineFlags
	var ready bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find out what keeps Tandem from working here",
		Long: `Doctor looks at the data directory, its lock, its database, the master key and the address of a server,
and says what is wrong and what to do about it. It changes nothing, and may be used while a server runs.
With --engine temporal it looks at Temporal as well.

With --ready it only asks the server whether it is ready, which is quick: health checks of containers use it.

Exit status: 0 when nothing fails (warnings are allowed), 1 when something does.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			d.MasterKey, d.Version, d.Database = os.Getenv("TANDEM_MASTER_KEY"), version, database.address()
			var found doctor.Diagnosis
			if ready {
				found = d.Ready(ctx)
			} else {
				at, err := engine.engineOptions(d.Database)
				if err != nil {
					return err
				}
				if at != nil {
					d.Temporal, d.TemporalAddress = at.Try, at.Address
				}
				found = d.Examine(ctx)
			}
			err := show.Show(cmd.OutOrStdout(), found, func(w *tabwriter.Writer) { console.PrintDiagnosis(w, found) })
			if err != nil {
				return failed(cmd, err)
			}
			if !found.OK {
				return console.ErrReported
			}
			return nil
		},
	}
	show.addListingFlags(cmd, false)
	cmd.Flags().StringVar(&d.Dir, "data", cmp.Or(os.Getenv("TANDEM_DATA"), "data"), "the data directory (TANDEM_DATA)")
	database.addDatabaseFlag(cmd.Flags(), "")
	engine.addEngineFlags(cmd.Flags())
	cmd.Flags().BoolVar(&ready, "ready", false, "only ask the server whether it is ready")
	cmd.Flags().StringVar(&d.Addr, "addr", cmp.Or(os.Getenv("TANDEM_ADDR"), "127.0.0.1:8080"), "where a server listens, or would (TANDEM_ADDR)")
	return cmd
}
