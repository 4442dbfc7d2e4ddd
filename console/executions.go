package console

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
	"sync"
	"text/tabwriter"
	"time"

	"tandem/api"
	"tandem/app"
	"tandem/client"
	"tandem/console/table"
	"tandem/console/tree"
	"tandem/engine"
	"tandem/human/lineage"
	"tandem/payload"
	"tandem/store"
)

// PrintExecutions lists executions.
func PrintExecutions(w *tabwriter.Writer, list api.Executions, wide bool) {
	head := []string{"EXECUTION", "WORKFLOW", "STATUS", "STARTED", "DURATION"}
	if wide {
		head = append(head, "REVISION", "TRIGGER", "PARENT", "ERROR")
	}
	table.Row(w, head...)
	for _, e := range list.Executions {
		cells := []string{e.ExecutionID, e.WorkflowID, e.Status, table.Time(e.StartTime), table.Took(e.EndTime, e.DurationMS)}
		if wide {
			cells = append(cells, strconv.FormatInt(e.Revision, 10), e.TriggerType, e.ParentExecutionID, e.ErrorSummary)
		}
		table.Row(w, cells...)
	}
	table.More(w, len(list.Executions), list.TotalCount)
}

// printExecution shows an execution and its nodes.
func printExecution(w *tabwriter.Writer, e *api.Execution) {
	table.Row(w, "execution", e.ExecutionID)
	table.Row(w, "workflow", fmt.Sprintf("%s, revision %d", e.WorkflowID, e.Revision))
	table.Row(w, "status", e.Status)
	table.Row(w, "started", table.Time(e.StartTime))
	if e.EndTime != 0 {
		table.Row(w, "ended", table.Time(e.EndTime))
	}
	duration := table.Milliseconds(e.DurationMS)
	if e.EndTime-e.StartTime > e.DurationMS+1000 {
		duration += ", without waiting for people"
	}
	table.Row(w, "duration", duration)
	if by := e.TriggerInfo.UserID; by != "" {
		table.Row(w, "started by", byToken(by, e.TriggerInfo.TokenMadeBy))
	}
	for _, pair := range [][2]string{{"parent", e.ParentExecutionID}, {"forked from", e.ForkedFrom}} {
		if pair[1] != "" {
			table.Row(w, pair[0], pair[1])
		}
	}
	for n, line := range lineage.ForkLines(UserLanguage(), e.Fork) {
		name := ""
		if n == 0 {
			name = "fork"
		}
		table.Row(w, name, table.OneLine(line))
	}
	if e.Error != nil {
		table.Row(w, "error", fmt.Sprintf("%s [%s]", e.Error.ErrorMessage, e.Error.ErrorCode))
	}
	for _, q := range e.Questions {
		table.Row(w, "question", fmt.Sprintf("%s asks: %s (%s); answer with: tandem inbox answer %s", q.NodeID, q.Title, q.Purpose, q.InteractionID))
	}
	for _, a := range e.Acts {
		table.Row(w, a.Action, actLine(&a))
	}
	fmt.Fprintln(w)
	table.Row(w, "NODE", "STATUS", "RUNS", "DURATION", "RETRIES", "ERROR")
	for _, n := range inOrder(e) {
		problem := ""
		if n.Error != nil {
			problem = fmt.Sprintf("%s [%s]", n.Error.ErrorMessage, n.Error.ErrorCode)
		}
		runs := max(n.ActivationCount, 1)
		if n.Status == string(engine.NodePending) {
			runs = 0
		}
		table.Row(w, n.NodeID, n.Status, strconv.FormatInt(runs, 10), table.Took(n.EndTime, n.DurationMS),
			strconv.Itoa(n.RetryCount), problem)
	}
	if len(e.Outputs) > 0 {
		fmt.Fprintln(w)
	}
	for _, id := range slices.Sorted(maps.Keys(e.Outputs)) {
		fmt.Fprintf(w, "%s: %s\n", id, outputLine(e.ExecutionID, e.Outputs[id]))
	}
}

// outputLine shows an output, or, of one that is too large to stand in the answer, how it is read.
func outputLine(execution string, output json.RawMessage) string {
	var name struct {
		Hash string `json:"$blob"`
		Size int64  `json:"size"`
	}
	if err := json.Unmarshal(output, &name); err != nil || name.Hash == "" || name.Size == 0 {
		return table.OneLine(payload.JSON(output))
	}
	return fmt.Sprintf("%d bytes; read them with: tandem executions value %s %s", name.Size, table.OneLine(execution), table.OneLine(name.Hash))
}

// Value writes a large value of an execution as it is kept.
func Value(ctx context.Context, out io.Writer, c *app.Connection, execution, hash string) error {
	content, err := c.Value(ctx, execution, hash)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, content)
	return errors.Join(err, content.Close())
}

// byToken adds to a text that names a user who made the token that the user acted with, if it was somebody else.
func byToken(text, madeBy string) string {
	if madeBy == "" {
		return text
	}
	return text + ", with a token that " + madeBy + " made"
}

