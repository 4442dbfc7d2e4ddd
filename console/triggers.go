package console

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"text/tabwriter"

	"tandem/api"
	"tandem/client"
	"tandem/console/table"
	"tandem/workflow"
)

// PrintTriggers lists triggers with their addresses and next times.
func PrintTriggers(w *tabwriter.Writer, list api.Triggers) {
	table.Row(w, "WORKFLOW", "NODE", "KIND", "REVISION", "STATE", "NEXT", "ADDRESS")
	for _, t := range list.Triggers {
		state, next, address := t.State, "", t.Address
		if t.Reason != "" {
			state += ": " + t.Reason
		}
		if l := t.Listening; l != nil {
			state = l.State
			if l.Error != "" {
				state += ": " + l.Error
			}
			if l.RetryAt > 0 {
				state += "; tried again " + table.Time(l.RetryAt)
			}
		}
		if len(t.NextRuns) > 0 {
			next = table.Time(t.NextRuns[0])
		}
		if address != "" {
			address = strings.Join(t.Methods, ",") + " " + address
		}
		table.Row(w, t.WorkflowID, t.NodeID, strings.TrimPrefix(t.Kind, workflow.TypeTrigger+"."),
			strconv.FormatInt(t.Revision, 10), state, next, address)
	}
	table.More(w, len(list.Triggers), list.TotalCount)
}

// schedulePage is how many triggers are asked for at once when schedules are looked for.
const schedulePage = 500

// Schedules are the triggers that start something at a time that is known, among all that a query finds.
func Schedules(ctx context.Context, c *client.Client, q client.TriggerQuery) (api.Triggers, error) {
	found := api.Triggers{Triggers: []api.Trigger{}}
	for q.Page, q.PageSize = 1, schedulePage; ; q.Page++ {
		list, err := c.Triggers(ctx, q)
		if err != nil {
			return found, err
		}
		for _, t := range list.Triggers {
			if len(t.NextRuns) > 0 {
				found.Triggers = append(found.Triggers, t)
			}
		}
		if found.TotalCount = len(found.Triggers); q.Page*schedulePage >= list.TotalCount {
			return found, nil
		}
	}
}

// PrintNextRuns lists the next times of schedules.
func PrintNextRuns(w *tabwriter.Writer, list api.Triggers) {
	table.Row(w, "WORKFLOW", "NODE", "NEXT", "TIMEZONE", "HERE")
	for _, t := range list.Triggers {
		zone := cmp.Or(t.Timezone, "UTC")
		for _, at := range t.NextRuns {
			table.Row(w, t.WorkflowID, t.NodeID, table.TimeIn(at, zone), zone, table.Time(at))
		}
	}
}

// PrintDeliveries lists what has come to triggers.
func PrintDeliveries(w *tabwriter.Writer, list api.Deliveries) {
	table.Row(w, "DELIVERY", "RECEIVED", "WORKFLOW", "NODE", "DECISION", "EXECUTION", "KEY", "REASON")
	for _, d := range list.Deliveries {
		table.Row(w, d.ID, table.Time(d.ReceivedAt), d.WorkflowID, d.NodeID, d.Decision, d.ExecutionID, d.Key, d.Reason)
	}
	table.More(w, len(list.Deliveries), list.TotalCount)
}
