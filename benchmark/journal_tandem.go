package benchmark

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync/atomic"

	"tandem/app"
	"tandem/engine"
	"tandem/host"
	"tandem/workflow"
)

// benchInstance drives an instance the way a client does: start, watch, wait for the end.
type benchInstance struct{ *app.Instance }

// save keeps one of the workflows below.
func (b benchInstance) save(ctx context.Context, definition []byte) error {
	source, problems := workflow.Parse(definition, workflow.Options{Kinds: app.Kinds()})
	if source == nil {
		return fmt.Errorf("the workflow to measure is not valid: %v", problems)
	}
	_, err := b.Save(ctx, app.Local(), source.Definition)
	return err
}

// execute runs a workflow to its end, with somebody watching.
func (b benchInstance) execute(ctx context.Context, workflow string, each func(host.Row)) error {
	p := app.Local()
	id, err := b.Start(ctx, p, workflow, json.RawMessage(`{}`))
	if err != nil {
		return err
	}
	stop := b.Watch(p, id, func(row host.Row, _ []engine.Command) {
		if each != nil {
			each(row)
		}
	})
	defer stop()
	e, err := b.Wait(ctx, p, id)
	switch {
	case err != nil:
		return err
	case e.Status != engine.StatusSuccess:
		return fmt.Errorf("execution %q ended with the status %s: %s", id, e.Status, e.Error)
	}
	return nil
}

// rowBytes runs a chain and returns how long the body of a step's row is, on average.
func (b benchInstance) rowBytes(ctx context.Context, workflow string) (int, error) {
	var rows, bytes atomic.Int64
	var bad atomic.Pointer[error]
	err := b.execute(ctx, workflow, func(row host.Row) {
		body, err := row.Encode()
		if err != nil {
			bad.Store(&err)
			return
		}
		rows.Add(1)
		bytes.Add(int64(len(body)))
	})
	switch broken := bad.Load(); {
	case err != nil:
		return 0, err
	case broken != nil:
		return 0, *broken
	case rows.Load() == 0:
		return 0, fmt.Errorf("workflow %q ended before anybody could watch it; choose a longer chain", workflow)
	}
	return int(bytes.Load() / rows.Load()), nil
}

// benchChain is a workflow of so many nodes in a row.
func benchChain(id string, nodes int) []byte {
	var names []string
	var links [][2]string
	for i := range nodes {
		names = append(names, "n"+strconv.Itoa(i))
		if i > 0 {
			links = append(links, [2]string{names[i-1], names[i]})
		}
	}
	return benchDefinition(id, names, links)
}

// benchFanOut is a workflow of one node, so many after it side by side, and one after them all.
func benchFanOut(id string, width int) []byte {
	names := []string{"first", "last"}
	var links [][2]string
	for i := range width {
		name := "n" + strconv.Itoa(i)
		names = append(names, name)
		links = append(links, [2]string{"first", name}, [2]string{name, "last"})
	}
	return benchDefinition(id, names, links)
}

func benchDefinition(id string, names []string, links [][2]string) []byte {
	def := workflow.Definition{Metadata: workflow.Metadata{ID: id, Name: id, Description: "measured by tandem bench"}}
	for _, name := range names {
		def.Nodes = append(def.Nodes, workflow.Node{ID: name, Name: name, Description: "does nothing", Type: "CALL", Subtype: "EMPTY"})
	}
	for _, l := range links {
		def.Connections = append(def.Connections, workflow.Connection{FromNode: l[0], ToNode: l[1]})
	}
	return workflow.Encode(&def)
}
