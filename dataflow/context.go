package dataflow

import "encoding/json"

// Context is the layers as the API shows them.
type Context struct {
	PlanID          string                     `json:"plan_id,omitempty"`
	InitialMetadata map[string]json.RawMessage `json:"initial_metadata"`
	RuntimeMetadata map[string]json.RawMessage `json:"runtime_metadata"`
	StepResults     map[string]StepResult      `json:"step_results"`
	// Merged is runtime_metadata over initial_metadata.
	Merged map[string]json.RawMessage `json:"merged"`
	// Variables are those of the open scopes, the inner ones winning; absent at the top level.
	Variables map[string]json.RawMessage `json:"variables,omitempty"`
}

// StepResult is an entry of step_results.
type StepResult struct {
	StepID       string          `json:"step_id"`
	StepName     string          `json:"step_name"`
	ToolID       string          `json:"tool_id"`
	Output       json.RawMessage `json:"output"`
	IsSuccess    bool            `json:"is_success"`
	ErrorMessage string          `json:"error_message,omitempty"`
	// Ordinal tells which result is newer.
	Ordinal uint64 `json:"-"`
}

// Context returns the layers as seen from a view. Its values share memory with the layers; they are not to be changed.
func (l *Layers) Context(v View) (Context, error) {
	sc, err := l.scope(v.Scope)
	if err != nil {
		return Context{}, err
	}
	c := Context{PlanID: l.planID, InitialMetadata: map[string]json.RawMessage{}, RuntimeMetadata: map[string]json.RawMessage{},
		StepResults: map[string]StepResult{}, Merged: map[string]json.RawMessage{}}
	for _, m := range l.initial {
		c.InitialMetadata[m.Key], c.Merged[m.Key] = m.Value, m.Value
	}
	for s := sc; s != nil; s = s.parent { // from the inside out: what is there already is nearer
		for name, h := range s.runtime { // order does not matter: one entry per name
			if _, nearer := c.RuntimeMetadata[name]; nearer {
				continue
			}
			if d, ok := h.at(v.AsOf); ok {
				c.RuntimeMetadata[name], c.Merged[name] = d.value.value(), d.value.value()
			}
		}
		for id, a := range s.steps { // order does not matter: one entry per node
			nearer, has := c.StepResults[id]
			if has && nearer.IsSuccess {
				continue
			}
			if r, ok := a.ok.at(v.AsOf); ok {
				c.StepResults[id] = r.value.public(r.ordinal)
			} else if r, ok := a.failed.at(v.AsOf); ok && !has {
				c.StepResults[id] = r.value.public(r.ordinal)
			}
		}
		for name, value := range s.vars { // order does not matter: one entry per name
			if c.Variables == nil {
				c.Variables = map[string]json.RawMessage{}
			}
			if _, nearer := c.Variables[name]; !nearer {
				c.Variables[name] = value
			}
		}
	}
	return c, nil
}

func (r *result) public(ordinal uint64) StepResult {
	name := r.name
	if name == "" {
		name = r.node
	}
	return StepResult{StepID: r.node, StepName: name, ToolID: r.tool, Output: r.whole(), IsSuccess: r.success,
		ErrorMessage: r.message, Ordinal: ordinal}
}
