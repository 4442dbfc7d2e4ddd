package story

import (
	"maps"
	"slices"
	"strconv"

	"tandem/api"
	"tandem/payload"
)

// encodeExecution writes an execution as JSON without looking at types, which is most of what encoding costs. What few executions have is
// left to the general encoder; the bytes are the same as those of the general encoder without escapes for HTML.
func encodeExecution(e *api.GetExecution) []byte {
	w := jsonWriter{payload.Writer{Out: make([]byte, 0, 1536+512*len(e.Execution.NodeExecutions))}}
	w.Begin()
	w.Name(`"execution":`)
	w.execution(&e.Execution)
	if len(e.WorkflowDefinition) > 0 {
		w.Name(`"workflow_definition":`)
		w.Raw(e.WorkflowDefinition)
	}
	if e.Checkpoint != nil {
		w.Name(`"checkpoint":`)
		w.checkpoint(e.Checkpoint)
	}
	w.End()
	return append(w.Out, '\n')
}

// jsonWriter writes the parts of an execution.
type jsonWriter struct{ payload.Writer }

func (w *jsonWriter) execution(e *api.Execution) {
	w.Begin()
	w.Name(`"execution_id":`)
	w.Text(e.ExecutionID)
	w.Name(`"workflow_id":`)
	w.Text(e.WorkflowID)
	w.Name(`"workflow_name":`)
	w.Text(e.WorkflowName)
	w.Name(`"workflow_version":`)
	w.Text(e.WorkflowVersion)
	w.Name(`"revision":`)
	w.Int(e.Revision)
	w.Name(`"status":`)
	w.Text(e.Status)
	w.IntIfAny(`"start_time":`, e.StartTime)
	w.IntIfAny(`"end_time":`, e.EndTime)
	w.IntIfAny(`"duration_ms":`, e.DurationMS)
	w.Name(`"trigger_info":`)
	w.trigger(&e.TriggerInfo)
	w.Name(`"node_executions":`)
	writeMap(w, e.NodeExecutions, func(n api.NodeExecution) { w.node(&n) })
	w.Name(`"execution_sequence":`)
	w.Texts(e.ExecutionSequence)
	w.IntIfAny(`"execution_sequence_omitted":`, e.SequenceOmitted)
	w.TextIfAny(`"current_node_id":`, e.CurrentNodeID)
	w.Name(`"current_node_ids":`)
	w.Texts(e.CurrentNodeIDs)
	w.Name(`"next_nodes":`)
	w.Texts(e.NextNodes)
	if len(e.Outputs) > 0 {
		w.Name(`"outputs":`)
		writeMap(w, e.Outputs, w.Raw)
	}
	if e.Error != nil {
		w.Name(`"error":`)
		w.Other(e.Error)
	}
	w.Name(`"errors":`)
	writeList(w, e.Errors)
	w.Name(`"credits_consumed":`)
	w.Float(e.CreditsConsumed)
	if e.TokensUsed != nil {
		w.Name(`"tokens_used":`)
		w.Other(e.TokensUsed)
	}
	w.RawIfAny(`"metadata":`, e.Metadata)
	w.Name(`"metrics":`)
	w.metrics(&e.Metrics)
	w.Name(`"created_at":`)
	w.Int(e.CreatedAt)
	w.Name(`"updated_at":`)
	w.Int(e.UpdatedAt)
	w.TextIfAny(`"parent_execution_id":`, e.ParentExecutionID)
	w.TextIfAny(`"forked_from":`, e.ForkedFrom)
	if e.Fork != nil {
		w.Name(`"fork":`)
		w.Other(e.Fork)
	}
	w.Name(`"priority":`)
	w.Int(int64(e.Priority))
	w.Name(`"seq":`)
	w.Out = strconv.AppendUint(w.Out, e.Seq, 10)
	w.TextIfAny(`"full_answer":`, e.FullAnswer)
	w.RawIfAny(`"conversation":`, e.Conversation)
	w.Name(`"questions":`)
	writeList(w, e.Questions)
	if e.Task != nil {
		w.Name(`"task":`)
		w.Other(e.Task)
	}
	if e.Test != nil {
		w.Name(`"test":`)
		w.Other(e.Test)
	}
	if len(e.Acts) > 0 {
		w.Name(`"acts":`)
		w.Other(e.Acts)
	}
	w.End()
}

func (w *jsonWriter) trigger(t *api.TriggerInfo) {
	w.Begin()
	w.Name(`"trigger_type":`)
	w.Text(t.TriggerType)
	w.RawIfAny(`"trigger_data":`, t.TriggerData)
	w.TextIfAny(`"user_id":`, t.UserID)
	w.TextIfAny(`"token_made_by":`, t.TokenMadeBy)
	w.TextIfAny(`"external_request_id":`, t.ExternalRequestID)
	w.Name(`"timestamp":`)
	w.Int(t.Timestamp)
	w.End()
}

