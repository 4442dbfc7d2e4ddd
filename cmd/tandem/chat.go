package main

import (
	"context"

	"github.com/spf13/cobra"

	"tandem/app"
	"tandem/console"
)

func newChat() *cobra.Command {
	var at connectFlags
	var f taskFlags
	cmd := &cobra.Command{
		Use:   "chat AGENT",
		Short: "Talk with an agent on the terminal",
		Long: `Chat gives an agent one goal after the other, a line each, in one conversation: it knows the last three rounds. The answers
appear while they are written, and what a task asks is asked in between.

  /new        begin a new conversation
  /auto       say whether tools of low risk are called without asking; /auto off and /auto on change it for this chat
  /help       list these
  /exit       leave; so does Ctrl-D

From a file or a pipe every line is a goal, too, or the answer to what the task before it asks; empty lines are passed over. Then nothing
but the answers goes to the standard output.

Interrupt it (Ctrl-C), and nothing new begins, what runs gets --grace to end, and the task is parked with how to resume it; once
more, and it ends at once. With a server the task goes on there.

Exit status: 0 at the end; 1, from a file or a pipe, when a task did not succeed; 130 when it was interrupted, or ended while a task
waits for a person.`,
		Example: "  tandem chat clerk\n  tandem chat clerk --conversation conv_abc\n  tandem chat clerk < questions.txt > answers.txt",
		Args:    one("agent"),
		RunE: func(cmd *cobra.Command, args []string) error {
			request, err := f.request()
			if err != nil {
				return err
			}
			return at.driving(cmd, false, func(ctx context.Context, c *app.Connection) error {
				agent, err := c.Agent(ctx, args[0])
				if err != nil {
					return err
				}
				return console.Chat(ctx, terminal(cmd), c, console.Place{Server: at.server, Dir: at.dir, Again: at.database.again()},
					agent, request)
			})
		},
	}
	at.addAllow(cmd)
	at.addGrace(cmd)
	at.addDebug(cmd)
	at.addConnectFlags(cmd)
	f.addTaskFlags(cmd)
	return cmd
}
