package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"tandem/api"
	"tandem/app"
)

// said is a word of the API as people read it.
func said(word string) string { return strings.ReplaceAll(word, "_", "-") }

// toolPolicy is what people have decided about a tool.
func toolPolicy(t api.MCPTool) string {
	p, whose := t.Policy, ""
	if p == nil || t.DecisionFrom == "workspace_policy" && t.WorkspacePolicy != nil {
		p, whose = t.WorkspacePolicy, " (everybody)"
	}
	if p == nil {
		return ""
	}
	text := said(p.Policy)
	if len(p.Rules) > 0 {
		text = "by argument"
	}
	if p.Lapsed {
		whose += " (lapsed)"
	}
	return text + whose
}

// policyFlags are policies as they are given on the command line.
type policyFlags struct {
	each []string
	file string
}

func (p *policyFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&p.each, "policy", nil, "TOOL=POLICY: read-only, ask or never; may be repeated")
	cmd.Flags().StringVar(&p.file, "policies", "", "a file with policies by tool, YAML or JSON, also by argument; - is standard input")
}

// read reads what was given: values by the names of tools, which may be written server/tool.
func (p *policyFlags) read(server string, stdin io.Reader, more ...string) (list map[string]api.MCPToolPolicy, removed []string, err error) {
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
			return nil, nil, usageError{fmt.Errorf("%q is not TOOL=POLICY; write it like list_files=read-only", text)}
		}
		name, value := strings.TrimPrefix(text[:at], server+"/"), strings.ReplaceAll(text[at+1:], "-", "_")
		switch value {
		case "read_only", "ask", "never":
			list[name] = api.MCPToolPolicy{Policy: value}
		case "none":
			removed = append(removed, name)
		default:
			return nil, nil, usageError{fmt.Errorf("%q: %q is not a policy; use read-only, ask or never, or none to take it away", text, text[at+1:])}
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
				policies, removed, err := given.read(args[0], cmd.InOrStdin())
				if err != nil {
					return err
				}
				if len(removed) > 0 {
					return usageError{fmt.Errorf("a policy is taken away with: tandem mcp servers policy %s %s=none", args[0], removed[0])}
				}
				if in, ok := cmd.InOrStdin().(*os.File); ok && len(policies) == 0 && !quiet && !show.json && term.IsTerminal(in.Fd()) {
					stop := waitsFor(ctx, cmd, c, args[0])
					tools, err := c.MCPTools(ctx, args[0])
					stop()
					if err != nil {
						return err
					}
					if policies, err = askPolicies(in, cmd.OutOrStdout(), tools); err != nil {
						return err
					}
				}
				body := api.MCPActivate{Policies: policies}
				if everyone {
					body = api.MCPActivate{WorkspacePolicies: policies}
				}
				stop := waitsFor(ctx, cmd, c, args[0])
				list, err := c.ActivateMCPServer(ctx, args[0], body)
				stop()
				if err != nil {
					return err
				}
				return show.show(cmd.OutOrStdout(), list, func(w *tabwriter.Writer) {
					printTools(w, args[0], list)
					fmt.Fprintf(w, "%s: activated with %s\n", args[0], count(len(list.Tools), "tool", "tools"))
					if n := unclassed(list); n > 0 {
						fmt.Fprintf(w, "Of %s nobody has said what it does: agents ask before each call. Say so with: tandem mcp servers policy %s TOOL=read-only\n", count(n, "tool", "tools"), args[0])
					}
				})
			})
		},
	}
	given.add(cmd)
	cmd.Flags().BoolVar(&everyone, "everyone", false, "the policies are for everybody; for admins")
	cmd.Flags().BoolVar(&quiet, "no-questions", false, "do not ask about tools")
	show.add(cmd, false)
	return cmd
}

// unclassed counts the tools that nobody has said anything of.
func unclassed(list api.MCPTools) (n int) {
	for _, t := range list.Tools {
		if t.DecisionFrom == "nobody" {
			n++
		}
	}
	return n
}

