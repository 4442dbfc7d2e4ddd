package story

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/payload"
)

// encodeExecution writes an execution as JSON without looking at types, which is most of what encoding costs. What few executions have is left to the
// general encoder; the bytes are the same as those of the general encoder without escapes for HTML.
func encodeExecution(e *api.GetExecution) []byte {
	w := jsonWriter{make([]byte, 0, 1536+512*len(e.Execution.NodeExecutions))}
	w.begin()
	w.name(`"execution":`)
	w.execution(&e.Execution)
	if len(e.WorkflowDefinition) > 0 {
		w.name(`"workflow_definition":`)
		w.raw(e.WorkflowDefinition)
	}
	if e.Checkpoint != nil {
		w.name(`"checkpoint":`)
		w.checkpoint(e.Checkpoint)
	}
	w.end()
	return append(w.out, '\n')
}

// jsonWriter writes JSON as the general encoder does without escapes for HTML.
type jsonWriter struct{ out []byte }

func (w *jsonWriter) execution(e *api.Execution) {
	w.begin()
	w.name(`"execution_id":`)
	w.text(e.ExecutionID)
	w.name(`"workflow_id":`)
	w.text(e.WorkflowID)
	w.name(`"workflow_name":`)
	w.text(e.WorkflowName)
	w.name(`"workflow_version":`)
	w.text(e.WorkflowVersion)
	w.name(`"revision":`)
	w.int(e.Revision)
	w.name(`"status":`)
	w.text(e.Status)
	w.intIfAny(`"start_time":`, e.StartTime)
	w.intIfAny(`"end_time":`, e.EndTime)
	w.intIfAny(`"duration_ms":`, e.DurationMS)
	w.name(`"trigger_info":`)
	w.trigger(&e.TriggerInfo)
	w.name(`"node_executions":`)
	writeMap(w, e.NodeExecutions, func(n api.NodeExecution) { w.node(&n) })
	w.name(`"execution_sequence":`)
	w.texts(e.ExecutionSequence)
	w.intIfAny(`"execution_sequence_omitted":`, e.SequenceOmitted)
	w.textIfAny(`"current_node_id":`, e.CurrentNodeID)
	w.name(`"current_node_ids":`)
	w.texts(e.CurrentNodeIDs)
	w.name(`"next_nodes":`)
	w.texts(e.NextNodes)
	if len(e.Outputs) > 0 {
		w.name(`"outputs":`)
		writeMap(w, e.Outputs, w.raw)
	}
	if e.Error != nil {
		w.name(`"error":`)
		w.other(e.Error)
	}
	w.name(`"errors":`)
	writeList(w, e.Errors)
	w.name(`"credits_consumed":`)
	w.float(e.CreditsConsumed)
	if e.TokensUsed != nil {
		w.name(`"tokens_used":`)
		w.other(e.TokensUsed)
	}
	w.rawIfAny(`"metadata":`, e.Metadata)
	w.name(`"metrics":`)
	w.metrics(&e.Metrics)
	w.name(`"created_at":`)
	w.int(e.CreatedAt)
	w.name(`"updated_at":`)
	w.int(e.UpdatedAt)
	w.textIfAny(`"parent_execution_id":`, e.ParentExecutionID)
	w.textIfAny(`"forked_from":`, e.ForkedFrom)
	if e.Fork != nil {
		w.name(`"fork":`)
		w.other(e.Fork)
	}
	w.name(`"priority":`)
	w.int(int64(e.Priority))
	w.name(`"seq":`)
	w.out = strconv.AppendUint(w.out, e.Seq, 10)
	w.textIfAny(`"full_answer":`, e.FullAnswer)
	w.rawIfAny(`"conversation":`, e.Conversation)
	w.name(`"questions":`)
	writeList(w, e.Questions)
	if e.Task != nil {
		w.name(`"task":`)
		w.other(e.Task)
	}
	if e.Test != nil {
		w.name(`"test":`)
		w.other(e.Test)
	}
	if len(e.Acts) > 0 {
		w.name(`"acts":`)
		w.other(e.Acts)
	}
	w.end()
}

