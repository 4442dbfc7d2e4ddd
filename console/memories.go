package console

import (
	"strconv"
	"text/tabwriter"

	"tandem/api"
	"tandem/console/table"
	"tandem/payload"
)

// PrintMemories lists memories.
func PrintMemories(w *tabwriter.Writer, list api.Memories, wide bool) {
	head := []string{"MEMORY", "KIND", "USER", "WORKFLOW", "NODE", "RECORDS", "UPDATED"}
	if wide {
		head = append(head, "SESSION", "EXECUTION", "PART", "BYTES")
	}
	table.Row(w, head...)
	for _, m := range list.Memories {
		cells := []string{m.ID, m.Kind, m.UserID, m.WorkflowID, m.NodeID, strconv.FormatInt(m.Records, 10), table.Time(m.UpdatedTime)}
		if wide {
			cells = append(cells, m.SessionID, m.ExecutionID, m.Part, strconv.FormatInt(m.Bytes, 10))
		}
		table.Row(w, cells...)
	}
	table.More(w, len(list.Memories), list.TotalCount)
}

// PrintMemoryRecords lists what a memory keeps.
func PrintMemoryRecords(w *tabwriter.Writer, list api.MemoryRecords) {
	table.Row(w, "RECORD", "UPDATED", "BODY")
	for _, r := range list.Records {
		table.Row(w, r.Sort+"/"+r.ID, table.Time(r.UpdatedTime), payload.JSON(r.Body))
	}
	table.More(w, len(list.Records), list.TotalCount)
}