// actLine tells who did something to an execution, when, and by which means.
func actLine(a *api.Act) string {
	line := table.Time(a.At) + " by " + a.By
	if a.NodeID != "" {
		line += ", " + a.NodeID
	}
	switch text := a.Means.Describe(a.By); {
	case text != "":
		line += ", with " + text
	case a.TokenMadeBy != "":
		line = byToken(line, a.TokenMadeBy)
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

// NoteResting says of a listing without a server that what it calls RUNNING is not worked on, and what takes it up.
func NoteResting(w io.Writer, local bool, list api.Executions) error {
	resting := func(e api.ExecutionSummary) bool { return e.Status == string(engine.StatusRunning) }
	if !local || !slices.ContainsFunc(list.Executions, resting) {
		return nil
	}
	_, err := fmt.Fprintln(w, "no process works on this data directory: what is RUNNING goes on with the next server, or with: tandem run --resume EXECUTION")
	return err
}

// Watch follows an execution to its end. In this process nobody works on executions of the data directory, so one that has
// not ended would be waited for in vain.
func Watch(ctx context.Context, tty *Terminal, c *app.Connection, id, after, vocabulary string, asJSON bool) error {
	e, err := c.Execution(ctx, id)
	if err != nil {
		return err
	}
	if c.Local() && !engine.Status(e.Status).Final() {
		return fmt.Errorf("execution %s is %s, and no process works on it; go on with: tandem run --resume %s", id, e.Status, id)
	}
	return follow(ctx, tty, c, id, after, vocabulary, asJSON)
}

// follow shows an execution until it ends; an interrupt ends that with [ErrParked].
func follow(ctx context.Context, tty *Terminal, c *app.Connection, id, after, vocabulary string, asJSON bool) error {
	f := tree.NewFollower(tty.Out, asJSON)
	context.AfterFunc(ctx, func() { _ = f.Stop() }) // its error is asked for below
	err := f.Begin(id)
	if err == nil {
		var mu sync.Mutex // between the frames and the notices
		done := noticeBelow(ctx, c, id, func(text string) error {
			mu.Lock()
			defer mu.Unlock()
			return f.Notice(text)
		})
		err = c.Watch(ctx, id, after, vocabulary, func(e api.Event) error {
			mu.Lock()
			defer mu.Unlock()
			return f.Frame(e)
		})
		if nerr := done(); err == nil {
			err = nerr
		}
	}
	if serr := f.Stop(); err == nil {
		err = serr
	}
	if err != nil {
		if ctx.Err() != nil {
			return ErrParked
		}
		return err
	}
	e, err := c.Execution(ctx, id)
	if err == nil {
		err = c.WholeOutputs(ctx, &e)
	}
	if err != nil {
		return err
	}
	if err := f.Result(e); err != nil {
		return err
	}
	if engine.Status(e.Status) != engine.StatusSuccess {
		return ErrReported
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
			if at := slices.IndexFunc(e.Questions, func(q api.UserInputRequest) bool {
				return q.ExecutionID != "" && q.ExecutionID != id
			}); at >= 0 {
				q := e.Questions[at]
				text = table.OneLine(fmt.Sprintf("%s (tandem inbox answer %.8s)", cmp.Or(q.Title, q.Purpose), q.InteractionID)) // the beginning of an id is enough
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

// printLogs shows the lines that nodes wrote.
func printLogs(w *tabwriter.Writer, all api.Logs) {
	for _, l := range all.Lines {
		text := fmt.Sprintf("%s %-5s %s: %s", table.Time(l.Timestamp), l.Level, l.ActivationID, table.OneLine(l.Message))
		if len(l.Context) > 0 && string(l.Context) != "null" && string(l.Context) != "{}" {
			text += " " + table.OneLine(payload.JSON(l.Context))
		}
		fmt.Fprintln(w, text)
	}
	if all.Dropped > 0 {
		fmt.Fprintf(w, "%s counted and not kept\n", table.Count(int(all.Dropped), "line was", "lines were"))
	}
}

// PrintContext shows the data that nodes of an execution can read.
func PrintContext(w *tabwriter.Writer, data api.Context) {
	table.Row(w, "NAME", "LAYER", "VALUE")
	for _, name := range slices.Sorted(maps.Keys(data.Merged)) {
		layer := "initial"
		if _, ok := data.RuntimeMetadata[name]; ok {
			layer = "runtime"
		}
		table.Row(w, name, layer, table.Cell(data.Merged[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(data.StepResults)) {
		table.Row(w, name, "result", table.Cell(data.StepResults[name].Output))
	}
}

// GetExecution shows an execution and its nodes or, with an activation, that activation with its input.
func GetExecution(ctx context.Context, tty *Terminal, c *app.Connection, show *table.Listing, id,
	activation string, withWorkflow bool) error {
	if activation != "" {
		a, err := c.Activation(ctx, id, activation)
		if err != nil {
			return err
		}
		return table.JSON(tty.Out, a)
	}
	var answer api.GetExecution
	var err error
	if withWorkflow {
		answer, err = c.ExecutionWithWorkflow(ctx, id)
	} else {
		answer.Execution, err = c.Execution(ctx, id)
	}
	if err != nil {
		return err
	}
	return show.Show(tty.Out, answer, func(w *tabwriter.Writer) { printExecution(w, &answer.Execution) })
}

// Logs shows the lines that nodes of an execution wrote: all of them, or as many as the query wants.
func Logs(ctx context.Context, tty *Terminal, c *app.Connection, show *table.Listing, id string, q client.LogQuery) error {
	all := api.Logs{Lines: []api.LogEntry{}}
	for {
		part, err := c.Logs(ctx, id, q)
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
	return show.Show(tty.Out, all, func(w *tabwriter.Writer) { printLogs(w, all) })
}