func (w *jsonWriter) trigger(t *api.TriggerInfo) {
	w.begin()
	w.name(`"trigger_type":`)
	w.text(t.TriggerType)
	w.rawIfAny(`"trigger_data":`, t.TriggerData)
	w.textIfAny(`"user_id":`, t.UserID)
	w.textIfAny(`"token_made_by":`, t.TokenMadeBy)
	w.textIfAny(`"external_request_id":`, t.ExternalRequestID)
	w.name(`"timestamp":`)
	w.int(t.Timestamp)
	w.end()
}

func (w *jsonWriter) metrics(m *api.ExecutionMetrics) {
	w.begin()
	w.name(`"duration_ms":`)
	w.int(m.DurationMS)
	w.name(`"waited_ms":`)
	w.int(m.WaitedMS)
	w.name(`"nodes":`)
	writeMap(w, m.Nodes, func(n int) { w.int(int64(n)) })
	w.name(`"activations":`)
	w.int(m.Activations)
	w.name(`"retries":`)
	w.int(m.Retries)
	w.name(`"total_tokens":`)
	w.int(m.TotalTokens)
	w.name(`"cost":`)
	w.float(m.Cost)
	w.end()
}

func (w *jsonWriter) node(n *api.NodeExecution) {
	w.begin()
	w.name(`"node_id":`)
	w.text(n.NodeID)
	w.name(`"node_name":`)
	w.text(n.NodeName)
	w.name(`"node_type":`)
	w.text(n.NodeType)
	w.name(`"node_subtype":`)
	w.text(n.NodeSubtype)
	w.name(`"status":`)
	w.text(n.Status)
	w.intIfAny(`"start_time":`, n.StartTime)
	w.intIfAny(`"end_time":`, n.EndTime)
	w.intIfAny(`"duration_ms":`, n.DurationMS)
	w.rawIfAny(`"input_data":`, n.InputData)
	w.rawIfAny(`"sent":`, n.Sent)
	if len(n.OutputData) > 0 {
		w.name(`"output_data":`)
		writeMap(w, n.OutputData, w.raw)
	}
	w.rawIfAny(`"execution_details":`, n.ExecutionDetails)
	w.textIfAny(`"wait_url":`, n.WaitURL)
	if n.Error != nil {
		w.name(`"error":`)
		w.other(n.Error)
	}
	if len(n.Warnings) > 0 {
		w.name(`"warnings":`)
		w.other(n.Warnings)
	}
	w.name(`"retry_count":`)
	w.int(int64(n.RetryCount))
	w.name(`"max_retries":`)
	w.int(int64(n.MaxRetries))
	w.name(`"credits_consumed":`)
	w.float(n.CreditsConsumed)
	w.name(`"activation_id":`)
	w.text(n.ActivationID)
	if n.Iteration != nil {
		w.name(`"iteration":`)
		w.int(*n.Iteration)
	}
	w.intIfAny(`"generation":`, int64(n.Generation))
	w.name(`"attempt":`)
	w.int(int64(n.Attempt))
	w.textIfAny(`"effect":`, n.Effect)
	if n.Pinned {
		w.name(`"pinned":`)
		w.other(true)
	}
	w.intIfAny(`"activation_count":`, n.ActivationCount)
	if len(n.Activations) > 0 {
		w.name(`"activations":`)
		w.other(n.Activations)
	}
	w.textIfAny(`"inner_step":`, n.InnerStep)
	if len(n.Steps) > 0 {
		w.name(`"steps":`)
		w.other(n.Steps)
	}
	w.intIfAny(`"next_at":`, n.NextAt)
	w.rawIfAny(`"lineage":`, n.Lineage)
	if len(n.AttachedExecutions) > 0 {
		w.name(`"attached_executions":`)
		w.other(n.AttachedExecutions)
	}
	if n.TokensUsed != nil {
		w.name(`"tokens_used":`)
		w.other(n.TokensUsed)
	}
	w.end()
}

