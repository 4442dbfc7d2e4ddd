package main

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tandem/api"
	"tandem/app"
	"tandem/console"
	"tandem/text"
)

func newMe() *cobra.Command {
	var at connectFlags
	var show listing
	var auto, language string
	cmd := &cobra.Command{
		Use:   "me",
		Short: "Show who you are, and change your own settings",
		Long: `Me shows the user that the token belongs to; without a server, the one user of the data directory.

With --auto-execute on, tasks that you give to agents may call tools of low risk without asking you, if the agent allows that as well.
Calls of higher risk are confirmed all the same, unless the agent's policy names their level. It is off until you turn it on.

"tandem me reach" shows and chooses where questions reach you, besides the inbox.`,
		Example: "  tandem me\n  tandem me --auto-execute on",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var r api.MeRequest
			if cmd.Flags().Changed("auto-execute") {
				if auto != "on" && auto != "off" {
					return console.Usage(fmt.Errorf("--auto-execute %q is not known; use on or off", auto))
				}
				on := auto == "on"
				r.AutoExecute = &on
			}
			if cmd.Flags().Changed("language") {
				if language != "" {
					if err := text.CheckLanguage(language); err != nil {
						return console.Usage(fmt.Errorf("--language %w, or an empty text for that of the question", err))
					}
				}
				r.Language = &language
			}
			changes := r != (api.MeRequest{})
			return at.with(cmd, changes, func(ctx context.Context, c *app.Connection) error {
				var me api.User
				var err error
				if changes {
					me, err = c.UpdateMe(ctx, r)
				} else {
					me, err = c.Me(ctx)
				}
				if err != nil {
					return err
				}
				return show.Show(cmd.OutOrStdout(), me, func(w *tabwriter.Writer) { console.PrintUser(w, me) })
			})
		},
	}
	at.addConnectFlags(cmd)
	show.addListingFlags(cmd, false)
	cmd.AddCommand(newReach(&at, false))
	cmd.Flags().StringVar(&language, "language", "", "en or zh: the language of the messages and pages that you read")
	cmd.Flags().StringVar(&auto, "auto-execute", "", "on or off: whether tools of low risk are called without asking you, where the agent allows it, too")
	return cmd
}
