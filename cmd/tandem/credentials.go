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

func newCredentials() *cobra.Command {
	var at connectFlags
	cmd := &cobra.Command{
		Use: "credentials", Aliases: []string{"credential"}, Short: "Keep keys and passwords, sealed",
		Long: `A credential is what a service wants to see: a key, a password, an address with both in it. It is kept sealed
with the key of the data directory, and what is secret in it is never shown again. Nodes and profiles name it.`,
		RunE: func(cmd *cobra.Command, args []string) error { return subcommand(cmd, args) },
	}
	at.add(cmd)
	cmd.AddCommand(newCredentialsList(&at), newCredentialsSet(&at), newCredentialsDelete(&at), newCredentialsTypes(&at))
	return cmd
}

func newCredentialsList(at *connectFlags) *cobra.Command {
	var show listing
	cmd := &cobra.Command{
		Use: "list", Short: "List credentials, without what is secret in them", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := show.check(); err != nil {
				return err
			}
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				list, err := c.Credentials(ctx)
				if err != nil {
					return err
				}
				return show.Show(cmd.OutOrStdout(), list, func(w *tabwriter.Writer) { console.PrintCredentials(w, list) })
			})
		},
	}
	show.add(cmd, false)
	return cmd
}

func newCredentialsSet(at *connectFlags) *cobra.Command {
	var kind, file string
	var fromEnv []string
	cmd := &cobra.Command{
		Use: "set NAME", Short: "Keep a credential, or replace the one of that name",
		Long: `Set keeps a credential under a name. Its fields are read from environment variables or from a file with a JSON
object ("-" is standard input), so that no secret is in the history of the shell or in the list of processes.
"tandem credentials types" shows which fields a type has.`,
		Example: `  tandem credentials set openai-key --type openai --env api_key=OPENAI_API_KEY
  tandem credentials set shop --type sql --file shop.json`,
		Args: one("name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if kind == "" {
				return console.Usage(fmt.Errorf(`--type is missing; "tandem credentials types" lists them`))
			}
			data, err := console.CredentialData(fromEnv, file, cmd.InOrStdin())
			if err != nil {
				return err
			}
			return at.with(cmd, true, func(ctx context.Context, c *app.Connection) error {
				return console.SetCredential(ctx, terminal(cmd), c, api.CredentialRequest{Name: args[0], Type: kind, Data: data})
			})
		},
	}
	cmd.Flags().StringVar(&kind, "type", "", "the type, such as openai, anthropic, gemini, http_auth or sql")
	cmd.Flags().StringArrayVar(&fromEnv, "env", nil, "a field and the environment variable that has it: api_key=OPENAI_API_KEY; may be repeated")
	cmd.Flags().StringVar(&file, "file", "", `a file with the fields as a JSON object, "-" for standard input`)
	return cmd
}

func newCredentialsDelete(at *connectFlags) *cobra.Command {
	return &cobra.Command{
		Use: "delete CREDENTIAL", Short: "Delete a credential by id or name", Args: one("credential"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				return console.DeleteCredential(ctx, c, args[0])
			})
		},
	}
}

func newCredentialsTypes(at *connectFlags) *cobra.Command {
	var show listing
	cmd := &cobra.Command{
		Use: "types", Short: "List the types of credentials and their fields", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := show.check(); err != nil {
				return err
			}
			return at.with(cmd, true, func(ctx context.Context, c *app.Connection) error {
				list, err := c.CredentialTypes(ctx)
				if err != nil {
					return err
				}
				return show.Show(cmd.OutOrStdout(), list, func(w *tabwriter.Writer) { console.PrintCredentialTypes(w, list) })
			})
		},
	}
	show.add(cmd, false)
	return cmd
}
