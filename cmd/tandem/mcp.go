package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tandem/api"
	"tandem/app"
	"tandem/console"
)

// newMCP is what has to do with the Model Context Protocol.
func newMCP() *cobra.Command {
	var at connectFlags
	var serve mcpServeFlags
	cmd := &cobra.Command{
		Use: "mcp", Short: "Be an MCP server, and use others", Long: mcpAbout,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return subcommand(cmd, args)
			}
			return serveMCP(cmd, &at, &serve)
		},
	}
	at.addConnectFlags(cmd)
	at.addAllow(cmd)
	at.addGrace(cmd)
	serve.addServeFlags(cmd)
	cmd.AddCommand(newMCPServers(&at))
	return cmd
}

func newMCPServers(at *connectFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "servers", Aliases: []string{"server"}, Short: "Keep tool servers, and use them",
		Long: `A tool server offers tools to agents and workflows. An administrator registers it; that starts nothing. Whoever
wants to use it activates it, which pins its tools as they are then: when one changes, calls of it stop until
somebody has looked at the difference and accepted it: a user for that user, an admin for everybody.

A tool of which its server says nothing counts as one that destroys, so agents ask before each call of it. What you
know of a tool you say with a policy: "tandem mcp servers policy".

A process on the machine that runs Tandem; secrets come from credentials:
  {id: files, transport: stdio, command: npx, args: [-y, "@modelcontextprotocol/server-filesystem", /srv/docs]}
  {id: github, transport: stdio, command: github-mcp-server, args: [stdio],
   env: {GITHUB_PERSONAL_ACCESS_TOKEN: {credential_id: github-key, field: token}}}
A server on the network, over streamable HTTP (http) or the older way (sse):
  {id: search, transport: http, url: "https://mcp.example.com/mcp",
   headers: {Authorization: {credential_id: search-key, field: api_key, prefix: "Bearer "}}}
One that wants people to log in: register it without headers, then "tandem mcp servers authorize ID".`,
		RunE: func(cmd *cobra.Command, args []string) error { return subcommand(cmd, args) },
	}
	cmd.AddCommand(newServersList(at), newServersSet(at), newServersShow(at), newServersRemove(at), newServersTools(at),
		newServersActivate(at), newServersDeactivate(at), newServersPolicy(at), newServersAccept(at), newServersAccepted(at),
		newServersAuthorize(at), newServersRestart(at))
	return cmd
}

func newServersList(at *connectFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List tool servers by id; nothing is started", Args: cobra.NoArgs,
	}
	return showsWide(at, cmd, func(ctx context.Context, c *app.Connection, _ []string) (api.MCPServers, error) {
		return c.MCPServers(ctx)
	}, console.PrintServers)
}

func newServersSet(at *connectFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "set FILE", Short: "Register or replace the tool server in a file; nothing is started",
		Long: `Set keeps the tool server in a file, YAML or JSON; "-" reads from standard input. The id is that in the file or,
without one, the file's name. What is there under the id is replaced as a whole; its connections end when what
reaches it has changed.`,
		Example: "  tandem mcp servers set files.yaml\n  echo '{id: search, transport: http, url: \"https://mcp.example.com/mcp\"}' | tandem mcp servers set -",
		Args:    one("file"),
	}
	return keeps(at, cmd, func(ctx context.Context, c *app.Connection, args []string) (api.MCPServer, error) {
		return c.SetMCPServer(ctx, args[0], cmd.InOrStdin())
	}, func(w *tabwriter.Writer, s api.MCPServer) {
		fmt.Fprintf(w, "%s: registered; look at its tools with: tandem mcp servers tools %s\n", s.ID, s.ID)
	})
}

func newServersShow(at *connectFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "show SERVER", Aliases: []string{"get"}, Short: "Show a tool server as JSON, which set takes", Args: one("tool server"),
	}
	return prints(at, cmd, func(ctx context.Context, c *app.Connection, args []string) (any, error) {
		s, err := c.MCPServer(ctx, args[0])
		if err != nil {
			return nil, err
		}
		return c.Portable(ctx, s)
	})
}

