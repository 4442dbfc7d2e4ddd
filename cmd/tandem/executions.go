package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"tandem/api"
	"tandem/app"
	"tandem/client"
	"tandem/engine"
	"tandem/human"
	"tandem/payload"
	"tandem/store"
)

func newExecutions() *cobra.Command {
	var at connectFlags
	cmd := &cobra.Command{
		Use:     "executions",
		Aliases: []string{"execution", "exec"},
		Short:   "Look at executions and act on them",
		Long: `Executions are runs of workflows. With --server (or TANDEM_SERVER) these commands ask a server;
without one they open the data directory themselves, which no server may have open then. What is
changed there is on disk, and goes on with "tandem run --resume" or with the next server.`,
		RunE: func(cmd *cobra.Command, args []string) error { return subcommand(cmd, args) },
	}
	at.add(cmd)
	cmd.AddCommand(
		newExecutionsList(&at), newExecutionsGet(&at), newExecutionsHistory(&at), newExecutionsWatch(&at), newExecutionsLogs(&at), newExecutionsContext(&at),
		newAction(&at, "pause", "Let nothing new begin"), newAction(&at, "resume", "Let a paused execution go on"), newAction(&at, "cancel", "End an execution"),
		newRetry(&at), newSkip(&at), newFork(&at), newInput(&at),
	)
	return cmd
}

// subcommand answers a command that only has subcommands.
func subcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	return fmt.Errorf("%s has no command %q; it has %s", cmd.Name(), args[0], strings.Join(names, ", "))
}

func newExecutionsList(at *connectFlags) *cobra.Command {
	var q client.ExecutionQuery
	var show listing
	cmd := &cobra.Command{
		Use: "list", Short: "List executions, the newest first",
		Example: "  tandem executions list --status RUNNING,WAITING_FOR_HUMAN\n  tandem executions list --workflow order --output wide",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := show.check(); err != nil {
				return err
			}
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				list, err := c.Executions(ctx, q)
				if err != nil {
					return err
				}
				return show.show(cmd.OutOrStdout(), list, func(w *tabwriter.Writer) { printExecutions(w, list, show.output == "wide") })
			})
		},
	}
	show.add(cmd, true)
	cmd.Flags().StringVar(&q.WorkflowID, "workflow", "", "only those of this workflow")
	cmd.Flags().StringSliceVar(&q.Statuses, "status", nil, "only those with one of these statuses, separated by commas")
	pageFlags(cmd, &q.Page, &q.PageSize)
	return cmd
}

func pageFlags(cmd *cobra.Command, page, size *int) {
	cmd.Flags().IntVar(page, "page", 0, "which part of the list, from 1")
	cmd.Flags().IntVar(size, "page-size", 0, "how many a part has")
}

func printExecutions(w *tabwriter.Writer, list api.Executions, wide bool) {
	head := []string{"EXECUTION", "WORKFLOW", "STATUS", "STARTED", "DURATION"}
	if wide {
		head = append(head, "REVISION", "TRIGGER", "PARENT", "ERROR")
	}
	row(w, head...)
	for _, e := range list.Executions {
		cells := []string{e.ExecutionID, e.WorkflowID, e.Status, stamp(e.StartTime), took(e.EndTime, e.DurationMS)}
		if wide {
			cells = append(cells, strconv.FormatInt(e.Revision, 10), e.TriggerType, e.ParentExecutionID, e.ErrorSummary)
		}
		row(w, cells...)
	}
	more(w, len(list.Executions), list.TotalCount)
}

// more says that a list goes on.
func more(w io.Writer, shown, total int) {
	if total > shown {
		fmt.Fprintf(w, "%d of %d; --page shows others\n", shown, total)
	}
}

