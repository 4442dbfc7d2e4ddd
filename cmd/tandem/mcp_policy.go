package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tandem/api"
	"tandem/app"
	"tandem/console"
)

// policyFlags are policies as they are given on the command line.
type policyFlags struct {
	each []string
	file string
}

func (p *policyFlags) addPolicyFlags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&p.each, "policy", nil, "TOOL=POLICY: read-only, ask or never; may be repeated")
	cmd.Flags().StringVar(&p.file, "policies", "", "a file with policies by tool, YAML or JSON, also by argument; - is standard input")
}

// readPolicies reads what was given: values by the names of tools, which may be written server/tool.
func (p *policyFlags) readPolicies(server string, stdin io.Reader,
	more ...string) (list map[string]api.MCPToolPolicy, removed []string, err error) {
	list = map[string]api.MCPToolPolicy{}
	if p.file != "" {
		read, err := app.ReadMCPPolicies(p.file, stdin)
		if err != nil {
			return nil, nil, err
		}
		for name, one := range read { // order does not matter
			one.Policy = strings.ReplaceAll(one.Policy, "-", "_")
			list[strings.TrimPrefix(name, server+"/")] = one
		}
	}
	for _, text := range append(slices.Clone(p.each), more...) {
		at := strings.LastIndex(text, "=")
		if at < 1 {
			return nil, nil, console.Usage(fmt.Errorf("%q is not TOOL=POLICY; write it like list_files=read-only", text))
		}
		name, value := strings.TrimPrefix(text[:at], server+"/"), strings.ReplaceAll(text[at+1:], "-", "_")
		switch value {
		case "read_only", "ask", "never":
			list[name] = api.MCPToolPolicy{Policy: value}
		case "none":
			removed = append(removed, name)
		default:
			return nil, nil, console.Usage(fmt.Errorf("%q: %q is not a policy; use read-only, ask or never, or none to take it away", text, text[at+1:]))
		}
	}
	return list, removed, nil
}

func newServersActivate(at *connectFlags) *cobra.Command {
	var show listing
	var given policyFlags
	var everyone, quiet bool
	cmd := &cobra.Command{
		Use: "activate SERVER", Short: "Use a tool server: its tools are pinned as they are now", Args: one("tool server"),
		Long: `Activate pins the tools of a server as they are now, for you, with policies for them (see "tandem mcp servers
policy"). On a terminal, and without policies, it asks about each tool that counts as destructive and that nobody
has a policy for; Enter leaves it as it is. What is suggested is never chosen for you.`,
		Example: "  tandem mcp servers activate files --policy list_directory=read-only --policy write_file=ask\n  tandem mcp servers activate files --policies files-policies.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				policies, removed, err := given.readPolicies(args[0], cmd.InOrStdin())
				if err != nil {
					return err
				}
				if len(removed) > 0 {
					return console.Usage(fmt.Errorf("a policy is taken away with: tandem mcp servers policy %s %s=none", args[0], removed[0]))
				}
				return console.ActivateServer(ctx, terminal(cmd), c, &show.Listing, args[0], policies, everyone, quiet)
			})
		},
	}
	given.addPolicyFlags(cmd)
	cmd.Flags().BoolVar(&everyone, "everyone", false, "the policies are for everybody; for admins")
	cmd.Flags().BoolVar(&quiet, "no-questions", false, "do not ask about tools")
	show.addListingFlags(cmd, false)
	return cmd
}

func newServersPolicy(at *connectFlags) *cobra.Command {
	var show listing
	var given policyFlags
	var everyone bool
	cmd := &cobra.Command{
		Use: "policy SERVER [TOOL=POLICY...]", Aliases: []string{"policies"}, Short: "Say what is known of tools: read-only, ask, never, or by argument",
		Long: `Policy sets what calls of tools meet, for you or, by an admin with --everyone, for everybody; without policies it
shows those that hold.

  read-only  calls need no confirmation where they run by themselves (auto_execute)
  ask        every call is confirmed, whatever runs by itself
  never      no call is made
  none       takes the policy away

A file says more: rules about arguments, of which the first that matches decides.
  write_file:
    policy: ask
    rules:
      - {argument: path, under: /srv/docs/drafts, policy: read_only}
      - {argument: path, pattern: '.*\.conf', policy: never}
A rule has one of equals, pattern (a regular expression for the whole text), under (a directory or an address) and
absent. What is unclear about an argument is asked. A policy is about a tool as you have accepted it: when the tool
changes, it grants nothing until the change is accepted. Yours can be stricter than an admin's ask or never, and not
looser.`,
		Example: "  tandem mcp servers policy files list_directory=read-only move_file=never\n  tandem mcp servers policy files --policies files-policies.yaml --everyone",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] == "" {
				return errors.New("mcp servers policy needs a tool server")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				policies, removed, err := given.readPolicies(args[0], cmd.InOrStdin(), args[1:]...)
				if err != nil {
					return err
				}
				var list api.MCPPolicyList
				if len(policies)+len(removed) == 0 {
					list, err = c.MCPPolicies(ctx, args[0])
				} else {
					r := api.MCPPolicies{Scope: "user", Policies: policies, Remove: removed}
					if everyone {
						r.Scope = "workspace"
					}
					list, err = c.SetMCPPolicies(ctx, args[0], r)
				}
				if err != nil {
					return err
				}
				return show.Show(cmd.OutOrStdout(), list, func(w *tabwriter.Writer) { console.PrintPolicies(w, list) })
			})
		},
	}
	given.addPolicyFlags(cmd)
	cmd.Flags().BoolVar(&everyone, "everyone", false, "set it for everybody; for admins")
	show.addListingFlags(cmd, false)
	return cmd
}

func newServersAccepted(at *connectFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "accepted SERVER", Short: "Show which changes of tools were accepted, by whom and for whom", Args: one("tool server"),
	}
	return shows(at, cmd, func(ctx context.Context, c *app.Connection, args []string) (api.MCPAcceptances, error) {
		return c.MCPAcceptances(ctx, args[0])
	}, console.PrintAcceptances)
}
