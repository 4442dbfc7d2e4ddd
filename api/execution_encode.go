package api

import "tandem/payload"

// AppendJSON appends the listing as the general encoder would write it, in half of the time: lists of executions are what servers are asked
// for most.
func (l Executions) AppendJSON(out []byte) []byte {
	const usual = 400 // bytes of an execution
	if out == nil {
		out = make([]byte, 0, 64+usual*len(l.Executions))
	}
	w := payload.Writer{Out: out}
	w.Begin()
	w.Name(`"executions":`)
	if l.Executions == nil {
		w.Out = append(w.Out, "null"...)
	} else {
		w.Out = append(w.Out, '[')
		for i := range l.Executions {
			if i > 0 {
				w.Out = append(w.Out, ',')
			}
			l.Executions[i].write(&w)
		}
		w.Out = append(w.Out, ']')
	}
	w.Name(`"total_count":`)
	w.Int(int64(l.TotalCount))
	w.Name(`"page":`)
	w.Int(int64(l.Page))
	w.Name(`"page_size":`)
	w.Int(int64(l.PageSize))
	w.End()
	return w.Out
}

func (e *ExecutionSummary) write(w *payload.Writer) {
	w.Begin()
	w.Name(`"execution_id":`)
	w.Text(e.ExecutionID)
	w.Name(`"workflow_id":`)
	w.Text(e.WorkflowID)
	w.Name(`"workflow_name":`)
	w.Text(e.WorkflowName)
	w.Name(`"status":`)
	w.Text(e.Status)
	w.IntIfAny(`"start_time":`, e.StartTime)
	w.IntIfAny(`"end_time":`, e.EndTime)
	w.IntIfAny(`"duration_ms":`, e.DurationMS)
	w.Name(`"trigger_type":`)
	w.Text(e.TriggerType)
	w.Name(`"credits_consumed":`)
	w.Float(e.CreditsConsumed)
	w.TextIfAny(`"error_summary":`, e.ErrorSummary)
	w.Name(`"revision":`)
	w.Int(e.Revision)
	w.TextIfAny(`"parent_execution_id":`, e.ParentExecutionID)
	w.TextIfAny(`"user_id":`, e.UserID)
	w.TextIfAny(`"token_made_by":`, e.TokenMadeBy)
	w.TextIfAny(`"conversation_id":`, e.ConversationID)
	w.TextIfAny(`"task_name":`, e.TaskName)
	w.Name(`"created_at":`)
	w.Int(e.CreatedAt)
	w.End()
}
