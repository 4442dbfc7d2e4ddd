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
with the key of the data directory, and what is secret in it is never shown again. Workflows, profiles and
tool servers name it by its name, which is the same in every installation, or by its id.`,
		RunE: func(cmd *cobra.Command, args []string) error { return subcommand(cmd, args) },
	}
	at.addConnectFlags(cmd)
	cmd.AddCommand(newCredentialsList(&at), newCredentialsSet(&at), newCredentialsRename(&at), newCredentialsDelete(&at),
		newCredentialsUses(&at), newCredentialsTest(&at), newCredentialsAuthorize(&at), newCredentialsTypes(&at))
	return cmd
}

func newCredentialsList(at *connectFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List credentials, without what is secret in them", Args: cobra.NoArgs,
	}
	return shows(at, cmd, func(ctx context.Context, c *app.Connection, _ []string) (api.Credentials, error) {
		return c.Credentials(ctx)
	}, console.PrintCredentials)
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

func newCredentialsRename(at *connectFlags) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use: "rename CREDENTIAL NAME", Short: "Give a credential another name",
		Long: `Rename gives a credential another name; its secrets stay. It is refused with a list while workflows or other
records use it by its old name, since they would no longer find it. Those that have its id do.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				return console.RenameCredential(ctx, terminal(cmd), c, args[0], args[1], force)
			})
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "also when something uses it by its old name")
	return cmd
}

func newCredentialsDelete(at *connectFlags) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use: "delete CREDENTIAL", Short: "Delete a credential that nothing uses, by id or name", Args: one("credential"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				return c.DeleteCredential(ctx, args[0], force)
			})
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "also when something uses it")
	return cmd
}

func newCredentialsTest(at *connectFlags) *cobra.Command {
	var show listing
	cmd := &cobra.Command{
		Use: "test CREDENTIAL", Short: "Try a credential at its service, by a call that changes nothing", Args: one("credential"),
		Long: `Test shows a credential to the service that it is for: it logs in to the mail server or the database, asks whose token it is,
lists models, or fetches a token. Nothing is sent or changed. It fails when the service does not take the credential.
Types that cannot be tried say why.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := show.check(); err != nil {
				return err
			}
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				got, err := c.TestCredential(ctx, args[0])
				if err != nil {
					return err
				}
				if err := show.Show(cmd.OutOrStdout(), got,
					func(w *tabwriter.Writer) { console.PrintCredentialTest(w, args[0], got) }); err != nil {
					return err
				}
				if got.Testable && !got.OK {
					return fmt.Errorf("credential %q is not taken", args[0])
				}
				return nil
			})
		},
	}
	show.addListingFlags(cmd, false)
	return cmd
}

func newCredentialsUses(at *connectFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "uses CREDENTIAL", Short: "List what uses a credential", Args: one("credential"),
		Long: `Uses lists what names a credential by its id or its name: the newest and the deployed revision of workflows, node
templates, profiles, tool servers, and channels with questions that wait for a reply.`,
	}
	return shows(at, cmd, func(ctx context.Context, c *app.Connection, args []string) (api.CredentialUses, error) {
		return c.CredentialUses(ctx, args[0])
	}, console.PrintCredentialUses)
}

func newCredentialsAuthorize(at *connectFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "authorize CREDENTIAL", Short: "Let a person authorize a credential with a browser", Args: one("credential"),
		Long: `Authorize prints an address. Open it with a browser within 15 minutes, agree at the service, and you are led back
here; the tokens are then kept in the credential and renewed before they end. It is for the types google_oauth,
microsoft_oauth and oauth2, whose credential needs the client_id and client_secret of a client that is
registered with the service, for the redirect address PUBLIC-URL/credentials/authorized.`,
	}
	return shows(at, cmd, func(ctx context.Context, c *app.Connection, args []string) (api.MCPAuthorization, error) {
		return c.AuthorizeCredential(ctx, args[0])
	}, printAuthorization)
}

func newCredentialsTypes(at *connectFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "types", Short: "List the types of credentials and their fields", Args: cobra.NoArgs,
	}
	return keeps(at, cmd, func(ctx context.Context, c *app.Connection, _ []string) (api.CredentialTypes, error) {
		return c.CredentialTypes(ctx)
	}, console.PrintCredentialTypes)
}
