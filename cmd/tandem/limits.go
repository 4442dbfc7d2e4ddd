package main

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tandem/api"
	"tandem/app"
	"tandem/console"
)

func newLimits() *cobra.Command {
	var at connectFlags
	var show listing
	cmd := &cobra.Command{
		Use: "limits", Short: "See what the workspace may use and how long it keeps things, and set it",
		Long: `What a workspace may use: how many executions run at once, how many are started by requests within some time, on a day
and in a month, how many bytes are stored. And how long it keeps executions that have ended, deliveries of triggers
and the audit log. Nothing is limited, and everything is kept for ever, unless an admin says otherwise.`,
		Args: cobra.NoArgs,
		Example: `  tandem limits
  tandem limits set --running 20 --starts-per-user 10/60s
  tandem limits set --keep-executions 30d,100000 --keep-deliveries 14d --keep-audit 365d
  tandem limits tidy`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				l, err := c.Limits(ctx)
				if err != nil {
					return err
				}
				return show.Show(cmd.OutOrStdout(), l, func(w *tabwriter.Writer) { console.PrintLimits(w, l) })
			})
		},
	}
	at.addConnectFlags(cmd)
	show.addListingFlags(cmd, false)
	cmd.AddCommand(newLimitsSet(&at), newTidy(&at))
	return cmd
}

func newLimitsSet(at *connectFlags) *cobra.Command {
	var show listing
	cmd := &cobra.Command{
		Use: "set", Short: "Change limits; those that are not named stay as they are", Args: cobra.NoArgs,
		Long: `Change limits of the workspace. Those that are not named stay as they are; "off" takes one away. Admins only.`,
	}
	flags := cmd.Flags()
	texts := map[string]*string{}
	for _, f := range [][2]string{
		{"running", "how many executions run at once; more wait for their turn"},
		{"running-per-user", "how many executions of one user run at once"},
		{"starts", "how many executions requests may start in a time, such as 100/60s"},
		{"starts-per-user", "how many executions the requests of one user may start in a time, such as 10/60s"},
		{"executions-per-day", "how many executions are started on a day (UTC)"},
		{"executions-per-month", "how many executions are started in a month (UTC)"},
		{"storage", "how much may be stored, such as 20GiB"},
		{"keep-executions", "how long executions are kept that have ended: 30d, 1000 for the newest so many, or 30d,1000 for both"},
		{"keep-deliveries", "how long deliveries of triggers are kept, in the same forms"},
		{"keep-audit", "how long entries of the audit log are kept, in the same forms"},
		{"keep-blobs", "after how many days files go that nothing has ever named, such as 30d"},
	} {
		texts[f[0]] = flags.String(f[0], "", f[1])
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		changes := map[string]string{}
		for name, text := range texts { // order does not matter: each is a field of its own
			if flags.Changed(name) {
				changes[name] = *text
			}
		}
		if len(changes) == 0 {
			return console.Usage(fmt.Errorf("name a limit to set; \"tandem limits set --help\" lists them"))
		}
		if err := changeLimits(&api.LimitSettings{}, changes); err != nil {
			return console.Usage(err)
		}
		return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
			now, err := c.Limits(ctx)
			if err != nil {
				return err
			}
			if err := changeLimits(&now.Settings, changes); err != nil {
				return err
			}
			if now, err = c.PutLimits(ctx, now.Settings); err != nil {
				return err
			}
			return show.Show(cmd.OutOrStdout(), now, func(w *tabwriter.Writer) { console.PrintLimits(w, now) })
		})
	}
	show.addListingFlags(cmd, false)
	return cmd
}

// changeLimits puts what flags say into settings.
func changeLimits(s *api.LimitSettings, changes map[string]string) (err error) {
	numbers := map[string]*int64{"running": &s.Running, "running-per-user": &s.RunningPerUser, "executions-per-day": &s.ExecutionsPerDay, "executions-per-month": &s.ExecutionsPerMonth}
	windows := map[string]*api.StartWindow{"starts": &s.Starts, "starts-per-user": &s.StartsPerUser}
	kept := map[string]*api.Retained{"keep-executions": &s.Retention.Executions, "keep-deliveries": &s.Retention.Deliveries, "keep-audit": &s.Retention.Audit}
	for name, text := range changes { // order does not matter: each is a field of its own, and one error is enough
		switch {
		case numbers[name] != nil:
			var k api.Retained
			if k, err = console.ParseKept(text); err == nil && k.Days > 0 {
				err = fmt.Errorf("%q is not a number", text)
			}
			*numbers[name] = k.Count
		case windows[name] != nil:
			*windows[name], err = console.ParseWindow(text)
		case kept[name] != nil:
			*kept[name], err = console.ParseKept(text)
		case name == "storage":
			s.StorageBytes, err = console.ParseBytes(text)
		default:
			var k api.Retained
			if k, err = console.ParseKept(text); err == nil && k.Count > 0 {
				err = fmt.Errorf("%q is not a number of days; write it as 30d", text)
			}
			s.Retention.BlobDays = k.Days
		}
		if err != nil {
			return fmt.Errorf("--%s: %w", name, err)
		}
	}
	return nil
}

func newTidy(at *connectFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "tidy", Short: "Remove now what has been kept long enough, and make the files as small as possible", Args: cobra.NoArgs,
		Long: `Remove now what is not kept any longer, overwrite what removed records have left in the files, and give the room back. A
server does this every hour by itself. Admins only.`,
	}
	return shows(at, cmd, func(ctx context.Context, c *app.Connection, _ []string) (api.TidyReport, error) {
		return c.Tidy(ctx)
	}, console.PrintTidied)
}

func newDeleteExecution(at *connectFlags) *cobra.Command {
	var show listing
	var reason string
	cmd := &cobra.Command{
		Use: "delete EXECUTION", Short: "Delete an execution that has ended, with everything that is kept of it", Args: one("execution"),
		Long: `Delete an execution that has ended: its journal, logs, questions with their answers, the executions that it started, and files
that nothing else names. It cannot be had back. The audit log keeps who did it, when and why. Admins only.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				gone, err := c.DeleteExecution(ctx, args[0], reason)
				if err != nil {
					return err
				}
				if c.Local() { // no server does it within the hour
					if _, err := c.Tidy(ctx); err != nil {
						return err
					}
				}
				return show.Show(cmd.OutOrStdout(), gone, func(w *tabwriter.Writer) {
					fmt.Fprintf(w, "deleted execution %s: %d executions with %d rows are gone\n", gone.ExecutionID, gone.Executions, gone.JournalRows)
				})
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the audit log")
	show.addListingFlags(cmd, false)
	return cmd
}
