package main

import (
	"context"

	"github.com/spf13/cobra"

	"tandem/app"
	"tandem/console"
	"tandem/human"
)

// newApprove and newReject are the short way to say yes or no.
func newApprove() *cobra.Command {
	return newDecide("approve", "Say yes to a question", human.Confirmed)
}

func newReject() *cobra.Command {
	return newDecide("reject", "Say no to a question", human.Rejected)
}

func newDecide(name, short, outcome string) *cobra.Command {
	var at connectFlags
	var show listing
	var note string
	cmd := &cobra.Command{
		Use: name + " QUESTION", Short: short,
		Long: short + `: an approval, a tool that a model wants to call, a confirmation. Of the id as many characters are
enough as make it unique; "tandem inbox" lists them. Other questions are answered with "tandem inbox answer".`,
		Example: "  tandem " + name + " 3f2a --note 'looks right'",
		Args:    one("question"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				return console.Decide(ctx, terminal(cmd), c, &show.Listing, args[0], outcome, note)
			})
		},
	}
	at.addConnectFlags(cmd)
	show.addListingFlags(cmd, false)
	cmd.Flags().StringVar(&note, "note", "", "what to add, for those who look at it later")
	return cmd
}

// answerFlags are an answer on a command line.
type answerFlags struct{ console.Answer }

func (f *answerFlags) addAnswerFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.Value, "value", "", "the whole answer, as JSON")
	flags.StringArrayVar(&f.Set, "set", nil, "what is filled in, as name=value; a file as name=@path (repeatable)")
	flags.StringArrayVar(&f.Choose, "choose", nil, "an option (repeatable, where several may be chosen)")
	flags.StringArrayVar(&f.Evidence, "evidence", nil, "what a score of a review rests on, as criterion=text (repeatable)")
}

func newInboxAnswer(at *connectFlags) *cobra.Command {
	var show listing
	var f answerFlags
	cmd := &cobra.Command{
		Use: "answer QUESTION", Short: "Answer a question",
		Long: `Answer fills in what a question asks. Without an answer in flags it asks for it, on a terminal; "tandem inbox show" says
which flags a question wants. Everything that is wrong with an answer is told at once, and nothing is taken then.`,
		Example: `  tandem inbox answer 3f2a --choose approve --note 'as agreed'
  tandem inbox answer 3f2a --choose red --choose blue
  tandem inbox answer 3f2a --set amount=120 --set receipt=@receipt.pdf
  tandem inbox answer 3f2a --set accuracy=4 --evidence accuracy='checked 20 rows'
  tandem inbox answer 3f2a --value '{"field_values": {"amount": 120}}'`,
		Args: one("question"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.Check(); err != nil {
				return err
			}
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				return console.AnswerQuestion(ctx, terminal(cmd), c, &show.Listing, args[0], &f.Answer)
			})
		},
	}
	show.addListingFlags(cmd, false)
	f.addAnswerFlags(cmd)
	cmd.Flags().StringVar(&f.Note, "note", "", "what to add, for those who look at it later")
	return cmd
}
