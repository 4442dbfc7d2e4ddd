package host

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"tandem/dataflow"
	"tandem/dataflow/editing"
	"tandem/engine"
	"tandem/fault"
	"tandem/payload"
	"tandem/text"
	"tandem/workflow"
)

// Fork says how an execution was forked from another: who made it, from what, where, why, and what was edited.
type Fork struct {
	// Level and ID are those of the new execution; Source is the execution that it was forked from.
	Level  int    `json:"level"`
	ID     string `json:"id"`
	Source string `json:"source"`
	// Activation is where it begins, and Node the node of that activation.
	Activation engine.ActivationID `json:"activation"`
	Node       string              `json:"node,omitempty"`
	By         string              `json:"by,omitempty"`
	// TokenMadeBy is who made the token that By used, if it was somebody else.
	TokenMadeBy string `json:"token_made_by,omitempty"`
	Reason      string `json:"reason,omitempty"`
	Time        int64  `json:"time"`
	Edits       []Edit `json:"edits,omitempty"`
}

// Edit is a value that was edited when a fork was made.
type Edit struct {
	Name string `json:"name"`
	// Original is what it was, absent if there was none; Edited is what it is now. A value of more than MaxInline is shown
	// as {"$blob", "size"}, with its beginning beside it, and Ref refers to it.
	Original     json.RawMessage `json:"original,omitempty"`
	OriginalPart string          `json:"original_part,omitempty"`
	Edited       json.RawMessage `json:"edited"`
	EditedPart   string          `json:"edited_part,omitempty"`
	Ref          engine.Ref      `json:"ref,omitempty"`
	// The rest is what [dataflow.Edit] says. Follows marks an edit that follows from another and was not made by itself.
	Scope   string          `json:"scope,omitempty"`
	Within  string          `json:"within,omitempty"`
	Added   bool            `json:"added,omitempty"`
	Nodes   []string        `json:"nodes,omitempty"`
	Was     json.RawMessage `json:"was,omitempty"`
	Same    bool            `json:"same,omitempty"`
	WasRef  engine.Ref      `json:"was_ref,omitempty"`
	Follows bool            `json:"follows,omitempty"`
}

// forkEdit is an edit in the making.
type forkEdit struct {
	dataflow.Edit
	original json.RawMessage
	follows  bool
}

func plain(edits []forkEdit) []dataflow.Edit {
	list := make([]dataflow.Edit, len(edits))
	for i, e := range edits {
		list[i] = e.Edit
	}
	return list
}

// Made returns the edits that somebody made, without those that follow from them.
func (f Fork) Made() []Edit {
	return slices.DeleteFunc(slices.Clone(f.Edits), func(e Edit) bool { return e.Follows })
}

// editsOf compares the input of a fork request with the one that its activation had. What is not given, or is given
// unchanged, is not edited.
func (f *Fold) editsOf(r ForkRequest, id engine.ActivationID) ([]forkEdit, error) {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(r.Input, &given); err != nil || given == nil {
		return nil, fault.Say(fault.InvalidInput, text.Of("input: it must be an object with the values that are edited, by name")).With("path", "input")
	}
	scope, _ := id.Split()
	run := f.runs[id].command()
	x := editing.Input{
		Layers: f.layers, View: dataflow.View{Scope: scope, AsOf: run.AsOf}, Given: given, Own: map[string]json.RawMessage{},
		Brought: func(connection string) (json.RawMessage, error) { return f.brought(run, scope, connection) },
	}
	if input, origins, err := f.inspect(run); err == nil { // otherwise there is no input to compare with
		if err := json.Unmarshal(input, &x.Own); err != nil {
			return nil, fault.Newf(fault.Internal, "the input of %q cannot be read: %w", id, err)
		}
		if err := json.Unmarshal(origins, &x.Origins); len(origins) > 0 && err != nil {
			return nil, fault.Newf(fault.Internal, "the origins of the input of %q cannot be read: %w", id, err)
		}
	}
	var edits []forkEdit
	for _, name := range slices.Sorted(maps.Keys(given)) {
		value := given[name]
		original, had, at, within := x.Find(name)
		if original != nil && payload.Same(original, value) {
			x.Kept = append(x.Kept, original)
			continue
		}
		e := dataflow.Edit{Name: name, Value: value, Was: original, By: r.By, Fork: r.ID, Scope: scope, Within: within, Added: !had,
			Same: len(at) > 0}
		parts, err := f.checkEdit(run, &e, had)
		if err != nil {
			return nil, err
		}
		for _, part := range parts {
			edits = append(edits, forkEdit{part, part.Was, true})
		}
		edits = append(edits, forkEdit{e, original, false})
		following, err := x.Following(e, at)
		if err != nil {
			return nil, err
		}
		for _, follows := range following {
			edits = append(edits, forkEdit{follows, follows.Was, true})
		}
	}
	for _, e := range f.layers.EditedVariables(plain(edits)) {
		_, was, _ := f.layers.Variable(e.Within, e.Name)
		edits = append(edits, forkEdit{e, was, true})
	}
	return edits, x.CheckCopies(plain(edits), speaksForPeople)
}

