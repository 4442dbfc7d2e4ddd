package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tandem/api"
	"tandem/app"
	"tandem/console"
	"tandem/console/table"
)

// change does something with a question and says how it stands then.
func change(cmd *cobra.Command, at *connectFlags, show *listing, id, done string,
	do func(ctx context.Context, c *app.Connection, d api.InteractionDetail) (api.Interaction, error)) error {
	return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
		return console.ChangeQuestion(ctx, terminal(cmd), c, &show.Listing, id, done,
			func(ctx context.Context, d api.InteractionDetail) (api.Interaction, error) {
				return do(ctx, c, d)
			})
	})
}

func newInboxDelegate(at *connectFlags) *cobra.Command {
	var show listing
	var r api.DelegateRequest
	cmd := &cobra.Command{
		Use: "delegate QUESTION --to USER", Short: "Let somebody else answer in your place", Args: one("question"),
		Long: `Delegate hands your answer on to another user, where the question allows it. You cannot answer it any more then.
An admin may hand on the answer of somebody else with --from, and says why with --note; both are recorded and shown.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if r.To == "" {
				return errors.New("name who answers in your place with --to: a user, or their mail address")
			}
			return change(cmd, at, &show, args[0], "delegated to "+table.OneLine(r.To),
				func(ctx context.Context, c *app.Connection, d api.InteractionDetail) (api.Interaction, error) {
					return c.Delegate(ctx, d.ID, r)
				})
		},
	}
	show.addListingFlags(cmd, false)
	cmd.Flags().StringVar(&r.To, "to", "", "who answers: a user as user:ID, or their mail address")
	cmd.Flags().StringVar(&r.Note, "note", "", "what to tell them")
	cmd.Flags().StringVar(&r.From, "from", "", "whose answer it is, if it is not yours; for admins, with --note")
	return cmd
}

func newInboxCancel(at *connectFlags) *cobra.Command {
	var show listing
	var reason string
	cmd := &cobra.Command{
		Use: "cancel QUESTION", Short: "Withdraw a question", Args: one("question"),
		Long: "Cancel withdraws a question: nobody has to answer it, and the node that asks it fails with canceled.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return change(cmd, at, &show, args[0], "", func(ctx context.Context, c *app.Connection,
				d api.InteractionDetail) (api.Interaction, error) {
				return c.CancelInteraction(ctx, d.ID, reason)
			})
		},
	}
	show.addListingFlags(cmd, false)
	cmd.Flags().StringVar(&reason, "reason", "", "why, for those who look at it later")
	return cmd
}

func newInboxRemind(at *connectFlags) *cobra.Command {
	var show listing
	cmd := &cobra.Command{
		Use: "remind QUESTION", Short: "Remind those who are asked, now", Args: one("question"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return change(cmd, at, &show, args[0], "reminded",
				func(ctx context.Context, c *app.Connection, d api.InteractionDetail) (api.Interaction, error) {
					return c.Remind(ctx, d.ID)
				})
		},
	}
	show.addListingFlags(cmd, false)
	return cmd
}

func newInboxLink(at *connectFlags) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use: "link QUESTION --to RECIPIENT", Short: "Make a link by which somebody can answer without an account", Args: one("question"),
		Long: `Link makes an address of the response page. Whoever has it answers in the name of the recipient, once; so it is shown to them
alone, this one time. An admin can have one sent to somebody who is asked, at an address of theirs. It needs a server, and begins with its public address ("tandem serve --public-url"; by default where it listens).`,
	}
	cmd.Flags().StringVar(&to, "to", "", "who the link is for: a user as user:ID, a mail address, or anyone")
	cmd.PreRunE = func(_ *cobra.Command, _ []string) error {
		if to == "" {
			return errors.New("name who the link is for with --to: one of those who are asked, or anyone for an open form")
		}
		return nil
	}
	return shows(at, cmd, func(ctx context.Context, c *app.Connection, args []string) (api.Link, error) {
		d, err := console.FindInteraction(ctx, c, args[0])
		if err != nil {
			return api.Link{}, err
		}
		return c.Link(ctx, d.ID, to)
	}, func(w *tabwriter.Writer, link api.Link) {
		if link.SentTo != "" {
			fmt.Fprintln(w, "sent to "+table.OneLine(link.SentTo))
			return
		}
		fmt.Fprintln(w, link.URL)
	})
}

func newInboxOverride(at *connectFlags) *cobra.Command {
	var show listing
	var f answerFlags
	var reason string
	cmd := &cobra.Command{
		Use: "override QUESTION --reason WHY", Short: "Decide a question in the place of those who are asked", Args: one("question"),
		Long: `Override decides a question in the place of those who are asked, whatever votes it wants. It is for admins. The record says that
it was an override, by whom and why, and those who were asked are told.`,
		Example: "  tandem inbox override 3f2a --choose approve --reason 'both approvers are ill'",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.Check(); err != nil {
				return err
			}
			if strings.TrimSpace(reason) == "" {
				return errors.New("say why with --reason")
			}
			return change(cmd, at, &show, args[0], "overridden",
				func(ctx context.Context, c *app.Connection, d api.InteractionDetail) (api.Interaction, error) {
					return console.OverrideQuestion(ctx, c, d, &f.Answer, reason)
				})
		},
	}
	show.addListingFlags(cmd, false)
	f.addAnswerFlags(cmd)
	cmd.Flags().StringVar(&f.Note, "note", "", "what to add to the answer")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for those who were asked")
	return cmd
}

func newInboxOverrule(at *connectFlags) *cobra.Command {
	var show listing
	var f answerFlags
	var reason string
	cmd := &cobra.Command{
		Use: "overrule QUESTION RESPONSE --reason WHY", Short: "Correct how a reply in prose was understood",
		Long: `Overrule takes a reply by mail or chat back: it counts no longer or, with an answer in flags, as that. "tandem inbox show"
lists the replies and what they were taken for.`,
		Example: "  tandem inbox overrule 3f2a 9c01 --reason 'it is a quotation'\n  tandem inbox overrule 3f2a 9c01 --choose approve --reason 'she agrees'",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return errors.New("inbox overrule needs a question and one of its responses")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.Check(); err != nil {
				return err
			}
			if reason == "" {
				return errors.New("say why with --reason")
			}
			return change(cmd, at, &show, args[0], "overruled",
				func(ctx context.Context, c *app.Connection, d api.InteractionDetail) (api.Interaction, error) {
					return console.OverruleReply(ctx, c, d, args[1], &f.Answer, reason)
				})
		},
	}
	show.addListingFlags(cmd, false)
	f.addAnswerFlags(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "why, for those who look at it later")
	return cmd
}

func newInboxWatch(at *connectFlags) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "watch", Short: "Follow the questions that wait for you", Args: cobra.NoArgs,
		Long: `Watch prints a line for every question that waits for you, and for every one that is new or has ended, until it is interrupted.
A connection that breaks is made again, and nothing is told twice or left out. It needs a server: without one nothing asks.

Exit status: 130 when it was interrupted.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				return console.WatchInbox(ctx, terminal(cmd), c, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the frames of the stream, one JSON object per line")
	return cmd
}
