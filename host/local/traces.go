package local

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"tandem/credential"
	"tandem/engine"
	"tandem/host"
	"tandem/store"
	"tandem/text"
)

// What happens to the data of executions is told on the level DEBUG, in the log of the execution and in the operator's: which values
// took the place of placeholders, which fields of an output became names, what they overwrote. It costs a line for every node, so it is
// written only when the operator's log has that level.

// maxTraced is how much of a value a line shows.
const maxTraced = 8 << 10

// debugLine is a line on that level, without secrets.
func (o *owner) debugLine(id engine.ActivationID, at int64, message string, fields map[string]any) store.LogLine {
	line, step := o.lineOf(id, at)
	line.Level, line.Message = store.LevelDebug, message
	if step != "" {
		fields[store.LogInnerStep] = step
	}
	raw, err := json.Marshal(fields)
	if err != nil { // they are JSON already
		raw = nil
	}
	if r := o.host.opts.Redact; r != nil && raw != nil {
		raw = r.JSON(raw)
	}
	raw = credential.Conceal(raw) // nobody has to have opened it as a credential
	line.Context = raw
	o.host.opts.Log.Debug(message, "execution", o.ref.Execution, "node", line.NodeID, "activation", string(id), "data", string(raw))
	return line
}

// resolved are the lines about the parameters of a run.
func (o *owner) resolved(m outcome) []store.LogLine {
	var lines []store.LogLine
	for _, t := range m.result.Traces {
		fields := map[string]any{"step_id": t.StepID, "of": t.Of, "original_params": traced(t.Original)}
		if t.Resolved != nil {
			fields["resolved_params"] = traced(t.Resolved)
		}
		if len(t.Warnings) > 0 {
			fields["warnings"] = t.Warnings
		}
		lines = append(lines, o.debugLine(m.attempt.Activation, time.Now().UnixMilli(), "parameters resolved", fields))
	}
	return lines
}

// traces are the lines about what a row did to the data.
func (o *owner) traces(row *host.Row) []store.LogLine {
	var lines []store.LogLine
	for _, t := range o.traced {
		if t.Fold != nil {
			lines = append(lines, o.debugLine(t.Activation, row.Time, "the data of an iteration was folded in", map[string]any{
				"scope": t.Fold.Scope, "held": t.Fold.Held, "names": t.Fold.Names, "steps": t.Fold.Steps, "overwritten": t.Fold.Overwritten,
			}))
			continue
		}
		fields := map[string]any{"step_id": t.Sync.StepID, "synced_fields": t.Sync.Synced, "sync_count": t.Sync.Count}
		if len(t.Sync.Missing) > 0 {
			fields["missing"] = t.Sync.Missing
		}
		if len(t.Sync.Overwritten) > 0 {
			fields["overwritten"] = t.Sync.Overwritten
		}
		lines = append(lines, o.debugLine(t.Activation, row.Time, "outputs synced to runtime_metadata", fields))
	}
	o.traced = nil
	return lines
}

// traced is a value as a line shows it: as it is, or the beginning of its text.
func traced(raw json.RawMessage) any {
	raw = bytes.TrimSpace(raw)
	if len(raw) <= maxTraced {
		return raw
	}
	return fmt.Sprintf("%s (%d bytes)", text.ClipBytes(string(raw), maxTraced), len(raw))
}