// brought is what a connection brought before its conversion.
func (f *Fold) brought(run engine.RunNode, scope, connection string) (json.RawMessage, error) {
	edge := slices.IndexFunc(run.Inputs, func(in engine.Input) bool { return f.graph.Edges[in.Edge].ID == connection })
	if edge < 0 {
		return json.RawMessage("null"), nil
	}
	in := run.Inputs[edge]
	from := &f.graph.Edges[in.Edge]
	if in.Ref == "" && from.Entry {
		return f.payload(run, in)
	}
	raw, _, ok, err := f.layers.Lookup(dataflow.View{Scope: scope, AsOf: run.AsOf}, editing.PathOf(f.graph.Nodes[from.From].ID)+".outputs")
	if err != nil || !ok {
		return json.RawMessage("null"), err
	}
	return raw, nil
}

// speaksForPeople says whether a kind hands on what people have said: a trigger, or a question. That is not edited.
func speaksForPeople(kind string) bool {
	typ := workflow.TypeOf(kind)
	return typ == workflow.TypeTrigger || typ == workflow.TypeHuman
}

// checkEdit refuses an edit that could be shown but not applied, and says what it means for values that have no names.
// The edits of several such values come as parts.
func (f *Fold) checkEdit(run engine.RunNode, e *dataflow.Edit, had bool) (parts []dataflow.Edit, err error) {
	switch {
	case e.Name == dataflow.InputsKey && len(run.Inputs) > 1:
		return nil, editing.Refuse(e.Name, text.Of("it holds what each connection brings; edit the names inside it by themselves"))
	case slices.Contains([]string{"execution", "workflow", "env"}, e.Name) && isObject(e.Value):
		return nil, editing.Refuse(e.Name, text.Of("what {{%s}} tells is not data of the execution; leave it out", e.Name))
	case e.Name != dataflow.DataKey || !had:
		return nil, nil
	}
	var brought []engine.Input
	var values []json.RawMessage
	for _, in := range run.Inputs {
		value, err := f.payload(run, in)
		if err != nil {
			return nil, err
		}
		if in.Convert || isObject(value) {
			continue
		}
		brought, values = append(brought, in), append(values, value)
	}
	if len(brought) == 0 {
		return nil, nil // a field that is called data
	}
	var given []json.RawMessage
	if len(brought) == 1 {
		given = append(given, e.Value)
	} else if json.Unmarshal(e.Value, &given) != nil || len(given) != len(brought) {
		return nil, editing.Refuse(e.Name, text.Of("it holds what %d connections bring; give a list of as many values, in the same order", len(brought)))
	}
	for i, in := range brought {
		whole := *e
		whole.Value, whole.Was, whole.Nodes = given[i], values[i], []string{f.graph.Nodes[f.graph.Edges[in.Edge].From].ID}
		parts = append(parts, whole)
	}
	if len(parts) == 1 {
		*e = parts[0]
		return nil, nil
	}
	return parts, nil
}

func isObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }

// payload is what a connection brings to a run, as it is kept.
func (f *Fold) payload(run engine.RunNode, in engine.Input) (json.RawMessage, error) {
	if in.Ref == "" && f.graph.Edges[in.Edge].Entry {
		entry, _, err := f.iteration(run.Scope)
		return entry.Whole(), err
	}
	value, err := f.Value(in.Ref)
	if err != nil {
		return nil, err
	}
	edits, err := f.editsSince(in.Ref, run.Scope)
	if err != nil {
		return nil, err
	}
	value, _, err = dataflow.EditPayload(f.graph.Nodes[f.graph.Edges[in.Edge].From].ID, value, edits)
	return value, err
}