func (w *jsonWriter) checkpoint(c *api.Checkpoint) {
	w.begin()
	w.name(`"id":`)
	w.out = strconv.AppendUint(w.out, c.ID, 10)
	w.name(`"task_id":`)
	w.text(c.TaskID)
	w.name(`"app_id":`)
	w.text(c.AppID)
	w.name(`"executor_id":`)
	w.text(c.ExecutorID)
	w.name(`"executor_name":`)
	w.text(c.ExecutorName)
	w.name(`"executor_description":`)
	w.text(c.ExecutorDescription)
	w.name(`"executor_status":`)
	w.text(c.ExecutorStatus)
	w.textIfAny(`"step_id":`, c.StepID)
	w.textIfAny(`"step_name":`, c.StepName)
	w.textIfAny(`"step_type":`, c.StepType)
	w.textIfAny(`"step_status":`, c.StepStatus)
	w.name(`"data":`)
	writeMap(w, c.Data, w.raw)
	if c.ErrorMessage != nil {
		w.name(`"error_message":`)
		w.other(c.ErrorMessage)
	}
	w.end()
}

func (w *jsonWriter) begin() { w.out = append(w.out, '{') }
func (w *jsonWriter) end()   { w.out = append(w.out, '}') }

// name writes the name of a member, which is given as it is written.
func (w *jsonWriter) name(name string) {
	if w.out[len(w.out)-1] != '{' {
		w.out = append(w.out, ',')
	}
	w.out = append(w.out, name...)
}

func (w *jsonWriter) int(n int64) { w.out = strconv.AppendInt(w.out, n, 10) }

func (w *jsonWriter) intIfAny(name string, n int64) {
	if n != 0 {
		w.name(name)
		w.int(n)
	}
}

func (w *jsonWriter) float(f float64) {
	if f == 0 && !math.Signbit(f) {
		w.out = append(w.out, '0')
		return
	}
	w.other(f)
}

func (w *jsonWriter) text(text string) {
	if !plainJSON(text) {
		w.other(text)
		return
	}
	w.out = append(w.out, '"')
	w.out = append(w.out, text...)
	w.out = append(w.out, '"')
}

// plainJSON says that a text is written in JSON as it is.
func plainJSON(text string) bool {
	ascii := true
	for i := range len(text) {
		c := text[i]
		if c < ' ' || c == '"' || c == '\\' {
			return false
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	return ascii || utf8.ValidString(text) && !strings.ContainsAny(text, "\u2028\u2029")
}

func (w *jsonWriter) textIfAny(name, text string) {
	if text != "" {
		w.name(name)
		w.text(text)
	}
}

func (w *jsonWriter) texts(list []string) {
	if list == nil {
		w.out = append(w.out, "null"...)
		return
	}
	w.out = append(w.out, '[')
	for i, text := range list {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		w.text(text)
	}
	w.out = append(w.out, ']')
}

func (w *jsonWriter) raw(value json.RawMessage) {
	if !compactJSON(value) || !gjson.ValidBytes(value) {
		w.spaced(value)
		return
	}
	w.out = append(w.out, value...)
}

// spaced writes a value as part of something else, which is written without white space.
func (w *jsonWriter) spaced(value json.RawMessage) { w.other(&value) }

// compactJSON says that a value, if it is JSON, has no spaces between its parts, and no characters that are written in another way.
func compactJSON(value []byte) bool {
	inside := false
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case c == '"':
			inside = !inside
		case c == '\\':
			i++
		case c <= ' ' && !inside, c >= utf8.RuneSelf && !inside:
			return false
		}
	}
	return true
}

func (w *jsonWriter) rawIfAny(name string, value json.RawMessage) {
	if len(value) > 0 {
		w.name(name)
		w.raw(value)
	}
}

// other writes anything.
func (w *jsonWriter) other(v any) {
	body, err := payload.Encode(v)
	if err != nil {
		panic(err) // a defect, which is told as one
	}
	w.out = append(w.out, body...)
}

// writeList writes a list that is mostly empty.
func writeList[T any](w *jsonWriter, list []T) {
	if list != nil && len(list) == 0 {
		w.out = append(w.out, "[]"...)
		return
	}
	w.other(list)
}

// writeMap writes a map by its keys in order.
func writeMap[V any](w *jsonWriter, m map[string]V, value func(V)) {
	if m == nil {
		w.out = append(w.out, "null"...)
		return
	}
	var few [16]string
	w.begin()
	keys := slices.AppendSeq(few[:0], maps.Keys(m))
	slices.Sort(keys)
	for _, key := range keys {
		if w.out[len(w.out)-1] != '{' {
			w.out = append(w.out, ',')
		}
		w.text(key)
		w.out = append(w.out, ':')
		value(m[key])
	}
	w.end()
}