func newServersRemove(at *connectFlags) *cobra.Command {
	return serversDo(at, "remove SERVER", "Delete a tool server, with its activations and connections", "deleted", (*app.Connection).DeleteMCPServer, "delete")
}

func newServersDeactivate(at *connectFlags) *cobra.Command {
	return serversDo(at, "deactivate SERVER", "No longer use a tool server", "deactivated", (*app.Connection).DeactivateMCPServer)
}

func newServersRestart(at *connectFlags) *cobra.Command {
	return serversDo(at, "restart SERVER", "End the connections to a tool server; the next use makes new ones", "its connections have ended", (*app.Connection).RestartMCPServer)
}

// serversDo is a command that does one thing to a server and says that it was done.
func serversDo(at *connectFlags, use, short, done string, do func(*app.Connection, context.Context, string) error,
	aliases ...string) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Aliases: aliases, Args: one("tool server")}
	return says(at, cmd, false, func(ctx context.Context, c *app.Connection, args []string) (string, error) {
		return args[0] + ": " + done, do(c, ctx, args[0])
	})
}

func newServersTools(at *connectFlags) *cobra.Command {
	var show listing
	cmd := &cobra.Command{
		Use: "tools SERVER", Short: "List the tools of a server, which is started or reached for it", Args: one("tool server"),
		Long: `Tools lists what a server offers now. EFFECT says what repeating a call means: idempotent tools may be called
again, once tools are not without knowledge of what the first call did. CLASS is what the server says that the tool
does; one that is unclassed counts as destructive. POLICY is what people have decided: read-only, ask, never or by
argument, with "everybody" after it if it is an admin's for everybody, and "lapsed" if it is about the tool as it
was. SUGGESTED is what names and descriptions suggest, and grants nothing. DRIFT says how a tool differs from what
you have accepted; "tandem mcp servers accept" shows the difference.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := show.check(); err != nil {
				return err
			}
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				stop := console.WaitsFor(ctx, terminal(cmd), c, args[0])
				list, err := c.MCPTools(ctx, args[0])
				stop()
				if err != nil {
					return err
				}
				return show.Show(cmd.OutOrStdout(), list, func(w *tabwriter.Writer) { console.PrintTools(w, args[0], list) })
			})
		},
	}
	show.addListingFlags(cmd, false)
	at.addAllow(cmd)
	return cmd
}

func newServersAccept(at *connectFlags) *cobra.Command {
	var yes, mine bool
	cmd := &cobra.Command{
		Use: "accept SERVER [TOOL...]", Short: "Look at what has changed of the tools, and accept it",
		Long: `Accept shows how tools differ from what you have accepted, and asks. Exactly what was shown is accepted: a tool that
changes again meanwhile is not. Without names all changes are meant. What an admin accepts counts for everybody,
unless --for-me is given; what others accept counts for them. "tandem mcp servers accepted" shows what was.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] == "" {
				return errors.New("mcp servers accept needs a tool server")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				return console.AcceptChanges(ctx, terminal(cmd), c, args[0], args[1:], yes, mine)
			})
		},
	}
	at.addAllow(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "accept what is shown without asking")
	cmd.Flags().BoolVar(&mine, "for-me", false, "accept for yourself only, also as an admin")
	return cmd
}

func newServersAuthorize(at *connectFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "authorize SERVER", Short: "Begin to log in at a tool server, with a browser", Args: one("tool server"),
		Long: `Authorize prints an address; open it with a browser within 15 minutes. The tool server's site asks you to agree and
leads back to Tandem, which keeps the tokens sealed. A server must be running that the browser reaches: "tandem
serve", and --public-url where it is not on this machine. Authorize a server again when a tool of it wants more
than was granted: what it wanted is asked for together with what you have.`,
	}
	return shows(at, cmd, func(ctx context.Context, c *app.Connection, args []string) (api.MCPAuthorization, error) {
		return c.AuthorizeMCPServer(ctx, args[0])
	}, printAuthorization)
}

func printAuthorization(w *tabwriter.Writer, a api.MCPAuthorization) {
	fmt.Fprintf(w, "Open this address with a browser:\n%s\n", a.URL)
}
