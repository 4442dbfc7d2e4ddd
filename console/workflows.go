package console

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"

	"tandem/api"
	"tandem/app"
	"tandem/client"
	"tandem/console/table"
)

// PrintWorkflows lists workflows.
func PrintWorkflows(w *tabwriter.Writer, list api.Workflows, wide bool) {
	head := []string{"WORKFLOW", "NAME", "REVISION", "DEPLOYMENT", "LAST RUN", "UPDATED"}
	if wide {
		head = append(head, "RUNS", "AVERAGE", "TAGS", "DESCRIPTION")
	}
	table.Row(w, head...)
	for _, m := range list.Workflows {
		cells := []string{m.ID, m.Name, strconv.FormatInt(m.Revision, 10), m.DeploymentStatus,
			m.LastExecutionStatus, table.Time(m.UpdatedTime)}
		if wide {
			cells = append(cells, strconv.FormatInt(m.Statistics.TotalRuns, 10), table.Milliseconds(m.Statistics.AverageDurationMS),
				strings.Join(m.Tags, ","), m.Description)
		}
		table.Row(w, cells...)
	}
	table.More(w, len(list.Workflows), list.TotalCount)
}

// PrintWorkflow shows a workflow.
func PrintWorkflow(w *tabwriter.Writer, wf api.Workflow) {
	m := wf.Metadata
	table.Row(w, "workflow", m.ID)
	table.Row(w, "name", m.Name)
	table.Row(w, "description", m.Description)
	table.Row(w, "revision", strconv.FormatInt(m.Revision, 10))
	deployment := m.DeploymentStatus
	if m.DeploymentError != "" {
		deployment += ": " + m.DeploymentError
	}
	table.Row(w, "deployment", deployment)
	table.Row(w, "nodes", strconv.Itoa(len(wf.Nodes)))
	table.Row(w, "connections", strconv.Itoa(len(wf.Connections)))
	table.Row(w, "tags", strings.Join(m.Tags, ", "))
	table.Row(w, "updated", table.Time(m.UpdatedTime)+" by "+m.UpdatedBy)
	table.Row(w, "runs", fmt.Sprintf("%d, average %s", m.Statistics.TotalRuns, table.Milliseconds(m.Statistics.AverageDurationMS)))
	if m.LastExecutionStatus != "" {
		table.Row(w, "last run", m.LastExecutionStatus+" at "+table.Time(m.LastExecutionTime))
	}
}

// ApplyFiles keeps the workflows in files, as new ones or as new revisions. A file with errors is not kept; the others are.
func ApplyFiles(ctx context.Context, tty *Terminal, c *app.Connection, show *table.Listing, files []string) error {
	list, wrong := []api.Saved{}, false
	for _, file := range files {
		report, saved, err := c.ApplyFile(ctx, file, tty.In)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		PrintProblems(tty, report)
		if !report.Valid {
			wrong = true
			continue
		}
		list = append(list, saved)
		if show.JSON {
			continue
		}
		what := "unchanged"
		if saved.Created {
			what = "kept"
		}
		line := fmt.Sprintf("%s: %s, revision %d", saved.Workflow.ID, what, saved.Workflow.Revision)
		if n := saved.WaitingOnOlder; n > 0 {
			line += fmt.Sprintf("; %s on older revisions", table.Count(n, "execution stays", "executions stay"))
		}
		if _, err := fmt.Fprintln(tty.Out, line); err != nil {
			return fmt.Errorf("write the answer: %w", err)
		}
	}
	if show.JSON {
		if err := table.JSON(tty.Out, list); err != nil {
			return err
		}
	}
	if wrong {
		return ErrReported
	}
	return nil
}

// Start is how an execution of a workflow that is kept is started.
type Start struct {
	Workflow string
	Request  api.ExecuteRequest
	// Key lets a start that is repeated start one execution only; empty: each starts one.
	Key string
	// Watch follows the execution to its end; one in this process is always followed.
	Watch bool
	// Dir is the data directory, for the line that says how to go on.
	Dir string
	// Again is that of [app.Run].
	Again string
}

// StartWorkflow starts an execution and prints its id, or follows it to its end.
func StartWorkflow(ctx context.Context, tty *Terminal, c *app.Connection, show *table.Listing, s Start) error {
	inputs, err := startInputs(ctx, tty, c, s)
	if err != nil {
		return err
	}
	s.Request.Inputs = inputs
	started, err := c.Execute(ctx, s.Workflow, s.Request, s.Key)
	if err != nil {
		return err
	}
	if !s.Watch && !c.Local() {
		return show.Show(tty.Out, started, func(w *tabwriter.Writer) { fmt.Fprintln(w, started.ExecutionID) })
	}
	if s.Key != "" { // it may have been started before, and rest
		if err := c.TakeUp(ctx, started.ExecutionID); err != nil {
			return err
		}
	}
	err = follow(ctx, tty, c, started.ExecutionID, "", client.VocabularyExecution, show.JSON)
	if errors.Is(err, ErrParked) && c.Local() {
		c.Drain()
		fmt.Fprintf(tty.Err, "parked; go on with: tandem run --resume %s --data %s%s\n", started.ExecutionID, s.Dir, s.Again)
	}
	return err
}
