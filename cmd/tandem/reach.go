package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"tandem/api"
	"tandem/app"
	"tandem/console"
	"tandem/console/table"
)

func newContactChannels() *cobra.Command {
	var at connectFlags
	cmd := &cobra.Command{
		Use: "contact-channels", Aliases: []string{"contact-channel"}, Short: "Keep the accounts through which people let questions reach them",
		Long: `A contact channel is an account of the installation that messages to people go through: a mail account, a bot in
Slack, Discord, Telegram or Teams, a program that is called. An admin makes it of a credential. Each user then
chooses whether questions reach them there, and at which address of theirs: tandem me reach add.`,
		RunE: func(cmd *cobra.Command, args []string) error { return subcommand(cmd, args) },
	}
	at.addConnectFlags(cmd)
	cmd.AddCommand(newContactChannelsList(&at), newContactChannelsSet(&at), newContactChannelsRemove(&at))
	return cmd
}

func newContactChannelsList(at *connectFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List the contact channels", Args: cobra.NoArgs,
	}
	return shows(at, cmd, func(ctx context.Context, c *app.Connection, _ []string) (api.ContactChannels, error) {
		return c.ContactChannels(ctx)
	}, func(w *tabwriter.Writer, list api.ContactChannels) { console.PrintContactChannels(w, list.Channels) })
}

func newContactChannelsSet(at *connectFlags) *cobra.Command {
	var r api.ContactChannelRequest
	cmd := &cobra.Command{
		Use: "set NAME", Short: "Make a contact channel of a credential, or replace the one of that name",
		Example: `  tandem contact-channels set office --credential office-smtp --in-credential office-imap
  tandem contact-channels set team --credential acme-slack
  tandem contact-channels set pager --credential pager-secret --webhook-url https://pager.example.com/questions`,
		Args: one("name"),
	}
	cmd.Flags().StringVar(&r.CredentialID, "credential", "", "the credential that messages are sent with, by name or id")
	cmd.Flags().StringVar(&r.InCredentialID, "in-credential", "", "of mail sent by smtp: the credential that replies are read with; without one people answer by links")
	cmd.Flags().StringVar(&r.WebhookURL, "webhook-url", "", "of a webhook_secret: where questions are posted to")
	return shows(at, cmd, func(ctx context.Context, c *app.Connection, args []string) (api.ContactChannel, error) {
		return c.PutContactChannel(ctx, args[0], r)
	}, func(w *tabwriter.Writer, made api.ContactChannel) {
		console.PrintContactChannels(w, []api.ContactChannel{made})
	})
}

func newContactChannelsRemove(at *connectFlags) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use: "remove NAME", Short: "Remove a contact channel that nobody has chosen", Args: one("name"),
	}
	cmd.Flags().BoolVar(&force, "force", false, "also when users have chosen it; their questions are in the inbox then")
	return says(at, cmd, false, func(ctx context.Context, c *app.Connection, args []string) (string, error) {
		if err := c.DeleteContactChannel(ctx, args[0], force); err != nil {
			return "", err
		}
		return fmt.Sprintf("contact channel %s is removed", table.OneLine(args[0])), nil
	})
}

// newReach makes the commands about where questions reach somebody: oneself or, as an admin, another user.
func newReach(at *connectFlags, others bool) *cobra.Command {
	user, show := "me", &listing{}
	cmd := &cobra.Command{
		Use: "reach", Short: "Show and choose where questions reach you, besides the inbox",
		Long: `Every question that you may answer is in your inbox (tandem inbox). Reach lets it be sent to you as well: by mail, in a
chat, to a program, through the contact channels that an admin has made. A mail address or an account of a chat is
yours when you have entered the code that was sent there, unless an admin or your invitation has entered it.`,
		Example: "  tandem me reach\n  tandem me reach add office ann@example.com\n  tandem me reach confirm ann@example.com 12345678\n  tandem me reach add team U024BE7LH --after 10m\n  tandem me reach remove office",
		Args:    cobra.NoArgs,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
			r, err := c.Reach(ctx, user)
			return shownReach(cmd, show, r, err)
		})
	}
	show.addListingFlags(cmd, false)
	cmd.AddCommand(newReachAdd(at, &user), newReachConfirm(at), newReachRemove(at, &user))
	if others {
		cmd.Short = "Show and choose where questions reach a user, besides the inbox"
		cmd.Example = "  tandem users reach --user ann\n  tandem users reach add office ann@example.com --user ann"
		cmd.PersistentFlags().StringVar(&user, "user", "me", "whose; for another than oneself one has to be an admin, who need not prove the address")
	}
	return cmd
}

func shownReach(cmd *cobra.Command, show *listing, r api.Reach, err error) error {
	if err != nil {
		return err
	}
	return show.Show(cmd.OutOrStdout(), r, func(w *tabwriter.Writer) { console.PrintReach(w, r) })
}

func newReachAdd(at *connectFlags, user *string) *cobra.Command {
	var show listing
	var after time.Duration
	cmd := &cobra.Command{
		Use: "add CHANNEL [ADDRESS]", Short: "Let questions reach you through a contact channel, at an address of yours",
		Long: `Add chooses a contact channel and an address of yours there. An address that nobody knows to be yours is sent a code
first; "tandem me reach confirm" then takes it. A channel to a program needs no address.`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if after < 0 || after%time.Second != 0 {
				return console.Usage(fmt.Errorf("--after %s is not a number of seconds; write it as 10m", after))
			}
			contact := api.Contact{Channel: args[0], AfterSeconds: int64(after / time.Second)}
			if len(args) == 2 {
				contact.Address = args[1]
			}
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				r, proof, err := console.AddContact(ctx, c.Client, *user, contact)
				if err == nil && proof != nil {
					_, err = fmt.Fprintf(cmd.OutOrStdout(), "a code was sent to %s through %s; enter it within 30 minutes:\n  tandem me reach confirm %s CODE\n", proof.Address, proof.Channel, proof.Address)
					return err
				}
				return shownReach(cmd, &show, r, err)
			})
		},
	}
	show.addListingFlags(cmd, false)
	cmd.Flags().DurationVar(&after, "after", 0, "how long a question may wait in the inbox before it is sent there, such as 10m; by default it is sent at once")
	return cmd
}

func newReachConfirm(at *connectFlags) *cobra.Command {
	var show listing
	cmd := &cobra.Command{
		Use: "confirm ADDRESS CODE", Short: "Prove that an address is yours with the code that was sent there", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				r, err := c.ConfirmAddress(ctx, api.AddressConfirmation{Address: args[0], Code: args[1]})
				return shownReach(cmd, &show, r, err)
			})
		},
	}
	show.addListingFlags(cmd, false)
	return cmd
}

func newReachRemove(at *connectFlags, user *string) *cobra.Command {
	var show listing
	cmd := &cobra.Command{
		Use: "remove CHANNEL [ADDRESS]", Short: "Let questions no longer reach you there; the address stays yours", Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			address := ""
			if len(args) == 2 {
				address = args[1]
			}
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				r, err := console.RemoveContact(ctx, c.Client, *user, args[0], address)
				return shownReach(cmd, &show, r, err)
			})
		},
	}
	show.addListingFlags(cmd, false)
	return cmd
}
