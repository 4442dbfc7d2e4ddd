package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"tandem/backup"
	"tandem/console"
)

func newBackup() *cobra.Command {
	var o backup.Options
	var database databaseFlag
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write everything that an installation keeps to a file",
		Long: `Backup writes everything that a data directory holds to one file, as it is at one moment: executions
with their journals, questions, workflows, users, credentials, memories, files and large values. A
server may run and write meanwhile; it is not disturbed. With --database (TANDEM_DATABASE) the records
and large values are those of that database of PostgreSQL, and the files and keys those of the data
directory.

Credentials stay sealed. The master keys that open them are written to FILE.key: keep the two files
in different places, since whoever has both has the secrets. With TANDEM_MASTER_KEY there is no such
file; keep the value of the variable.

The file has its name only when it is whole and on disk. "tandem restore" makes a data directory of it,
or fills a database of PostgreSQL, and "tandem restore --check" reads it through.

Exit status: 0 when the backup was made, 1 when it was not, or holds large values that were damaged
before, a database among the files that could not be copied as of one moment, or credentials whose
master keys are neither in the data directory nor in TANDEM_MASTER_KEY, which are named.`,
		Example: "  tandem backup tandem-monday.backup --data /var/lib/tandem",
		Args:    cobra.ExactArgs(1),
	}
	database.addDatabaseFlag(cmd.Flags(), "")
	addData(cmd.Flags(), &o.Dir, "the data directory (TANDEM_DATA)")
	return reports(cmd, func(ctx context.Context, args []string) (backup.Result, error) {
		o.File, o.Database, o.MasterKey, o.Program = args[0], database.address(), os.Getenv("TANDEM_MASTER_KEY"), version
		return backup.Make(ctx, o)
	}, console.PrintBackup, func(r backup.Result) bool { return damaged(r) || len(r.MissingKeys) > 0 })
}

// damaged says that a backup holds something that was damaged before it was made.
func damaged(r backup.Result) bool { return len(r.Damaged)+len(r.AsFound) > 0 }

func newRestore() *cobra.Command {
	var o backup.RestoreOptions
	var database databaseFlag
	var check bool
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Make a data directory, or a database of PostgreSQL, of a backup",
		Long: `Restore makes a data directory of what "tandem backup" has written. The directory must be empty or not
exist yet. The whole file is read and its sum checked before anything is written: a backup that is
damaged or cut off changes nothing. If it is interrupted, run it again.

With --database (TANDEM_DATABASE) the records and large values are put into that database of PostgreSQL,
which must be empty, in one transaction, and the data directory gets the files and keys that belong to
it. A backup of SQLite can be restored into PostgreSQL; one of PostgreSQL needs a database of
PostgreSQL.

The master keys are taken from FILE.key, or from the file that --key names; with TANDEM_MASTER_KEY no
key file is written.

Executions go on from where they were when the backup was made, as soon as a server opens the directory:
what they did after that they may do again. See to it that the server the backup is of runs no more.

Exit status: 0 when everything was restored, or with --check when the file is whole; 1 otherwise, and
also when it was restored and holds what was damaged before the backup was made, which is named.`,
		Example: "  tandem restore tandem-monday.backup --data /var/lib/tandem\n  tandem restore --check tandem-monday.backup\n  tandem restore tandem-monday.backup --data /var/lib/tandem --database postgres://tandem@db.example.com/tandem",
		Args:    cobra.ExactArgs(1),
	}
	database.addDatabaseFlag(cmd.Flags(), "")
	addData(cmd.Flags(), &o.Dir, "the data directory that is made (TANDEM_DATA)")
	cmd.Flags().StringVar(&o.Key, "key", "", "the file with the master keys; by default FILE.key, if it is there")
	cmd.Flags().BoolVar(&o.WithoutKey, "without-key", false, "restore also when master keys are missing; what they sealed has to be entered again")
	cmd.Flags().BoolVar(&check, "check", false, "only read the backup and say what it holds")
	return reports(cmd, func(ctx context.Context, args []string) (backup.Result, error) {
		o.File, o.Database, o.MasterKey = args[0], database.address(), os.Getenv("TANDEM_MASTER_KEY")
		if check {
			return backup.Check(ctx, o.File)
		}
		return backup.Restore(ctx, o)
	}, console.PrintBackup, damaged)
}
