package main

import (
	"cmp"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tandem/backup"
	"tandem/console"
)

func newBackup() *cobra.Command {
	var o backup.Options
	var show listing
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write everything in a data directory to a file",
		Long: `Backup writes everything that a data directory holds to one file, as it is at one moment: executions
with their journals, questions, workflows, users, credentials, memories, files and large values. A
server may run and write meanwhile; it is not disturbed.

Credentials stay sealed. The master keys that open them are written to FILE.key: keep the two files
in different places, since whoever has both has the secrets. With TANDEM_MASTER_KEY there is no such
file; keep the value of the variable.

The file has its name only when it is whole and on disk. "tandem restore" makes a data directory of it,
and "tandem restore --check" reads it through.

It is for data directories with a database of SQLite. With TANDEM_DATABASE it refuses: the records are in
PostgreSQL then, and pg_dump saves them.

Exit status: 0 when the backup was made, 1 when it was not, or holds large values that were damaged
before, or a database among the files that could not be copied as of one moment.`,
		Example: "  tandem backup tandem-monday.backup --data /var/lib/tandem",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			if err := onlySQLite(); err != nil {
				return failed(cmd, err)
			}
			o.File, o.MasterKey, o.Program = args[0], os.Getenv("TANDEM_MASTER_KEY"), version
			r, err := backup.Make(ctx, o)
			if err != nil {
				return failed(cmd, err)
			}
			return showBackup(cmd, &show, r)
		},
	}
	show.add(cmd, false)
	cmd.Flags().StringVar(&o.Dir, "data", cmp.Or(os.Getenv("TANDEM_DATA"), "data"), "the data directory (TANDEM_DATA)")
	return cmd
}

// showBackup says what a backup holds. It is not all well with one that has something that was damaged before.
func showBackup(cmd *cobra.Command, show *listing, r backup.Result) error {
	if err := show.Show(cmd.OutOrStdout(), r, func(w *tabwriter.Writer) { console.PrintBackup(w, r) }); err != nil {
		return failed(cmd, err)
	}
	if len(r.Damaged)+len(r.AsFound) > 0 {
		return console.ErrReported
	}
	return nil
}

func newRestore() *cobra.Command {
	var o backup.RestoreOptions
	var show listing
	var check bool
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Make a data directory of a backup",
		Long: `Restore makes a data directory of what "tandem backup" has written. The directory must be empty or not
exist yet. The whole file is read and its sum checked before anything is written: a backup that is
damaged or cut off changes nothing. If it is interrupted, run it again.

The master keys are taken from FILE.key, or from the file that --key names; with TANDEM_MASTER_KEY no
key file is written.

Executions go on from where they were when the backup was made, as soon as a server opens the directory:
what they did after that they may do again. See to it that the server the backup is of runs no more.

With TANDEM_DATABASE it refuses, but for --check: a server would not use the database that is made.

Exit status: 0 when everything was restored, or with --check when the file is whole; 1 otherwise, and
also when it was restored and holds what was damaged before the backup was made, which is named.`,
		Example: "  tandem restore tandem-monday.backup --data /var/lib/tandem\n  tandem restore --check tandem-monday.backup",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			o.File, o.MasterKey = args[0], os.Getenv("TANDEM_MASTER_KEY")
			var r backup.Result
			var err error
			if check {
				r, err = backup.Check(ctx, o.File)
			} else if err = onlySQLite(); err == nil {
				r, err = backup.Restore(ctx, o)
			}
			if err != nil {
				return failed(cmd, err)
			}
			return showBackup(cmd, &show, r)
		},
	}
	show.add(cmd, false)
	cmd.Flags().StringVar(&o.Dir, "data", cmp.Or(os.Getenv("TANDEM_DATA"), "data"), "the data directory that is made (TANDEM_DATA)")
	cmd.Flags().StringVar(&o.Key, "key", "", "the file with the master keys; by default FILE.key, if it is there")
	cmd.Flags().BoolVar(&o.WithoutKey, "without-key", false, "restore also when master keys are missing; what they sealed has to be entered again")
	cmd.Flags().BoolVar(&check, "check", false, "only read the backup and say what it holds")
	return cmd
}