// askPolicies asks about each tool that counts as destructive and has no policy. What was decided is about the tool as it was shown.
func askPolicies(in io.Reader, out io.Writer, list api.MCPTools) (map[string]api.MCPToolPolicy, error) {
	lines := bufio.NewReader(in)
	decided := map[string]api.MCPToolPolicy{}
	for _, t := range list.Tools {
		if t.Policy != nil || t.WorkspacePolicy != nil || t.Decision != "destructive" {
			continue
		}
		if err := say(out, "%s (%s): %s\n  suggested: %s, since %s\n", oneLine(t.ID), said(t.Class), oneLine(t.Description), said(t.Suggestion.Policy), oneLine(t.Suggestion.Reason)); err != nil {
			return nil, err
		}
		for again := true; again; {
			if err := say(out, "  (r)ead-only, (a)sk always, (n)ever, or Enter to leave it: "); err != nil {
				return nil, err
			}
			line, err := lines.ReadString('\n')
			if err != nil && !errors.Is(err, io.EOF) {
				return nil, fmt.Errorf("read the answer: %w", err)
			}
			if errors.Is(err, io.EOF) && line == "" {
				return nil, errors.New("nothing was activated: the input ended; give policies with --policy, or --no-questions")
			}
			value, ok := map[string]string{"r": "read_only", "read-only": "read_only", "a": "ask", "ask": "ask", "n": "never", "never": "never", "": ""}[strings.ToLower(strings.TrimSpace(line))]
			if again = !ok; ok && value != "" {
				decided[t.ToolName] = api.MCPToolPolicy{Policy: value, Hash: t.Hash}
			}
		}
	}
	return decided, nil
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
				policies, removed, err := given.read(args[0], cmd.InOrStdin(), args[1:]...)
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
				return show.show(cmd.OutOrStdout(), list, func(w *tabwriter.Writer) { printPolicies(w, list) })
			})
		},
	}
	given.add(cmd)
	cmd.Flags().BoolVar(&everyone, "everyone", false, "set it for everybody; for admins")
	show.add(cmd, false)
	return cmd
}

func printPolicies(w *tabwriter.Writer, list api.MCPPolicyList) {
	if len(list.Policies)+len(list.WorkspacePolicies) == 0 {
		fmt.Fprintln(w, "nobody has set a policy")
		return
	}
	row(w, "TOOL", "POLICY", "FOR", "SET BY", "SET", "RULES")
	for _, part := range []struct {
		whose string
		list  map[string]api.MCPToolPolicy
	}{{"everybody", list.WorkspacePolicies}, {"you", list.Policies}} {
		for _, name := range slices.Sorted(maps.Keys(part.list)) {
			p := part.list[name]
			text := said(p.Policy)
			if p.Lapsed {
				text += " (lapsed)"
			}
			row(w, name, text, part.whose, p.SetBy, stamp(p.SetTime), ruleTexts(p.Rules))
		}
	}
}

// ruleTexts are rules in one line.
func ruleTexts(rules []api.MCPRule) string {
	var list []string
	for _, r := range rules {
		condition := "is absent"
		switch {
		case len(r.Equals) > 0:
			condition = "= " + plain(r.Equals)
		case r.Pattern != "":
			condition = "matches " + r.Pattern
		case r.Under != "":
			condition = "under " + r.Under
		}
		list = append(list, oneLine(fmt.Sprintf("%s %s: %s", r.Argument, condition, said(r.Policy))))
	}
	return strings.Join(list, "; ")
}

func newServersAccepted(at *connectFlags) *cobra.Command {
	var show listing
	cmd := &cobra.Command{
		Use: "accepted SERVER", Short: "Show which changes of tools were accepted, by whom and for whom", Args: one("tool server"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				list, err := c.MCPAcceptances(ctx, args[0])
				if err != nil {
					return err
				}
				return show.show(cmd.OutOrStdout(), list, func(w *tabwriter.Writer) {
					if len(list.Acceptances) == 0 {
						fmt.Fprintln(w, "no change was accepted")
					}
					for _, a := range list.Acceptances {
						whom := "everybody"
						if a.Scope == "user" {
							whom = a.User
						}
						where := ""
						if a.ExecutionID != "" {
							where = ", asked by " + a.ExecutionID
						}
						fmt.Fprintf(w, "%s  %s  accepted by %s for %s%s\n", stamp(a.Time), oneLine(a.Summary), oneLine(a.AcceptedBy), oneLine(whom), where)
						for _, line := range a.Difference {
							fmt.Fprintf(w, "  %s\n", oneLine(line))
						}
					}
				})
			})
		},
	}
	show.add(cmd, false)
	return cmd
}