func (w *jsonWriter) metrics(m *api.ExecutionMetrics) {
	w.Begin()
	w.Name(`"duration_ms":`)
	w.Int(m.DurationMS)
	w.Name(`"waited_ms":`)
	w.Int(m.WaitedMS)
	w.Name(`"nodes":`)
	writeMap(w, m.Nodes, func(n int) { w.Int(int64(n)) })
	w.Name(`"activations":`)
	w.Int(m.Activations)
	w.Name(`"retries":`)
	w.Int(m.Retries)
	w.Name(`"total_tokens":`)
	w.Int(m.TotalTokens)
	w.Name(`"cost":`)
	w.Float(m.Cost)
	w.End()
}

func (w *jsonWriter) node(n *api.NodeExecution) {
	w.Begin()
	w.Name(`"node_id":`)
	w.Text(n.NodeID)
	w.Name(`"node_name":`)
	w.Text(n.NodeName)
	w.Name(`"node_type":`)
	w.Text(n.NodeType)
	w.Name(`"node_subtype":`)
	w.Text(n.NodeSubtype)
	w.Name(`"status":`)
	w.Text(n.Status)
	w.IntIfAny(`"start_time":`, n.StartTime)
	w.IntIfAny(`"end_time":`, n.EndTime)
	w.IntIfAny(`"duration_ms":`, n.DurationMS)
	w.RawIfAny(`"input_data":`, n.InputData)
	w.RawIfAny(`"sent":`, n.Sent)
	if len(n.OutputData) > 0 {
		w.Name(`"output_data":`)
		writeMap(w, n.OutputData, w.Raw)
	}
	w.RawIfAny(`"execution_details":`, n.ExecutionDetails)
	w.TextIfAny(`"wait_url":`, n.WaitURL)
	if n.Error != nil {
		w.Name(`"error":`)
		w.Other(n.Error)
	}
	if len(n.Warnings) > 0 {
		w.Name(`"warnings":`)
		w.Other(n.Warnings)
	}
	w.Name(`"retry_count":`)
	w.Int(int64(n.RetryCount))
	w.Name(`"max_retries":`)
	w.Int(int64(n.MaxRetries))
	w.Name(`"credits_consumed":`)
	w.Float(n.CreditsConsumed)
	w.Name(`"activation_id":`)
	w.Text(n.ActivationID)
	if n.Iteration != nil {
		w.Name(`"iteration":`)
		w.Int(*n.Iteration)
	}
	w.IntIfAny(`"generation":`, int64(n.Generation))
	w.Name(`"attempt":`)
	w.Int(int64(n.Attempt))
	w.TextIfAny(`"effect":`, n.Effect)
	if n.Pinned {
		w.Name(`"pinned":`)
		w.Other(true)
	}
	w.IntIfAny(`"activation_count":`, n.ActivationCount)
	if len(n.Activations) > 0 {
		w.Name(`"activations":`)
		w.Other(n.Activations)
	}
	w.TextIfAny(`"inner_step":`, n.InnerStep)
	if len(n.Steps) > 0 {
		w.Name(`"steps":`)
		w.Other(n.Steps)
	}
	w.IntIfAny(`"next_at":`, n.NextAt)
	w.RawIfAny(`"lineage":`, n.Lineage)
	if len(n.AttachedExecutions) > 0 {
		w.Name(`"attached_executions":`)
		w.Other(n.AttachedExecutions)
	}
	if n.TokensUsed != nil {
		w.Name(`"tokens_used":`)
		w.Other(n.TokensUsed)
	}
	w.End()
}

func (w *jsonWriter) checkpoint(c *api.Checkpoint) {
	w.Begin()
	w.Name(`"id":`)
	w.Out = strconv.AppendUint(w.Out, c.ID, 10)
	w.Name(`"task_id":`)
	w.Text(c.TaskID)
	w.Name(`"app_id":`)
	w.Text(c.AppID)
	w.Name(`"executor_id":`)
	w.Text(c.ExecutorID)
	w.Name(`"executor_name":`)
	w.Text(c.ExecutorName)
	w.Name(`"executor_description":`)
	w.Text(c.ExecutorDescription)
	w.Name(`"executor_status":`)
	w.Text(c.ExecutorStatus)
	w.TextIfAny(`"step_id":`, c.StepID)
	w.TextIfAny(`"step_name":`, c.StepName)
	w.TextIfAny(`"step_type":`, c.StepType)
	w.TextIfAny(`"step_status":`, c.StepStatus)
	w.Name(`"data":`)
	writeMap(w, c.Data, w.Raw)
	if c.ErrorMessage != nil {
		w.Name(`"error_message":`)
		w.Other(c.ErrorMessage)
	}
	w.End()
}

// writeList writes a list that is mostly empty.
func writeList[T any](w *jsonWriter, list []T) {
	if list != nil && len(list) == 0 {
		w.Out = append(w.Out, "[]"...)
		return
	}
	w.Other(list)
}

// writeMap writes a map by its keys in order.
func writeMap[V any](w *jsonWriter, m map[string]V, value func(V)) {
	if m == nil {
		w.Out = append(w.Out, "null"...)
		return
	}
	var few [16]string
	w.Begin()
	keys := slices.AppendSeq(few[:0], maps.Keys(m))
	slices.Sort(keys)
	for _, key := range keys {
		if w.Out[len(w.Out)-1] != '{' {
			w.Out = append(w.Out, ',')
		}
		w.Text(key)
		w.Out = append(w.Out, ':')
		value(m[key])
	}
	w.End()
}
