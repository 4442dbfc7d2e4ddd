package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"tandem/api"
	"tandem/app"
	"tandem/console"
)

func newAudit() *cobra.Command {
	var at connectFlags
	cmd := &cobra.Command{
		Use: "audit", Short: "Read the audit log: who did what, when, from where",
		Long: `Every change and every decision leaves an entry: who, by which means (a token and who made it, a session, a link, a
channel, a command on the machine), what, when, from where. Entries are never changed. Only retention
(tandem serve --audit-days) removes old ones, and enters that it did.`,
		RunE: func(cmd *cobra.Command, args []string) error { return subcommand(cmd, args) },
	}
	at.addConnectFlags(cmd)
	cmd.AddCommand(newAuditList(&at), newAuditExport(&at))
	return cmd
}

// auditFlags say which entries are wanted.
type auditFlags struct {
	q            api.AuditQuery
	since, until string
}

func (f *auditFlags) addAuditFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.q.UserID, "user", "", "only what this user did")
	flags.StringVar(&f.q.Action, "action", "", "only this action, such as workflow.update; ending with a dot, all that begin with it")
	flags.StringVar(&f.q.Object, "object", "", "only what was done to this sort of thing: workflow, execution, user, ...")
	flags.StringVar(&f.q.ObjectID, "id", "", "only what was done to this one")
	flags.StringVar(&f.q.Outcome, "outcome", "", "done or refused")
	flags.StringVar(&f.since, "since", "", "only from this time on: 2026-11-16, 2026-11-16T08:00:00Z, or how long ago, such as 24h")
	flags.StringVar(&f.until, "until", "", "only before this time, in the same forms")
}

func (f *auditFlags) readPeriod(now time.Time) error {
	for _, one := range []struct {
		flag, text string
		into       *int64
	}{{"--since", f.since, &f.q.Since}, {"--until", f.until, &f.q.Until}} {
		if one.text == "" {
			continue
		}
		at, err := momentOf(one.text, now)
		if err != nil {
			return console.Usage(fmt.Errorf("%s: %w", one.flag, err))
		}
		*one.into = at.UnixMilli()
	}
	return nil
}

// momentOf reads a time as people write it: a date, a time, or how long ago.
func momentOf(text string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time; write it as 2026-11-16, 2026-11-16T08:00:00Z or 24h", text)
}

func newAuditList(at *connectFlags) *cobra.Command {
	var f auditFlags
	cmd := &cobra.Command{
		Use: "list", Short: "List entries, the newest first", Args: cobra.NoArgs,
		Example: "  tandem audit list --since 24h\n  tandem audit list --object workflow --id orders -o wide",
	}
	f.addAuditFlags(cmd)
	cmd.Flags().Int64Var(&f.q.Before, "before", 0, "only entries before this one, for the next page")
	cmd.Flags().IntVar(&f.q.PageSize, "limit", 0, "how many, 20 by default and 500 at most")
	cmd.PreRunE = func(*cobra.Command, []string) error { return f.readPeriod(time.Now()) }
	return showsWide(at, cmd, func(ctx context.Context, c *app.Connection, _ []string) (api.AuditEntries, error) {
		return c.Audit(ctx, f.q)
	}, func(w *tabwriter.Writer, list api.AuditEntries, wide bool) {
		console.PrintAudit(w, list, wide)
		if list.NextBefore > 0 {
			fmt.Fprintf(w, "there are more; --before %d shows them\n", list.NextBefore)
		}
	})
}

func newAuditExport(at *connectFlags) *cobra.Command {
	var f auditFlags
	var file string
	cmd := &cobra.Command{
		Use: "export", Short: "Write entries out as lines of JSON, the oldest first", Args: cobra.NoArgs,
		Example: "  tandem audit export --since 2026-11-01 > audit.jsonl\n  tandem audit export --file audit.jsonl",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.readPeriod(time.Now()); err != nil {
				return err
			}
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				if file == "" {
					return c.ExportAudit(ctx, f.q, cmd.OutOrStdout())
				}
				out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
				if err != nil {
					return fmt.Errorf("write the audit log: %w", err)
				}
				return errors.Join(c.ExportAudit(ctx, f.q, out), out.Close())
			})
		},
	}
	f.addAuditFlags(cmd)
	cmd.Flags().StringVar(&file, "file", "", "a new file to write to instead of standard output")
	return cmd
}
