package console

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"tandem/api"
	"tandem/app"
	"tandem/console/table"
	"tandem/mcp"
)

// yesNo is a truth as a word.
func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// serverAddress is how a tool server is reached: its address, or the command that starts it.
func serverAddress(s api.MCPServer) string {
	if s.URL != "" {
		return s.URL
	}
	return strings.Join(append([]string{s.Command}, s.Args...), " ")
}

// Say prints a text.
func Say(out io.Writer, format string, args ...any) error {
	if _, err := fmt.Fprintf(out, format, args...); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}

// serverNotice is how long a tool server may take before the person at the terminal reads what is waited for.
const serverNotice = 2 * time.Second

// WaitsFor says on the terminal what a command waits for that has a tool server started or reached, when that takes its time. The function
// that it returns ends that.
func WaitsFor(ctx context.Context, tty *Terminal, c *app.Connection, id string) (stop func()) {
	done := make(chan struct{})
	var told sync.WaitGroup
	told.Go(func() { // it ends with stop
		notice := time.NewTimer(serverNotice)
		defer notice.Stop()
		select {
		case <-done:
			return
		case <-ctx.Done():
			return
		case <-notice.C:
		}
		s, err := c.MCPServer(ctx, id)
		if err != nil {
			return // the command itself says what is wrong
		}
		what := "to answer at " + s.URL
		if s.Command != "" {
			what = "to answer; it was started as: " + serverAddress(s)
		}
		fmt.Fprintf(tty.Err, "waiting for the tool server %s %s (up to %v)\n", id, table.OneLine(what),
			mcp.StartLimit(s.TimeoutSeconds, mcp.DefaultConnect))
	})
	return func() {
		close(done)
		told.Wait()
	}
}

// PrintTools lists the tools of a server, and says what there is to do about them.
func PrintTools(w *tabwriter.Writer, server string, list api.MCPTools) {
	table.Row(w, "TOOL", "EFFECT", "CLASS", "POLICY", "SUGGESTED", "DRIFT", "DESCRIPTION")
	for _, t := range list.Tools {
		text := []rune(table.OneLine(t.Description))
		if len(text) > 80 {
			text = append(text[:79], '…')
		}
		table.Row(w, t.ID, t.Effect, said(t.Class), toolPolicy(t), said(t.Suggestion.Policy), t.Drift, string(text))
	}
	switch {
	case !list.Activated:
		fmt.Fprintf(w, "You do not use this server yet; begin with: tandem mcp servers activate %s\n", server)
	case len(list.Changes) > 0:
		fmt.Fprintf(w, "%s as you have accepted; see: tandem mcp servers accept %s\n", table.Count(len(list.Changes), "tool is not", "tools are not"), server)
	}
}

// changeLines show how a tool differs from what was accepted: the parts of its definition that are different, in full, since that is what
// is accepted. A part that cannot be taken apart is shown as a whole.
func changeLines(c api.MCPChange) []string {
	lines := []string{table.OneLine(c.Kind + ": " + c.Summary)}
	before, wasRead := parts(c.Before)
	after, isRead := parts(c.After)
	if !wasRead || !isRead {
		before, after = map[string]string{"definition": plain(c.Before)}, map[string]string{"definition": plain(c.After)}
	}
	names := maps.Clone(before)
	maps.Copy(names, after)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, is := before[name], after[name]
		if was == is || name == "name" {
			continue
		}
		lines = append(lines, "  "+table.OneLine(name))
		if was != "" {
			lines = append(lines, "    - "+table.OneLine(was))
		}
		if is != "" {
			lines = append(lines, "    + "+table.OneLine(is))
		}
	}
	return lines
}

// parts are the parts of a definition by name, as people read them; none for a definition that does not exist.
func parts(definition json.RawMessage) (_ map[string]string, ok bool) {
	if empty(definition) {
		return map[string]string{}, true
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(definition, &fields) != nil {
		return nil, false
	}
	list := map[string]string{}
	for name, raw := range fields {
		list[name] = plain(raw)
	}
	return list, true
}

// PrintServers lists tool servers.
func PrintServers(w *tabwriter.Writer, list api.MCPServers, wide bool) {
	head := []string{"SERVER", "TRANSPORT", "ACTIVATED", "UPDATED"}
	if wide {
		head = append(head, "NAME", "WHERE", "ENABLED")
	}
	table.Row(w, head...)
	for _, s := range list.Servers {
		cells := []string{s.ID, s.Transport, yesNo(s.Activated), table.Time(s.UpdatedTime)}
		if wide {
			cells = append(cells, s.Name, serverAddress(s), yesNo(!s.Disabled))
		}
		table.Row(w, cells...)
	}
}

// AcceptChanges shows how tools differ from what was accepted, asks unless yes was said already, and accepts exactly what was shown.
func AcceptChanges(ctx context.Context, tty *Terminal, c *app.Connection, server string, tools []string, yes, mine bool) error {
	stop := WaitsFor(ctx, tty, c, server)
	changes, err := c.MCPChanges(ctx, server, tools)
	stop()
	if err != nil {
		return err
	}
	if len(changes) == 0 {
		return Say(tty.Out, "%s: nothing has changed\n", server)
	}
	for _, change := range changes {
		if err := Say(tty.Out, "%s\n", strings.Join(changeLines(change), "\n")); err != nil {
			return err
		}
	}
	if !yes {
		if err := Say(tty.Out, "Accept this? [y/N] "); err != nil {
			return err
		}
		line, err := bufio.NewReader(tty.In).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read the answer: %w", err)
		}
		if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
			return Say(tty.Out, "%s: nothing was accepted; answer y, or say so with --yes\n", server)
		}
	}
	scope := ""
	if mine {
		scope = "user"
	}
	if _, err := c.AcceptMCPChanges(ctx, server, scope, changes); err != nil {
		return err
	}
	return Say(tty.Out, "%s: %s accepted\n", server, table.Count(len(changes), "change", "changes"))
}
