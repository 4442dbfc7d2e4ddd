package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"tandem/api"
	"tandem/app"
	"tandem/console"
	"tandem/text"
)

// taskFlags are what a task is given besides its goal.
type taskFlags struct {
	params, documents      []string
	conversation, language string
	confirm                bool
}

func (f *taskFlags) addTaskFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&f.params, "param", nil, "what is known, as name=value; a value that is JSON is taken as such (repeatable)")
	flags.StringArrayVar(&f.documents, "document", nil, "a file with a text that the planner is shown (repeatable)")
	flags.StringVar(&f.conversation, "conversation", "", "the conversation that it belongs to; its last rounds are known")
	flags.StringVar(&f.language, "language", "", "zh or en; without it, the agent's")
	flags.BoolVar(&f.confirm, "confirm", false, "ask before every call, whatever the agent and you allow")
}

func (f *taskFlags) given() bool {
	return len(f.params) > 0 || len(f.documents) > 0 || f.conversation != "" || f.language != "" || f.confirm
}

// request makes a task without a goal.
func (f *taskFlags) request() (api.TaskRequest, error) {
	r := api.TaskRequest{ConversationID: f.conversation, Language: f.language}
	if f.language != "" {
		if err := text.CheckLanguage(f.language); err != nil {
			return r, console.Usage(fmt.Errorf("--language %w", err))
		}
	}
	if len(f.params) > 0 {
		known, err := app.ParseInputs(nil, f.params)
		if err != nil {
			return r, console.Usage(fmt.Errorf("--param: %s", sayError(err)))
		}
		r.Metadata = known
	}
	for _, name := range f.documents {
		text, err := os.ReadFile(name)
		if err != nil {
			return r, console.Problem(fmt.Errorf("--document: %w", err))
		}
		raw, err := json.Marshal(string(text))
		if err != nil {
			return r, console.Problem(fmt.Errorf("--document %q: %w", name, err))
		}
		r.Documents = append(r.Documents, raw)
	}
	if f.confirm {
		off := false
		r.AutoExecute = &off
	}
	return r, nil
}

func newAgentRun(at *connectFlags) *cobra.Command {
	var (
		f      taskFlags
		agent  string
		quick  app.QuickAgent
		resume string
		auto   bool
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "run GOAL",
		Short: "Give an agent a goal, and follow the task to its end",
		Long: `Run starts a task and follows it. On a terminal it draws the steps as a tree, asks you what the task asks (whether it
may go on, whether a tool may be called with these arguments, what it lacks), and writes the answer while the agent does.
Elsewhere a line for every step goes to the standard error, and nothing but the answer to the standard output; a question
parks the task and is told with how to answer it. "-" reads the goal from the standard input.

--agent says which agent; the only one there is need not be named. Without a server an agent can be described on the spot:
--profile names the model that plans, --mcp-server a tool server that is registered, and --mcp registers one: a command line, which is
started on this machine with your rights when a tool is used, or an address. That agent is kept as "cli" and its servers under
names that begin with "cli-", to be looked at and used again; the next such command replaces them.

--auto lets tools of low risk be called without asking. The agent has to allow it (one that is described on the spot then does), and
so do you: "tandem me --auto-execute on". --confirm asks before every call.

Interrupt it (Ctrl-C), and nothing new begins, what runs gets --grace to end, and the task is parked with how to resume it; once
more, and it ends at once. With a server the task goes on there.

Exit status: 0 when the task succeeded, 1 when it did not or you refused it, 2 when the command is called wrongly, 130 when
it was interrupted or waits for a person, and can be resumed.`,
		Example: `  tandem agent run "Which of our files mention the merger?" --agent clerk
  tandem agent run "What is in here?" --profile main --mcp 'npx -y @modelcontextprotocol/server-filesystem /srv/docs'
  tandem agent run "Will it rain tomorrow?" --agent weather --param city=Oslo > answer.txt
  tandem agent run --resume exec_abc`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case resume != "" && len(args) > 0:
				return errors.New("run takes a goal or --resume, not both")
			case resume == "" && (len(args) != 1 || args[0] == ""):
				return errors.New("run needs one goal; put it into quotes")
			case resume != "" && (f.given() || agent != "" || quick.Given() || auto):
				return errors.New("--resume goes on with the task as it was started; leave the other flags out")
			case agent != "" && quick.Given():
				return errors.New("--agent names an agent, and --profile, --mcp-server and --mcp describe one; use either")
			case auto && f.confirm:
				return errors.New("--auto and --confirm exclude each other")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			t := app.Task{Resume: resume, Server: at.server, Dir: at.dir, Again: at.database.again()}
			if resume == "" {
				var err error
				if t.Request, err = f.request(); err == nil {
					t.Request.Question, err = console.ReadGoal(terminal(cmd), args[0])
				}
				if err != nil {
					return err
				}
			}
			if at.server != "" && quick.Given() {
				return errors.New("with a server, name one of its agents with --agent; --profile, --mcp-server and --mcp describe one in a data directory only")
			}
			return at.driving(cmd, quick.Given(), func(ctx context.Context, c *app.Connection) (err error) {
				if resume == "" {
					if t.Agent, err = c.ChooseAgent(ctx, agent, quick, auto); err != nil {
						return err
					}
				}
				return console.RunTask(ctx, terminal(cmd), c, t, asJSON, len(args) == 0 || args[0] != "-")
			})
		},
	}
	f.addTaskFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&agent, "agent", "", "the agent")
	flags.StringVar(&quick.Profile, "profile", "", "without a server: describe an agent by the profile of the model that plans")
	flags.StringArrayVar(&quick.Servers, "mcp-server", nil, "without a server: and by a tool server that is registered (repeatable)")
	flags.StringArrayVar(&quick.Commands, "mcp", nil, "without a server: and by a tool server that is registered with this, a command line or an address (repeatable)")
	flags.BoolVar(&auto, "auto", false, "call tools of low risk without asking; the agent and you have to allow it")
	at.addAllow(cmd)
	at.addGrace(cmd)
	at.addDebug(cmd)
	flags.StringVar(&resume, "resume", "", "go on with this task instead of starting one")
	flags.BoolVar(&asJSON, "json", false, "print the events of the task, one JSON object per line, then the result")
	return cmd
}
