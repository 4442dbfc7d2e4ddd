package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"tandem/app"
	"tandem/console"
	"tandem/login"
)

func newServe() *cobra.Command {
	var (
		o     app.ServeOptions
		nodes nodeFlags
		// oidcRoles is which group gives which role.
		oidcRoles string
		engine    engineFlags
	)
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the server: the API, and every execution of the data directory",
		Long: `Serve takes up what was under way in the data directory and answers the API until it is told to
stop. The first start makes a token for the first user and shows it once, with a link; after that
only its hash is kept. With --token that token is used instead, as long as it is given.

Stopping (Ctrl-C or SIGTERM) begins nothing new and gives what runs --grace to end; /readyz says
that it drains. Requests are still answered: what they start or answer is kept. Then streams are
closed, and the next start goes on with what is left, as after a crash. A second signal ends the
process at once.

With --database a second server on the same database forwards requests to the first, and takes over
when that is gone. With --engine temporal as well, executions run on the workers of a Temporal
cluster ("tandem worker") instead of in the server.

Credentials are sealed with the key in DATA/master.key, which the first start makes, or with
TANDEM_MASTER_KEY. Traces are sent when OTEL_EXPORTER_OTLP_ENDPOINT or TANDEM_OTLP_ENDPOINT is set.

Exit status: 0 when it was told to stop, 1 when it cannot start or go on, 2 when the command is
called wrongly.`,
		Example: "  tandem serve\n  tandem serve --addr 0.0.0.0:8080 --data /var/lib/tandem\n  tandem serve --workflows examples",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			given, err := nodes.nodeOptions(cmd)
			if err != nil {
				return err
			}
			if o.Login.Roles, err = login.ParseRoles(oidcRoles); err != nil {
				return console.Usage(fmt.Errorf("--oidc-roles: %s", sayError(err)))
			}
			o.Login.ClientSecret = os.Getenv("TANDEM_OIDC_CLIENT_SECRET")
			if o.AuditDays < 0 {
				return console.Usage(fmt.Errorf("--audit-days %d is negative; 0 keeps the audit log for ever", o.AuditDays))
			}
			o.HTTPAllow, o.Scripts, o.Grace, o.Log, o.Traces = given.allow, given.scripts, given.grace, nodes.log(cmd), traces()
			o.Version, o.MasterKey = version, os.Getenv("TANDEM_MASTER_KEY")
			return untilStopped(cmd, func(ctx context.Context, written *error) error {
				o.Started = func(s app.Serving) { *written = console.PrintServing(cmd.OutOrStdout(), s, o) }
				return app.Serve(ctx, o)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Addr, "addr", cmp.Or(os.Getenv("TANDEM_ADDR"), "127.0.0.1:8080"), "the address to listen on (TANDEM_ADDR)")
	addData(flags, &o.Dir, "the data directory (TANDEM_DATA)")
	nodes.addNodeFlags(cmd, "how long what runs may take to end when the server is told to stop; 0 for no time (TANDEM_GRACE)")
	engine.addEngineFlags(flags)
	flags.StringVar(&o.PeerURL, "peer-url", os.Getenv("TANDEM_PEER_URL"), "where other servers of the same database reach this one to forward requests, such as http://10.0.0.5:8080; by default where it listens (TANDEM_PEER_URL)")
	// The default is not the variable's value: help would show it.
	flags.StringVar(&o.Token, "token", "", "the token of the first user; better given as TANDEM_TOKEN, which other users of the machine cannot see")
	flags.StringVar(&o.PublicURL, "public-url", os.Getenv("TANDEM_PUBLIC_URL"), "where services reach the server to call back, such as https://tandem.example.com; by default where it listens (TANDEM_PUBLIC_URL)")
	flags.StringVar(&o.Language, "language", os.Getenv("TANDEM_LANGUAGE"), "zh or en: the language of pages and messages where neither the reader nor the workflow says another; by default en (TANDEM_LANGUAGE)")
	flags.StringVar(&o.Proxies, "trusted-proxies", os.Getenv("TANDEM_TRUSTED_PROXIES"), "addresses and networks of proxies in front of the server, separated by commas; only these are believed when they say in X-Forwarded-For where a request comes from (TANDEM_TRUSTED_PROXIES)")
	flags.StringVar(&o.Login.Issuer, "oidc-issuer", os.Getenv("TANDEM_OIDC_ISSUER"), "the address of a provider of identities (OpenID Connect) at which people log in (TANDEM_OIDC_ISSUER); the secret of the client is in TANDEM_OIDC_CLIENT_SECRET")
	flags.StringVar(&o.Login.ClientID, "oidc-client-id", os.Getenv("TANDEM_OIDC_CLIENT_ID"), "what the provider calls this installation (TANDEM_OIDC_CLIENT_ID)")
	flags.StringVar(&o.Login.RoleClaim, "oidc-role-claim", os.Getenv("TANDEM_OIDC_ROLE_CLAIM"), "the claim that names the groups of a user, such as groups; by default roles are those of the invitation (TANDEM_OIDC_ROLE_CLAIM)")
	flags.StringVar(&oidcRoles, "oidc-roles", os.Getenv("TANDEM_OIDC_ROLES"), "which group gives which role, as GROUP=ROLE, separated by commas (TANDEM_OIDC_ROLES)")
	flags.IntVar(&o.AuditDays, "audit-days", 0, "how many days the audit log is kept; 0 for ever")
	flags.StringVar(&o.Workflows, "workflows", "", "a directory whose workflow files are kept at the start, with the profiles of models in its directory \"profiles\" that are not there yet")
	flags.DurationVar(&o.MCPWait, "mcp-wait", 25*time.Second, "how long a call of a tool at /mcp waits for its execution to end")
	flags.IntVar(&o.MaxTasks, "max-tasks", 30, "how many tasks of agents run at once; more wait for their turn")
	flags.IntVar(&o.TaskStarts, "task-starts", 5, "how many tasks a user may start within 15 seconds; -1 for any number")
	cmd.PreRunE = func(_ *cobra.Command, _ []string) (err error) {
		o.Token, o.Database = cmp.Or(o.Token, os.Getenv("TANDEM_TOKEN")), nodes.database.address()
		o.Temporal, err = engine.engineOptions(o.Database)
		return err
	}
	return cmd
}