// record is an edit as it is stored. Put stores a value that is too large to be shown.
func (e forkEdit) record(put func(json.RawMessage) engine.Ref) Edit {
	t := Edit{
		Name: e.Name, Original: shown(e.original), OriginalPart: partOf(e.original), Edited: shown(e.Value), EditedPart: partOf(e.Value),
		Scope: e.Scope, Within: e.Within, Added: e.Added, Nodes: e.Nodes, Was: e.Was, Same: e.Same, Follows: e.follows,
	}
	if len(e.Value) > MaxInline {
		t.Ref = put(e.Value)
	}
	if len(e.original) > MaxInline && !e.follows && !bytes.Equal(e.original, e.Was) { // readers can see all of what it replaces
		put(e.original)
	}
	if len(e.Was) > MaxInline {
		t.Was, t.WasRef = nil, put(e.Was)
	}
	return t
}

// shown is a value as readers see it: one that is too large by its hash.
func shown(value json.RawMessage) json.RawMessage {
	if len(value) <= MaxInline {
		return value
	}
	sum := sha256.Sum256(value)
	raw, err := json.Marshal(map[string]any{"$blob": hex.EncodeToString(sum[:]), "size": len(value)})
	if err != nil { // a text and a number are always JSON
		return json.RawMessage("null")
	}
	return raw
}

// maxPart is how much of a large value is shown beside its hash, in bytes.
const maxPart = 2000

// partOf is the beginning of a value that is shown by its hash; empty for one that is shown as it is.
func partOf(value json.RawMessage) string {
	if len(value) <= MaxInline {
		return ""
	}
	return strings.ToValidUTF8(string(value[:maxPart]), "")
}

// editsSince are the edits of a value from before a fork, as it is read in a scope.
func (f *Fold) editsSince(ref engine.Ref, scope string) ([]dataflow.Edit, error) {
	if len(f.start.Forks) == 0 || ref == "" {
		return nil, nil
	}
	place, err := ParseRef(ref)
	if err != nil {
		return nil, err
	}
	return f.holding(place.Level, scope)
}

// holding are the edits of forks above a level that apply in a scope.
func (f *Fold) holding(level int, scope string) ([]dataflow.Edit, error) {
	var list []dataflow.Edit
	for _, fork := range f.start.Forks {
		if fork.Level <= level {
			continue
		}
		for _, r := range fork.Edits {
			e := dataflow.Edit{
				Name: r.Name, Value: r.Edited, By: fork.By, Fork: fork.ID, Scope: r.Scope, Within: r.Within, Added: r.Added, Nodes: r.Nodes,
				Was: r.Was, Same: r.Same,
			}
			if !e.Holds(scope) {
				continue
			}
			for ref, to := range map[engine.Ref]*json.RawMessage{r.Ref: &e.Value, r.WasRef: &e.Was} { // order does not matter: each is read
				if ref == "" {
					continue
				}
				var err error
				if *to, err = f.Value(ref); err != nil {
					return nil, err
				}
			}
			list = append(list, e)
		}
	}
	return list, nil
}

