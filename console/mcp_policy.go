package console

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

	"tandem/api"
	"tandem/app"
	"tandem/console/table"
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
		if err := Say(out, "%s (%s): %s\n  suggested: %s, since %s\n", table.OneLine(t.ID), said(t.Class), table.OneLine(t.Description),
			said(t.Suggestion.Policy), table.OneLine(t.Suggestion.Reason)); err != nil {
			return nil, err
		}
		for again := true; again; {
			if err := Say(out, "  (r)ead-only, (a)sk always, (n)ever, or Enter to leave it: "); err != nil {
				return nil, err
			}
			line, err := lines.ReadString('\n')
			if err != nil && !errors.Is(err, io.EOF) {
				return nil, fmt.Errorf("read the answer: %w", err)
			}
			if errors.Is(err, io.EOF) && line == "" {
				return nil, errors.New("nothing was activated: the input ended; give policies with --policy, or --no-questions")
			}
			value, ok := map[string]string{"r": "read_only", "read-only": "read_only", "a": "ask", "ask": "ask", "n": "never",
				"never": "never", "": ""}[strings.ToLower(strings.TrimSpace(line))]
			if again = !ok; ok && value != "" {
				decided[t.ToolName] = api.MCPToolPolicy{Policy: value, Hash: t.Hash}
			}
		}
	}
	return decided, nil
}

// PrintPolicies lists what people have decided about tools.
func PrintPolicies(w *tabwriter.Writer, list api.MCPPolicyList) {
	if len(list.Policies)+len(list.WorkspacePolicies) == 0 {
		fmt.Fprintln(w, "nobody has set a policy")
		return
	}
	table.Row(w, "TOOL", "POLICY", "FOR", "SET BY", "SET", "RULES")
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
			table.Row(w, name, text, part.whose, byToken(p.SetBy, p.TokenMadeBy), table.Time(p.SetTime), ruleTexts(p.Rules))
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
		list = append(list, table.OneLine(fmt.Sprintf("%s %s: %s", r.Argument, condition, said(r.Policy))))
	}
	return strings.Join(list, "; ")
}

// PrintAcceptances lists which changes of tools were accepted, by whom and for whom.
func PrintAcceptances(w *tabwriter.Writer, list api.MCPAcceptances) {
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
		fmt.Fprintf(w, "%s  %s  accepted by %s for %s%s\n", table.Time(a.Time), table.OneLine(a.Summary),
			table.OneLine(byToken(a.AcceptedBy, a.TokenMadeBy)), table.OneLine(whom), where)
		for _, line := range a.Difference {
			fmt.Fprintf(w, "  %s\n", table.OneLine(line))
		}
	}
}

// ActivateServer pins the tools of a server as they are now, with policies for them. On a terminal, and without policies, it asks about
// each tool that counts as destructive, unless it is to be quiet.
func ActivateServer(ctx context.Context, tty *Terminal, c *app.Connection, show *table.Listing, server string,
	policies map[string]api.MCPToolPolicy, everyone, quiet bool) error {
	if in, ok := tty.In.(*os.File); ok && len(policies) == 0 && !quiet && !show.JSON && term.IsTerminal(in.Fd()) {
		stop := WaitsFor(ctx, tty, c, server)
		tools, err := c.MCPTools(ctx, server)
		stop()
		if err != nil {
			return err
		}
		if policies, err = askPolicies(in, tty.Out, tools); err != nil {
			return err
		}
	}
	body := api.MCPActivate{Policies: policies}
	if everyone {
		body = api.MCPActivate{WorkspacePolicies: policies}
	}
	stop := WaitsFor(ctx, tty, c, server)
	list, err := c.ActivateMCPServer(ctx, server, body)
	stop()
	if err != nil {
		return err
	}
	return show.Show(tty.Out, list, func(w *tabwriter.Writer) {
		PrintTools(w, server, list)
		fmt.Fprintf(w, "%s: activated with %s\n", server, table.Count(len(list.Tools), "tool", "tools"))
		if n := unclassed(list); n > 0 {
			fmt.Fprintf(w, "Of %s nobody has said what it does: agents ask before each call. Say so with: tandem mcp servers policy %s TOOL=read-only\n", table.Count(n, "tool", "tools"), server)
		}
	})
}
