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

func newProfiles() *cobra.Command {
	var at connectFlags
	cmd := &cobra.Command{
		Use:     "profiles",
		Aliases: []string{"profile"},
		Short:   "Keep profiles of language models, and try them",
		Long: `A profile says which model is meant: its provider, its name, where it is, what it costs, what takes its
place when it fails, and how much may be spent. Nodes name profiles, so another model is another profile and no
change of a workflow. Keys are in credentials, never in a profile; credential_id is the id or the name of one.

OpenAI, and everything that speaks its API (vLLM, DeepSeek, Qwen, ...):
  {id: main, provider: openai, model: gpt-4.1-mini, credential_id: openai-key}
Anthropic:
  {id: main, provider: anthropic, model: claude-sonnet-4-5, credential_id: anthropic-key}
Google Gemini:
  {id: main, provider: gemini, model: gemini-2.5-flash, credential_id: gemini-key}
Ollama on this machine; a private address must be on the operator's list, --http-allow 127.0.0.1
of "tandem serve" or TANDEM_HTTP_ALLOW=127.0.0.1:
  {id: main, provider: openai, model: llama3.2, base_url: "http://127.0.0.1:11434/v1"}
No model at all, for examples and tests:
  {id: main, provider: scripted, script: {rules: [{contains: weather, reply: It rains.}, {reply: "ok: {{last}}"}]}}`,
		RunE: func(cmd *cobra.Command, args []string) error { return subcommand(cmd, args) },
	}
	at.addConnectFlags(cmd)
	cmd.AddCommand(newProfilesList(&at), newProfilesGet(&at), newProfilesSet(&at), newProfilesDelete(&at), newProfilesTest(&at))
	return cmd
}

func newProfilesList(at *connectFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List profiles by id", Args: cobra.NoArgs,
	}
	return showsWide(at, cmd, func(ctx context.Context, c *app.Connection, _ []string) (api.Profiles, error) {
		return c.Profiles(ctx)
	}, console.PrintProfiles)
}

func newProfilesGet(at *connectFlags) *cobra.Command {
	cmd := &cobra.Command{Use: "get PROFILE", Short: "Show a profile as JSON, which set takes", Args: one("profile")}
	return prints(at, cmd, func(ctx context.Context, c *app.Connection, args []string) (any, error) {
		p, err := c.Profile(ctx, args[0])
		if err != nil {
			return nil, err
		}
		return c.Portable(ctx, p)
	})
}

func newProfilesSet(at *connectFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "set FILE", Short: "Make or replace the profile in a file",
		Long: `Set keeps the profile in a file, YAML or JSON; "-" reads from standard input. The id is that in the file or,
without one, the file's name. What is there under the id is replaced as a whole.`,
		Example: "  tandem profiles set main.yaml\n  echo '{id: main, provider: scripted, script: {rules: [{reply: hello}]}}' | tandem profiles set -",
		Args:    one("file"),
	}
	return keeps(at, cmd, func(ctx context.Context, c *app.Connection, args []string) (api.Profile, error) {
		return c.SetProfile(ctx, args[0], cmd.InOrStdin())
	}, func(w *tabwriter.Writer, p api.Profile) {
		fmt.Fprintf(w, "%s: kept; try it with: tandem profiles test %s%s\n", p.ID, p.ID, at.again(cmd))
	})
}

func newProfilesDelete(at *connectFlags) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use: "delete PROFILE", Short: "Delete a profile that nothing names", Args: one("profile"),
	}
	cmd.Flags().BoolVar(&force, "force", false, "also when workflows or node templates name it")
	return says(at, cmd, false, func(ctx context.Context, c *app.Connection, args []string) (string, error) {
		if err := c.Client.DeleteProfile(ctx, args[0], force); err != nil {
			return "", err
		}
		return fmt.Sprintf("%s: deleted", args[0]), nil
	})
}

func newProfilesTest(at *connectFlags) *cobra.Command {
	var show listing
	var prompt string
	cmd := &cobra.Command{
		Use: "test PROFILE", Short: "Ask the model of a profile for a few words",
		Long: `Test makes one real, small call and shows the answer and how long it took. Exit status 1 when the model could
not be asked. Without a server the call is made by this program, and --http-allow says which private
addresses it may reach.`,
		Example: "  tandem profiles test main\n  tandem profiles test ollama --http-allow 127.0.0.1 --prompt 'Which model are you?'",
		Args:    one("profile"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				t, err := c.TestProfile(ctx, args[0], api.ProfileTestRequest{Prompt: prompt})
				if err != nil {
					return err
				}
				err = show.Show(cmd.OutOrStdout(), t, func(w *tabwriter.Writer) { console.PrintProfileTest(w, t) })
				if err == nil && !t.OK {
					return console.ErrReported
				}
				return err
			})
		},
	}
	show.addListingFlags(cmd, false)
	at.addAllow(cmd)
	cmd.Flags().StringVar(&prompt, "prompt", "", "what to ask, instead of to say ok")
	return cmd
}
