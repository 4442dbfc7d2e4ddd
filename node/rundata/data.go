// Package rundata is what a run of a node may read of its execution, and how expressions read it: names, fields of the input, variables of
// loops, layers.
//
// Package node imports it, and who drives runs or evaluates expressions for people.
package rundata

import (
	"encoding/json"
	"sync"

	"tandem/dataflow"
	"tandem/payload"
)

// Data is what a run may read of its execution. The layers have one owner, who writes them under the write lock; runs
// read under the read lock.
type Data struct {
	Layers *dataflow.Layers
	Lock   *sync.RWMutex
	View   dataflow.View
	// Apart is what the loops around the node do not hand on, the inner ones first. Handed says that the node is one that they
	// hand their input to.
	Apart  []dataflow.Apart
	Handed bool
	// Entry are the fields of what the only connection of the node brings, if an iteration begins with it or large fields of it are kept
	// apart, and of what the execution begins with, for its trigger; nil for other nodes, and where it has no fields.
	Entry []payload.Member
}

// Request is a question to the layers from where the run stands.
func (d *Data) Request() dataflow.Request {
	return dataflow.Request{View: d.View, Apart: d.Apart, Handed: d.Handed}
}

// Lookup asks the layers for a path.
func (d *Data) Lookup(path string) (json.RawMessage, dataflow.Source, bool, error) {
	d.Lock.RLock()
	defer d.Lock.RUnlock()
	return d.Layers.Lookup(d.View, path)
}

// Resolve puts values in the place of the placeholders of a template. Own is the input, which is asked first.
func (d *Data) Resolve(t *dataflow.Template, own json.RawMessage) (json.RawMessage, error) {
	d.Lock.RLock()
	defer d.Lock.RUnlock()
	request := d.Request()
	request.Own = own
	raw, _, err := t.Resolve(d.Layers, request)
	return raw, err
}

// Resolved puts values in the place of the placeholders of a value that somebody made who is not the author: a model. It tells
// where they came from.
func (d *Data) Resolved(value json.RawMessage) (json.RawMessage, []dataflow.Origin, error) {
	t, err := dataflow.Compile(value)
	if err != nil {
		return nil, nil, err
	}
	d.Lock.RLock()
	defer d.Lock.RUnlock()
	request := d.Request()
	out, _, err := t.Resolve(d.Layers, request)
	if err != nil {
		return nil, nil, err
	}
	lineage, err := dataflow.InputLineage(d.Layers, dataflow.Input{Params: t}, request)
	return out, lineage.Origins, err
}

// Context is everything that the run may read, by layer.
func (d *Data) Context() (dataflow.Context, error) {
	d.Lock.RLock()
	defer d.Lock.RUnlock()
	return d.Layers.Context(d.View)
}
