package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"tandem/app"
	"tandem/console"
)

func newWorker() *cobra.Command {
	var (
		o        app.WorkOptions
		nodes    nodeFlags
		temporal temporalFlags
	)
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Run nodes of executions on Temporal, for servers with --engine temporal",
		Long: `Worker runs the nodes of executions that "tandem serve --engine temporal" has started on the same
database, Temporal namespace and task queue. Any number of workers may run. One that dies loses
nothing: what it ran is run again by another, or asked about if it must not be repeated.

A worker has no API. It answers /healthz, /readyz and, with a token, /metrics. It needs the master key of the servers
(TANDEM_MASTER_KEY, or their master.key in the data directory), and a directory of files that all of
them see if workflows use files.

Stopping (Ctrl-C or SIGTERM) begins nothing new and gives what runs --grace to end; what is left is
run by other workers. A second signal ends the process at once.

Exit status: 0 when it was told to stop, 1 when it cannot start or go on, 2 when the command is
called wrongly.`,
		Example: "  tandem worker --database postgres://tandem@db.example.com/tandem --temporal-address temporal.example.com:7233",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Database = nodes.database.address(); o.Database == "" {
				return console.Usage(errors.New("a worker needs the database of the servers; name it with --database (TANDEM_DATABASE)"))
			}
			given, err := nodes.nodeOptions(cmd)
			if err != nil {
				return err
			}
			o.HTTPAllow, o.Scripts, o.Grace, o.Log, o.Traces = given.allow, given.scripts, given.grace, nodes.log(cmd), traces()
			if o.Temporal, err = temporal.temporalOptions(); err != nil {
				return err
			}
			o.Version, o.MasterKey = version, os.Getenv("TANDEM_MASTER_KEY")
			return untilStopped(cmd, func(ctx context.Context, written *error) error {
				o.Started = func(url string) {
					_, *written = fmt.Fprintf(cmd.OutOrStdout(), "Tandem %s works; how it is: %s/readyz\n", version, url)
				}
				return app.Work(ctx, o)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Addr, "addr", cmp.Or(os.Getenv("TANDEM_ADDR"), "127.0.0.1:8081"), "where /healthz, /readyz and /metrics are (TANDEM_ADDR)")
	addData(flags, &o.Dir, "the data directory, with the files of workspaces (TANDEM_DATA)")
	nodes.addNodeFlags(cmd, "how long what runs may take to end when the worker is told to stop; 0 for no time (TANDEM_GRACE)")
	temporal.addTemporalFlags(flags)
	flags.StringVar(&temporal.o.Release, "release", os.Getenv("TANDEM_RELEASE"), "a name for this release: Temporal gives work to workers of the release that was started last; without one to whichever worker is free (TANDEM_RELEASE)")
	flags.IntVar(&o.Activations, "activations", 100, "how many nodes run at once in this worker, and up to 4 more while nothing else is to be done")
	flags.StringVar(&o.PublicURL, "public-url", os.Getenv("TANDEM_PUBLIC_URL"), "where services reach the servers to call back, as they are told (TANDEM_PUBLIC_URL)")
	flags.StringVar(&o.Language, "language", os.Getenv("TANDEM_LANGUAGE"), "zh or en: the language of the installation, as the servers have it; by default en (TANDEM_LANGUAGE)")
	return cmd
}