func newExecutionsGet(at *connectFlags) *cobra.Command {
	var show listing
	var activation string
	var withWorkflow bool
	cmd := &cobra.Command{
		Use: "get EXECUTION", Short: "Show an execution and its nodes",
		Example: "  tandem executions get exec_abc\n  tandem executions get exec_abc --activation 'each[2]/fetch'",
		Args:    one("execution"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				out := cmd.OutOrStdout()
				if activation != "" {
					a, err := c.Activation(ctx, args[0], activation)
					if err != nil {
						return err
					}
					return printValue(out, a)
				}
				var answer api.GetExecution
				var err error
				if withWorkflow {
					answer, err = c.ExecutionWithWorkflow(ctx, args[0])
				} else {
					answer.Execution, err = c.Execution(ctx, args[0])
				}
				if err != nil {
					return err
				}
				return show.show(out, answer, func(w *tabwriter.Writer) { printExecution(w, &answer.Execution) })
			})
		},
	}
	show.add(cmd, false)
	cmd.Flags().StringVar(&activation, "activation", "", "show this activation with its input, as JSON")
	cmd.Flags().BoolVar(&withWorkflow, "include-workflow", false, "with --json: add the definition that it is pinned to")
	return cmd
}

func printExecution(w *tabwriter.Writer, e *api.Execution) {
	row(w, "execution", e.ExecutionID)
	row(w, "workflow", fmt.Sprintf("%s, revision %d", e.WorkflowID, e.Revision))
	row(w, "status", e.Status)
	row(w, "started", stamp(e.StartTime))
	if e.EndTime != 0 {
		row(w, "ended", stamp(e.EndTime))
	}
	duration := lasted(e.DurationMS)
	if e.EndTime-e.StartTime > e.DurationMS+1000 {
		duration += ", without waiting for people"
	}
	row(w, "duration", duration)
	if by := e.TriggerInfo.UserID; by != "" {
		if made := e.TriggerInfo.TokenMadeBy; made != "" {
			by += ", with a token that " + made + " made"
		}
		row(w, "started by", by)
	}
	for _, pair := range [][2]string{{"parent", e.ParentExecutionID}, {"forked from", e.ForkedFrom}} {
		if pair[1] != "" {
			row(w, pair[0], pair[1])
		}
	}
	for n, line := range human.ForkLines(userLanguage(), e.Fork) {
		name := ""
		if n == 0 {
			name = "fork"
		}
		row(w, name, oneLine(line))
	}
	if e.Error != nil {
		row(w, "error", fmt.Sprintf("%s [%s]", e.Error.ErrorMessage, e.Error.ErrorCode))
	}
	for _, q := range e.Questions {
		row(w, "question", fmt.Sprintf("%s asks: %s (%s); answer with: tandem inbox answer %s", q.NodeID, q.Title, q.Purpose, q.InteractionID))
	}
	for _, a := range e.Acts {
		row(w, a.Action, actLine(&a))
	}
	fmt.Fprintln(w)
	row(w, "NODE", "STATUS", "RUNS", "DURATION", "RETRIES", "ERROR")
	for _, n := range inOrder(e) {
		problem := ""
		if n.Error != nil {
			problem = fmt.Sprintf("%s [%s]", n.Error.ErrorMessage, n.Error.ErrorCode)
		}
		runs := max(n.ActivationCount, 1)
		if n.Status == string(engine.NodePending) {
			runs = 0
		}
		row(w, n.NodeID, n.Status, strconv.FormatInt(runs, 10), took(n.EndTime, n.DurationMS), strconv.Itoa(n.RetryCount), problem)
	}
	if len(e.Outputs) > 0 {
		fmt.Fprintln(w)
	}
	for _, id := range slices.Sorted(maps.Keys(e.Outputs)) {
		fmt.Fprintf(w, "%s: %s\n", id, oneLine(payload.JSON(e.Outputs[id])))
	}
}

// actLine tells who did something to an execution, when, and by which means.
func actLine(a *api.Act) string {
	line := stamp(a.At) + " by " + a.By
	if a.NodeID != "" {
		line += ", " + a.NodeID
	}
	switch text := a.Means.Describe(a.By); {
	case text != "":
		line += ", with " + text
	case a.TokenMadeBy != "":
		line += ", with a token that " + a.TokenMadeBy + " made"
	}
	switch a.Ground {
	case store.GroundOverride:
		line += ", an override"
	case store.GroundNobodyLeft:
		line += ", as nobody who was asked is left"
	case store.GroundReading:
		line += ", as " + a.ReadBy + " reads the reply"
	}
	if a.Reason != "" {
		line += ": " + a.Reason
	}
	return line
}