// edits returns the edits of a run's input: payload by payload, and for the activation that a fork begins with all that was given.
func (f *Fold) edits(run engine.RunNode) (own []dataflow.Edit, payloads map[engine.Ref][]dataflow.Edit, err error) {
	if len(f.start.Forks) == 0 {
		return nil, nil, nil
	}
	payloads = map[engine.Ref][]dataflow.Edit{}
	for _, in := range run.Inputs {
		switch {
		case in.Ref != "":
			payloads[in.Ref], err = f.editsSince(in.Ref, run.Scope)
		case f.graph.Edges[in.Edge].Entry:
			payloads[EntryRef], err = f.editsOfEntry(run.Scope)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	named := map[string]bool{}
	for _, fork := range f.start.Forks {
		for _, e := range fork.Edits {
			if fork.Activation == run.Activation && !e.Follows {
				named[e.Name] = true
			}
		}
	}
	if len(named) == 0 {
		return nil, payloads, nil
	}
	all, err := f.holding(-1, run.Scope)
	for _, e := range all {
		if named[e.Name] && !e.Same {
			own = slices.DeleteFunc(own, func(o dataflow.Edit) bool { return o.Name == e.Name })
			own = append(own, e)
		}
	}
	return own, payloads, err
}

// editsOfEntry are the edits of what an iteration was given when it began.
func (f *Fold) editsOfEntry(scope string) ([]dataflow.Edit, error) {
	owner, ok := OwnerOf(scope)
	if fr := f.frames[owner]; ok && fr != nil {
		return f.holding(fr.level, scope)
	}
	return nil, nil
}

// editedMember lays edits over one member of a value, where that is an object.
func editedMember(value json.RawMessage, name string, edits []dataflow.Edit) (json.RawMessage, error) {
	if len(edits) == 0 || !isObject(value) {
		return value, nil
	}
	member, _ := payload.Field(value, name)
	if !isObject(member) {
		return value, nil
	}
	changed, made, err := dataflow.EditPayload("", member, edits)
	if err != nil || len(made) == 0 {
		return value, err
	}
	return payload.WithField(value, name, changed), nil
}

// loopState is the state of a loop: what it carries from turn to turn is data.
func (f *Fold) loopState(ref engine.Ref, scope string) (json.RawMessage, error) {
	value, err := f.Value(ref)
	if err != nil {
		return nil, err
	}
	edits, err := f.editsSince(ref, scope)
	if err != nil {
		return nil, err
	}
	return editedMember(value, dataflow.DataKey, edits)
}

// editInputs lays edits over what a run is given besides its payloads: the state of a loop, and what was found for its input.
func (f *Fold) editInputs(run engine.RunNode, values *Inputs) (err error) {
	if run.Cause.State != "" && run.Step == nil {
		if fr := f.frames[run.Activation]; fr != nil && !fr.program {
			state, err := f.loopState(run.Cause.State, run.Scope)
			if err != nil {
				return err
			}
			values.set(run.Cause.State, state)
		}
	}
	filled := run.Cause.Filled
	if filled == nil || filled.Ref == "" {
		return nil
	}
	value, err := f.Value(filled.Ref)
	if err != nil {
		return err
	}
	edits, err := f.editsSince(filled.Ref, run.Scope)
	if err != nil {
		return err
	}
	if value, err = editedMember(value, "slot_data", edits); err == nil {
		values.set(filled.Ref, value)
	}
	return err
}

// ChildInput is what a child is started with: a value, and fields of it that are kept beside it.
func (f *Fold) ChildInput(c engine.StartChild) (json.RawMessage, []payload.Part, error) {
	value, parts, err := f.fetch(c.Spec.Input)
	if err != nil || len(f.start.Forks) == 0 {
		return value, parts, err
	}
	scope, _ := c.Activation.Split()
	edits, err := f.editsSince(c.Spec.Input, scope)
	if err != nil {
		return nil, nil, err
	}
	value, _, err = dataflow.EditPayload("", payload.Join(value, parts), edits)
	return value, nil, err
}

// checkLoops refuses edits that change the length of a list that an open loop goes through.
func checkLoops(before, after *Fold) error {
	for _, id := range slices.Sorted(maps.Keys(after.frames)) {
		run, ok := before.runs[id]
		if !ok || after.frames[id].program {
			continue
		}
		was, err := before.Input(run.command())
		if err != nil {
			continue // it could not have begun
		}
		is, err := after.Input(after.runs[id].command())
		if err != nil || sameLengths(was, is) {
			continue
		}
		var a, b map[string]json.RawMessage
		name := ""
		if json.Unmarshal(was, &a) == nil && json.Unmarshal(is, &b) == nil {
			for _, n := range slices.Sorted(maps.Keys(b)) {
				if !sameLengths(a[n], b[n]) {
					name = n
				}
			}
		}
		return editing.Refuse(name, text.Of("the loop %q has begun with this list; fork at the loop to give it another, or keep its length", NodeOf(after.graph, id)))
	}
	return nil
}

// sameLengths says whether the lists in two values have the same lengths.
func sameLengths(a, b json.RawMessage) bool {
	var x, y any
	if payload.Read(a, &x) != nil || payload.Read(b, &y) != nil {
		return true
	}
	var same func(x, y any) bool
	same = func(x, y any) bool {
		switch x := x.(type) {
		case []any:
			y, ok := y.([]any)
			if !ok || len(x) != len(y) {
				return false
			}
			for i := range x {
				if !same(x[i], y[i]) {
					return false
				}
			}
		case map[string]any:
			y, ok := y.(map[string]any)
			for name, value := range x { // order does not matter: each is compared
				if !ok || !same(value, y[name]) {
					return false
				}
			}
		default:
			_, list := y.([]any)
			return !list
		}
		return true
	}
	return same(x, y)
}

// nodeNamed says whether a name is that of a node, whose output is read by it.
func nodeNamed(graph *workflow.Graph, name string) bool {
	return slices.ContainsFunc(graph.Nodes, func(n workflow.GraphNode) bool { return n.ID == name || n.Name == name })
}

// request adds a user who has decided about the execution's data or its course to its requesters.
func (s *Start) request(user string) {
	if user != "" && user != s.UserID && !slices.Contains(s.Requesters, user) {
		s.Requesters = append(slices.Clip(s.Requesters), user)
	}
}
