package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tandem/api"
	"tandem/app"
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
				return show.show(cmd.OutOrStdout(), list, func(w *tabwriter.Writer) {
					row(w, "CREDENTIAL", "NAME", "TYPE")
					for _, one := range list.Credentials {
						row(w, one.ID, one.Name, one.Type)
					}
				})
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
				return usageError{fmt.Errorf(`--type is missing; "tandem credentials types" lists them`)}
			}
			data, err := credentialData(fromEnv, file, cmd.InOrStdin())
			if err != nil {
				return err
			}
			return at.with(cmd, true, func(ctx context.Context, c *app.Connection) error {
				list, err := c.Credentials(ctx)
				if err != nil {
					return err
				}
				r := api.CredentialRequest{Name: args[0], Type: kind, Data: data}
				var kept api.Credential
				if i := slices.IndexFunc(list.Credentials, func(x api.Credential) bool { return x.Name == args[0] }); i >= 0 {
					kept, err = c.UpdateCredential(ctx, list.Credentials[i].ID, r)
				} else {
					kept, err = c.CreateCredential(ctx, r)
				}
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "credential %q of type %s is kept as %s\n", kept.Name, kept.Type, kept.ID)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&kind, "type", "", "the type, such as openai, anthropic, gemini, http_auth or sql")
	cmd.Flags().StringArrayVar(&fromEnv, "env", nil, "a field and the environment variable that has it: api_key=OPENAI_API_KEY; may be repeated")
	cmd.Flags().StringVar(&file, "file", "", `a file with the fields as a JSON object, "-" for standard input`)
	return cmd
}

// credentialData gathers the fields of a credential from where they are kept.
func credentialData(fromEnv []string, file string, stdin io.Reader) (json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	if file != "" {
		var raw []byte
		var err error
		if file == "-" {
			raw, err = io.ReadAll(io.LimitReader(stdin, 1<<20))
		} else {
			raw, err = os.ReadFile(file)
		}
		if err != nil {
			return nil, err
		}
		if json.Unmarshal(raw, &fields) != nil {
			return nil, usageError{fmt.Errorf("%s holds no JSON object", cmp.Or(strings.TrimPrefix(file, "-"), "standard input"))}
		}
	}
	for _, pair := range fromEnv {
		name, variable, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, usageError{fmt.Errorf("--env %q: write field=VARIABLE", pair)}
		}
		value, set := os.LookupEnv(variable)
		if !set || value == "" {
			return nil, usageError{fmt.Errorf("--env %q: the environment has no variable %s", pair, variable)}
		}
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		fields[name] = raw
	}
	if len(fields) == 0 {
		return nil, usageError{fmt.Errorf("there are no fields; give --env or --file")}
	}
	return json.Marshal(fields)
}

func newCredentialsDelete(at *connectFlags) *cobra.Command {
	return &cobra.Command{
		Use: "delete CREDENTIAL", Short: "Delete a credential by id or name", Args: one("credential"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				id := args[0]
				list, err := c.Credentials(ctx)
				if err != nil {
					return err
				}
				if i := slices.IndexFunc(list.Credentials, func(x api.Credential) bool { return x.Name == args[0] }); i >= 0 {
					id = list.Credentials[i].ID
				}
				return c.DeleteCredential(ctx, id)
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
				return show.show(cmd.OutOrStdout(), list, func(w *tabwriter.Writer) {
					row(w, "TYPE", "FIELDS")
					for _, one := range list.Types {
						var fields []string
						for _, f := range one.Fields {
							name := f.Name
							if f.Required {
								name += "*"
							}
							fields = append(fields, name)
						}
						row(w, one.Name, strings.Join(fields, ", "))
					}
				})
			})
		},
	}
	show.add(cmd, false)
	return cmd
}