// inOrder lists the nodes in the order they began, then those that have not, by id.
func inOrder(e *api.Execution) []api.NodeExecution {
	var list []api.NodeExecution
	seen := map[string]bool{}
	for _, id := range slices.Concat(e.ExecutionSequence, slices.Sorted(maps.Keys(e.NodeExecutions))) {
		if n, ok := e.NodeExecutions[id]; ok && !seen[id] {
			seen[id] = true
			list = append(list, n)
		}
	}
	return list
}

func newExecutionsWatch(at *connectFlags) *cobra.Command {
	var after, vocabulary string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "watch EXECUTION", Short: "Follow an execution until it ends",
		Long: `Watch draws an execution from its beginning until it ends, as "run" does. A connection that breaks
is made again, and nothing is shown twice or left out.

Exit status: 0 when the execution succeeded, 1 when it did not, 130 when the watching was interrupted;
the execution does not mind.`,
		Args: one("execution"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if vocabulary != client.VocabularyExecution && vocabulary != client.VocabularyFlow {
				return fmt.Errorf("--vocabulary %q is not known; use %s or %s", vocabulary, client.VocabularyExecution, client.VocabularyFlow)
			}
			if vocabulary == client.VocabularyFlow && !asJSON {
				return errors.New("--vocabulary flow can only be shown with --json")
			}
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				return watch(ctx, cmd, c, args[0], after, vocabulary, asJSON)
			})
		},
	}
	cmd.Flags().StringVar(&after, "after", "", "begin after this event, such as 17 or 17.2")
	cmd.Flags().StringVar(&vocabulary, "vocabulary", client.VocabularyExecution, "with --json: the words events are told in, execution or flow")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the events, one JSON object per line, then the result")
	return cmd
}

// watch follows an execution to its end. In this process nobody works on executions of the data directory, so one that has
// not ended would be waited for in vain.
func watch(ctx context.Context, cmd *cobra.Command, c *app.Connection, id, after, vocabulary string, asJSON bool) error {
	e, err := c.Execution(ctx, id)
	if err != nil {
		return err
	}
	if c.Local() && !engine.Status(e.Status).Final() {
		return fmt.Errorf("execution %s is %s, and no process works on it; go on with: tandem run --resume %s", id, e.Status, id)
	}
	return follow(ctx, cmd, c, id, after, vocabulary, asJSON)
}

func follow(ctx context.Context, cmd *cobra.Command, c *app.Connection, id, after, vocabulary string, asJSON bool) error {
	f := newFollower(cmd.OutOrStdout(), asJSON)
	context.AfterFunc(ctx, func() { _ = f.stop() }) // its error is asked for below
	err := f.begin(id)
	if err == nil {
		var mu sync.Mutex // between the frames and the notices
		done := noticeBelow(ctx, c, id, func(text string) error {
			mu.Lock()
			defer mu.Unlock()
			return f.notice(text)
		})
		err = c.Watch(ctx, id, after, vocabulary, func(e api.Event) error {
			mu.Lock()
			defer mu.Unlock()
			return f.frame(e)
		})
		if nerr := done(); err == nil {
			err = nerr
		}
	}
	if serr := f.stop(); err == nil {
		err = serr
	}
	if err != nil {
		if ctx.Err() != nil {
			return errParked
		}
		return err
	}
	e, err := c.Execution(ctx, id)
	if err != nil {
		return err
	}
	if err := f.result(e); err != nil {
		return err
	}
	if engine.Status(e.Status) != engine.StatusSuccess {
		return errReported
	}
	return nil
}

// belowPause is how often it is looked whether what an execution has started asks somebody.
const belowPause = 2 * time.Second

