package local

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/store"
)

// failures are the log lines of a row: one for every node that fails, and one for every attempt that is repeated. The operator's log has
// the failures too, with details for operators.
func (o *owner) failures(row *host.Row) []store.LogLine {
	var lines []store.LogLine
	for i := range row.Told {
		t := &row.Told[i]
		if t.What != host.ToldNode || t.Error == nil {
			continue
		}
		line, step := o.lineOf(t.Activation, row.Time)
		context := map[string]any{"error_code": t.Error.Code, "is_retryable": t.Error.Retryable}
		if step != "" {
			context[store.LogInnerStep] = step
		}
		switch t.Node {
		case engine.NodeFailure:
			line.Level, line.Message = store.LevelError, "the node failed: "+messageOf(t.Error)
			for name, value := range t.Error.Details { // order does not matter: one entry per name
				context[name] = value
			}
			o.logFailure(host.NodeOf(o.revision.Graph, t.Activation), t)
		case engine.NodeRetrying:
			line.Level, line.Message = store.LevelWarn, "an attempt failed and is made again: "+messageOf(t.Error)
			context["attempt"], context["next_at"] = max(t.Attempt, 1), time.UnixMilli(t.Time).UTC().Format(time.RFC3339)
		default:
			continue
		}
		raw, err := json.Marshal(context)
		if err != nil { // details are JSON, since the row is
			o.host.opts.Log.Warn("the context of a line was left out", "execution", o.ref.Execution, "error", err)
		}
		line.Context = raw
		lines = append(lines, line)
	}
	return lines
}

// lineOf begins a line about an activation. It names the node of the workflow; step is the step inside that node, if it is one.
func (o *owner) lineOf(id engine.ActivationID, at int64) (line store.LogLine, step string) {
	line = store.LogLine{Activation: string(id), Time: at}
	line.NodeID, step = host.Shown(o.revision.Graph, id)
	return line, step
}

func (o *owner) logFailure(node string, t *host.Told) {
	attributes := []slog.Attr{
		slog.String("workspace", o.ref.Workspace), slog.String("execution", o.ref.Execution), slog.String("node", node), slog.String("activation", string(t.Activation)),
		slog.String("code", string(t.Error.Code)), slog.String("error", messageOf(t.Error)),
	}
	if t.Error.Detail != "" {
		attributes = append(attributes, slog.String("detail", t.Error.Detail))
	}
	o.host.opts.Log.LogAttrs(context.Background(), slog.LevelWarn, "a node failed", attributes...)
}

// messageOf is what people read of an error; never nothing.
func messageOf(e *fault.Error) string {
	if e.Message != "" {
		return e.Message
	}
	return e.Error()
}
