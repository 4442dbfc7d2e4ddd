package console

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/app"
	"tandem/console/table"
	"tandem/console/tree"
	"tandem/fault"
	"tandem/human/form"
	"tandem/payload"
	"tandem/validation"
	"tandem/workflow"
)

// manualSchema is what the trigger wants the inputs to be that people start by hand; nil: it says nothing. Wanted names the trigger; empty:
// the first one.
func manualSchema(d *workflow.Definition, wanted string) json.RawMessage {
	for i := range d.Nodes {
		n := &d.Nodes[i]
		config := gjson.ParseBytes(n.Configurations)
		off := config.Get("enabled").Exists() && !config.Get("enabled").Bool()
		if n.Type != workflow.TypeTrigger || off || wanted != "" && n.ID != wanted || wanted == "" && len(d.Triggers) > 0 &&
			!slices.Contains(d.Triggers, n.ID) {
			continue
		}
		if schema := config.Get("input_schema"); byHand(n) && len(schema.Get("properties").Map()) > 0 &&
			len(gjson.ParseBytes(n.InputParams).Map()) == 0 {
			return json.RawMessage(schema.Raw)
		}
		return nil // an execution begins at the first
	}
	return nil
}

// byHand says that people start a trigger.
func byHand(n *workflow.Node) bool {
	kind, ok := app.Kinds().Get(n.Kind())
	return ok && kind.About.Traits.ByHand
}

// lacking says whether inputs do not fit a schema, so that somebody has to be asked. What cannot be read is refused when the execution is
// started.
func lacking(schema, inputs json.RawMessage) bool {
	if len(inputs) == 0 {
		inputs = json.RawMessage("{}")
	}
	check, err := payload.CompileSchema(schema)
	if err != nil {
		return false
	}
	value, err := payload.Decode(inputs)
	return err == nil && len(check.Problems("inputs", value)) > 0
}

// completeInputs asks the person at the terminal for the inputs that a start lacks, with the one form. What was given and fits is not asked
// for.
func (a *asker) completeInputs(ctx context.Context, schema, inputs json.RawMessage) (json.RawMessage, error) {
	given := map[string]json.RawMessage{}
	if len(inputs) > 0 && json.Unmarshal(inputs, &given) != nil {
		return inputs, nil // it is refused where it is started
	}
	f := form.Inputs(schema, a.language)
	values, ask := form.Values{}, []int{}
	for n := range f.Entries {
		if value, here := given[f.Entries[n].Name]; here {
			values[n] = value
			continue
		}
		ask = append(ask, n)
	}
	if _, err := form.ReadInputs(schema, f.Answer(values)); err != nil {
		ask = append(ask, blamedIn(f, err, ask)...)
	}
	slices.Sort(ask)
	a.typed.forget()
	for {
		for _, n := range ask {
			value, err := a.entry(ctx, &f.Entries[n])
			if err != nil {
				return nil, err
			}
			values[n] = value
		}
		fields, err := form.ReadInputs(schema, f.Answer(values))
		if err == nil {
			for name, value := range fields { // order does not matter: one entry per name
				given[name] = value
			}
			return json.Marshal(given)
		}
		problems, ok := errors.AsType[form.Problems](err)
		if !ok {
			return nil, err
		}
		lines := a.say(refused) + "\n"
		for _, p := range problems {
			lines += "  " + table.OneLine(strings.TrimPrefix(p.Path, "response_data.field_values.")+": "+p.Text.In(a.language)) + "\n"
		}
		if ask = blamedIn(f, err, nil); len(ask) == 0 {
			return nil, fault.Newf(fault.InvalidInput, "the inputs do not fit: %s", table.OneLine(err.Error()))
		}
		if err := a.print(lines); err != nil {
			return nil, err
		}
	}
}

// fileInputs are the inputs of a run of a file, with what the person at the terminal adds. The run says what is wrong with a file
// that cannot be read.
func (a *asker) fileInputs(ctx context.Context, r app.Run) (json.RawMessage, error) {
	if r.Resume != "" {
		return r.Inputs, nil
	}
	data, problem := validation.ReadFile(r.File, nil)
	if problem != nil {
		return r.Inputs, nil
	}
	source, _ := workflow.Parse(data, workflow.Options{})
	if source == nil {
		return r.Inputs, nil
	}
	return a.wanted(ctx, manualSchema(source.Definition, ""), r.Inputs)
}

// startInputs are the same for a workflow that is kept. Without somebody at a terminal they are what was given.
func startInputs(ctx context.Context, tty *Terminal, c *app.Connection, s Start) (json.RawMessage, error) {
	if s.Request.StartFromNode != "" || !tree.IsTerminal(tty.Out) {
		return s.Request.Inputs, nil
	}
	kept, err := c.Workflow(ctx, s.Workflow, s.Request.Revision)
	if err != nil {
		return nil, err
	}
	raw, err := payload.Encode(kept)
	if err != nil {
		return nil, fault.Newf(fault.Internal, "workflow %q cannot be read: %w", s.Workflow, err)
	}
	source, _ := workflow.Parse(raw, workflow.Options{})
	if source == nil {
		return s.Request.Inputs, nil
	}
	schema := manualSchema(source.Definition, s.Request.TriggerNode)
	if schema == nil || !lacking(schema, s.Request.Inputs) {
		return s.Request.Inputs, nil
	}
	a := newAsker(tty.In, tty.Out, nil)
	if a == nil {
		return s.Request.Inputs, nil
	}
	return a.wanted(ctx, schema, s.Request.Inputs)
}

// wanted asks for inputs if some are lacking.
func (a *asker) wanted(ctx context.Context, schema, inputs json.RawMessage) (json.RawMessage, error) {
	if schema == nil || !lacking(schema, inputs) {
		return inputs, nil
	}
	inputs, err := a.completeInputs(ctx, schema, inputs)
	if errors.Is(err, app.ErrAsked) {
		return nil, fault.New(fault.InvalidInput, "the workflow lacks inputs, and nothing was started; give them with --input name=value")
	}
	return inputs, err
}

// blamedIn are the entries that problems are about, without those that are asked for anyway.
func blamedIn(f *form.Form, err error, but []int) (list []int) {
	problems, _ := errors.AsType[form.Problems](err)
	for _, p := range problems {
		if n := f.About(p.Path); n >= 0 && !slices.Contains(list, n) && !slices.Contains(but, n) {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return list
}