// noticeBelow tells what the executions ask that this one has started, of which its own stream says nothing: an agent's task, for example.
// What it returns ends that, waits for it, and returns what went wrong with the telling.
func noticeBelow(ctx context.Context, c *app.Connection, id string, notice func(text string) error) (done func() error) {
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		told := ""
		for {
			select {
			case <-time.After(belowPause):
			case <-ctx.Done():
				ended <- nil
				return
			}
			e, err := c.Execution(ctx, id)
			if err != nil {
				continue // the stream says what is wrong, or the next look succeeds
			}
			text := ""
			if at := slices.IndexFunc(e.Questions, func(q api.UserInputRequest) bool { return q.ExecutionID != "" && q.ExecutionID != id }); at >= 0 {
				q := e.Questions[at]
				text = oneLine(fmt.Sprintf("%s (tandem inbox answer %.8s)", cmp.Or(q.Title, q.Purpose), q.InteractionID)) // the beginning of an id is enough
			}
			if text == told {
				continue
			}
			if err := notice(text); err != nil {
				ended <- err
				return
			}
			told = text
		}
	}()
	return func() error {
		stop()
		return <-ended
	}
}

func newExecutionsLogs(at *connectFlags) *cobra.Command {
	var q client.LogQuery
	var show listing
	cmd := &cobra.Command{
		Use: "logs EXECUTION", Short: "Show the lines that nodes wrote",
		Args: one("execution"),
		RunE: func(cmd *cobra.Command, args []string) error {
			q.Level = strings.ToUpper(q.Level)
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				all := api.Logs{Lines: []api.LogEntry{}}
				for {
					part, err := c.Logs(ctx, args[0], q)
					if err != nil {
						return err
					}
					all.Lines = append(all.Lines, part.Lines...)
					all.Next, all.Dropped = part.Next, part.Dropped
					if part.Next == 0 || len(part.Lines) == 0 || q.Limit > 0 && len(all.Lines) >= q.Limit {
						break
					}
					q.After = part.Next
				}
				return show.show(cmd.OutOrStdout(), all, func(w *tabwriter.Writer) {
					for _, l := range all.Lines {
						text := fmt.Sprintf("%s %-5s %s: %s", stamp(l.Timestamp), l.Level, l.ActivationID, oneLine(l.Message))
						if len(l.Context) > 0 && string(l.Context) != "null" && string(l.Context) != "{}" {
							text += " " + oneLine(payload.JSON(l.Context))
						}
						fmt.Fprintln(w, text)
					}
					if all.Dropped > 0 {
						fmt.Fprintf(w, "%s counted and not kept\n", count(int(all.Dropped), "line was", "lines were"))
					}
				})
			})
		},
	}
	show.add(cmd, false)
	cmd.Flags().StringVar(&q.Level, "level", "", "only this level and above: DEBUG, INFO, WARN or ERROR")
	cmd.Flags().StringVar(&q.NodeID, "node", "", "only lines of this node")
	cmd.Flags().StringVar(&q.ActivationID, "activation", "", "only lines of this activation")
	cmd.Flags().Int64Var(&q.After, "after", 0, "begin after this line")
	cmd.Flags().IntVar(&q.Limit, "limit", 0, "show at most so many lines")
	return cmd
}

func newExecutionsContext(at *connectFlags) *cobra.Command {
	var show listing
	var scope string
	cmd := &cobra.Command{
		Use: "context EXECUTION", Short: "Show the data that nodes of an execution can read",
		Args: one("execution"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				data, err := c.Context(ctx, args[0], scope)
				if err != nil {
					return err
				}
				return show.show(cmd.OutOrStdout(), data, func(w *tabwriter.Writer) {
					row(w, "NAME", "LAYER", "VALUE")
					for _, name := range slices.Sorted(maps.Keys(data.Merged)) {
						layer := "initial"
						if _, ok := data.RuntimeMetadata[name]; ok {
							layer = "runtime"
						}
						row(w, name, layer, cell(data.Merged[name]))
					}
					for _, name := range slices.Sorted(maps.Keys(data.StepResults)) {
						row(w, name, "result", cell(data.StepResults[name].Output))
					}
				})
			})
		},
	}
	show.add(cmd, false)
	cmd.Flags().StringVar(&scope, "scope", "", "as nodes of this scope see it, such as 'each[2]'")
	return cmd
}

// cell is a value in a table.
func cell(raw json.RawMessage) string {
	const most = 100
	text := []rune(oneLine(payload.JSON(raw)))
	if len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(text)
}
