package story

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"tandem/api"
	"tandem/dataflow"
	"tandem/fault"
	"tandem/host"
	"tandem/identity"
	"tandem/node/rundata"
	"tandem/payload"
	"tandem/text"
)

// maxEvaluated is how many bytes of a value are told to somebody who types an expression, and cutEvaluated how many of one that has more.
const (
	maxEvaluated = 32 << 10
	cutEvaluated = 2 << 10
)

// Evaluate says what an expression or a text with placeholders is worth: with the data of an execution, as one of its nodes reads it, or
// with what the request gives. It runs nothing, and has the limits that nodes have. What is wrong with the expression is part of the
// answer, told by words; the error is about the request.
func (l *Library) Evaluate(ctx context.Context, p identity.Principal, r *api.EvaluateRequest,
	words func(*fault.Error) string) (out api.EvaluateResponse, err error) {
	if (r.Expression == "") == (r.Template == "") {
		return out, api.WrongField("expression", "give an expression, or a template; one of them")
	}
	at, err := l.standpoint(ctx, p, r)
	if err != nil {
		return out, err
	}
	value, unknown, wrong := at.worth(r)
	switch {
	case wrong != nil:
		f := fault.From(wrong)
		out.Error = &api.EvaluateError{Code: string(f.Code), Message: words(f), Unknown: unknown}
		if place, ok := f.Details["position"].(map[string]any); ok {
			out.Error.Line, _ = place["line"].(int)
			out.Error.Column, _ = place["column"].(int)
		}
	case len(value) > maxEvaluated:
		out.Value, out.Size, out.Cut = payload.Quote(text.ClipBytes(string(value), cutEvaluated)), len(value), true
	default:
		out.Value, out.Size = value, len(value)
	}
	return out, nil
}

// standpoint is from where an expression is evaluated.
type standpoint struct {
	data  rundata.Data
	input json.RawMessage
	now   time.Time
}

func (l *Library) standpoint(ctx context.Context, p identity.Principal, r *api.EvaluateRequest) (*standpoint, error) {
	at, names, err := l.recorded(ctx, p, r)
	if err != nil {
		return nil, err
	}
	for _, id := range slices.Sorted(maps.Keys(r.Pinned)) {
		// What is pinned is newer than all that was recorded, and nearer than what other iterations put out.
		step := dataflow.Step{Seq: math.MaxUint64, Scope: at.data.View.Scope, NodeID: id, NodeName: names[id], Output: r.Pinned[id]}
		if _, err := at.data.Layers.Sync(step); err != nil {
			return nil, api.WrongField(payload.JoinKey("pinned", id), "%s", text.OfError(fault.From(err)))
		}
		at.data.View.AsOf = math.MaxUint64
	}
	if len(r.Input) > 0 {
		at.input = r.Input
	}
	return at, nil
}

// recorded is what an execution has recorded of where a node stands, and the names of its nodes by their ids.
func (l *Library) recorded(ctx context.Context, p identity.Principal, r *api.EvaluateRequest) (*standpoint, map[string]string, error) {
	at := &standpoint{now: l.Now().UTC(), input: json.RawMessage("{}")}
	if r.ExecutionID == "" {
		layers, err := dataflow.New(dataflow.Start{})
		at.data = rundata.Data{Layers: layers, Lock: &sync.RWMutex{}}
		return at, nil, err
	}
	reading, err := l.ReadExecution(ctx, p, r.ExecutionID)
	if err != nil {
		return nil, nil, err
	}
	names := map[string]string{}
	for i := range reading.Graph.Nodes {
		names[reading.Graph.Nodes[i].ID] = reading.Graph.Nodes[i].Name
	}
	if ran := reading.View.Nodes[r.NodeID]; ran != nil {
		input, data, found, err := reading.Journal.Standpoint(ctx, ran.ID, ran.Generation)
		if err != nil {
			return nil, nil, err
		}
		if found {
			at.takeData(data)
			if at.now = data.Now; len(input) > 0 {
				at.input = input
			}
			return at, names, nil
		}
	}
	data, err := reading.Journal.End(ctx)
	at.takeData(data)
	return at, names, err
}

func (s *standpoint) takeData(d host.Data) {
	s.data = rundata.Data{Layers: d.Layers, Lock: d.Lock, View: d.View, Apart: d.Apart, Handed: d.Handed, Entry: d.Entry}
}

// worth evaluates an expression as a condition does, or resolves a text as a configuration does.
func (s *standpoint) worth(r *api.EvaluateRequest) (value json.RawMessage, unknown string, err error) {
	if r.Template == "" {
		result, unknown, err := rundata.Evaluate(r.Expression, s.data, s.input, s.now)
		if err != nil {
			return nil, unknown, err
		}
		value, err = payload.Encode(result)
		return value, "", err
	}
	t, err := dataflow.CompileText(r.Template)
	if err != nil {
		return nil, "", err
	}
	value, _, err = t.Resolve(s.data.Layers, dataflow.Request{View: s.data.View, Own: s.input, Apart: s.data.Apart, Handed: s.data.Handed})
	return value, "", err
}
