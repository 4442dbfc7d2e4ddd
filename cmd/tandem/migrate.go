package main

import (
	"context"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tandem/backup"
	"tandem/console"
	"tandem/fault"
)

func newMigrate() *cobra.Command {
	var o backup.MoveOptions
	var database databaseFlag
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Move the records of a data directory from SQLite to PostgreSQL",
		Long: `Migrate puts everything that is in the database of a data directory, and the large values beside it,
into a database of PostgreSQL: executions with their journals, timers and open questions, workflows,
users, sealed credentials, memories, the audit log. Executions that wait go on there as if nothing had
happened. The server must not run meanwhile, and the new database must be empty.

Files of workspaces and the master keys stay in the data directory, which is used with the new database
from then on: tandem serve --data DIR --database ADDRESS. The old database is kept as tandem.db.moved,
and the directory is not used without the new one any more. To go back before a server has run on the new
database, rename that file to tandem.db, and tandem.db.moved-wal, if there is one, to tandem.db-wal.

All of it is one transaction, which is committed when every table has as many rows as before. What fails
before that leaves the new database empty and the old one in use. A database of an older version is
brought up to date first, as by a start.

Exit status: 0 when everything was moved, 1 when nothing was, or when large values were moved that had
been damaged before, which are named.`,
		Example: "  TANDEM_DATABASE=postgres://tandem:PASSWORD@db.example.com/tandem tandem migrate --data /var/lib/tandem",
		Args:    cobra.NoArgs,
	}
	database.addDatabaseFlag(cmd.Flags(), "")
	addData(cmd.Flags(), &o.Dir, "the data directory whose records are moved (TANDEM_DATA)")
	return reports(cmd, func(ctx context.Context, _ []string) (backup.MoveResult, error) {
		if o.Database = database.address(); o.Database == "" {
			return backup.MoveResult{}, fault.New(fault.Invalid, "it is not said where to; name an empty database of PostgreSQL with --database (TANDEM_DATABASE)")
		}
		return backup.Move(ctx, o)
	}, func(w *tabwriter.Writer, r backup.MoveResult) { console.PrintMove(w, r, database.again()) },
		func(r backup.MoveResult) bool { return len(r.Damaged) > 0 })
}
