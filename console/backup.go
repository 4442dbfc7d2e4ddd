package console

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"tandem/backup"
	"tandem/console/table"
)

// PrintBackup says what a backup holds and, where it was restored, where to.
func PrintBackup(w *tabwriter.Writer, r backup.Result) {
	fmt.Fprintf(w, "backup\t%s, %d bytes, made by tandem %s\n", r.File, r.Bytes, r.Program)
	fmt.Fprintf(w, "taken\t%s, of %s, database version %d\n", r.Taken.UTC().Format(time.RFC3339), r.Store, r.Version)
	var rows int64
	for _, n := range r.Tables {
		rows += n
	}
	fmt.Fprintf(w, "holds\t%d executions, %d rows in all, %d large values of %d bytes, %d files of %d bytes\n", r.Tables["executions"], rows, r.Blobs, r.BlobBytes, r.Files, r.FileBytes)
	fmt.Fprintf(w, "sum\t%s\n", r.Sum)
	switch {
	case r.Database != "":
		fmt.Fprintf(w, "restored\tinto the database %s and the directory %s\n", r.Database, r.Dir)
	case r.Dir != "":
		fmt.Fprintf(w, "restored\tinto %s\n", r.Dir)
	}
	switch {
	case r.Key != "" && r.Dir == "":
		fmt.Fprintf(w, "master keys\t%s; keep it apart from the backup\n", r.Key)
	case r.Key != "":
		fmt.Fprintf(w, "master keys\tfrom %s\n", r.Key)
	}
	if len(r.MissingKeys) > 0 {
		fmt.Fprintf(w, "MISSING KEYS\t%s: credentials that are sealed with them do not open\n", strings.Join(r.MissingKeys, ", "))
	}
	for _, name := range r.AsFound {
		fmt.Fprintf(w, "AS FOUND\tthe database %s among the files could not be copied as of one moment, since it is damaged, locked or of another kind: its files were copied one after the other and may not fit each other; check it, and make another backup when nothing writes to it\n", table.OneLine(name))
	}
	for _, name := range r.Damaged {
		fmt.Fprintf(w, "DAMAGED\tthe large value %s was damaged before the backup was made\n", name)
	}
}

// PrintMove says what was moved to PostgreSQL, and how to go on. Database is the flag that names the new database again; empty:
// the environment does.
func PrintMove(w *tabwriter.Writer, r backup.MoveResult, database string) {
	var rows int64
	for _, n := range r.Tables {
		rows += n
	}
	fmt.Fprintf(w, "moved\t%d executions, %d rows in all, %d large values of %d bytes\n", r.Tables["executions"], rows, r.Values, r.Bytes)
	fmt.Fprintf(w, "from\t%s, where the old database is kept as %s\n", r.Dir, r.Kept)
	fmt.Fprintf(w, "to\t%s\n", r.Database)
	fmt.Fprintf(w, "go on with\ttandem serve --data %s%s\n", r.Dir, database)
	for _, name := range r.Damaged {
		fmt.Fprintf(w, "DAMAGED\tthe large value %s was damaged before\n", name)
	}
}
