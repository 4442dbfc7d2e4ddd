package dataflow

import (
	"encoding/json"
	"slices"
	"strings"

	"tandem/fault"
	"tandem/payload"
)

// DefaultKey is the output key whose payload is the output.
const DefaultKey = "result"

// Step is the success of one activation.
type Step struct {
	// Seq is the journal row that records it.
	Seq   uint64
	Scope string
	// Activation is the engine's id of the visit, for lineage.
	Activation string
	NodeID     string
	NodeName   string
	// ToolID is the node's kind, or server/tool.
	ToolID string
	// Output is payload by output key. The layers keep it; the caller no longer changes it.
	Output map[string]json.RawMessage
	// Payloads are the same as a list, for callers that have no map of them. If there are any, Output is not looked at.
	Payloads []payload.Member
	// Beside are fields of the one payload that are kept beside it, so that many results share them.
	Beside []payload.Part
	// OutputParams are the names the node's definition lists for synchronisation, DeclaredOutputs those of the tool's
	// schema. The first that is not empty counts; if both are, every top-level key of the output is synced.
	OutputParams    []string
	DeclaredOutputs []string
}

// Failure is the failure of one activation. Output is set for a handled one, whose error is a payload.
type Failure struct {
	Seq        uint64
	Scope      string
	Activation string
	NodeID     string
	NodeName   string
	ToolID     string
	Message    string
	Output     map[string]json.RawMessage
}

// result is an entry of step_results. It is never changed, so overlays and versions share it.
type result struct {
	node, name, tool  string
	scope, activation string
	seq               uint64
	success           bool
	message           string
	// output is the output, fields its fields sorted by key if it is an object; keys are the payloads by output key.
	output json.RawMessage
	fields []payload.Member
	keys   []payload.Member
	// beside are fields of the only payload that are in fields, and neither in output nor in keys.
	beside []payload.Part
	// edited says whose the fields are that somebody has edited since; nil if nobody has.
	edited map[string]*edited
}

// CheckOutput says whether an output can be kept: every payload is JSON within the limits. A host checks before it
// records, since what is in the journal must be applied.
func CheckOutput(output map[string]json.RawMessage) error {
	if len(output) == 1 { // as most are; nothing is made of it
		for key, value := range output { // order does not matter: there is one
			if err := payload.Check(value, payload.Limits{}); err != nil {
				return notKept(key, err)
			}
		}
		return nil
	}
	_, err := normalizeOutput(output)
	return err
}

func notKept(key string, err error) error {
	return fault.Newf(fault.OutputInvalid, "the payload of output key %q cannot be kept: %w", key, err).With("path", key)
}

func normalizeOutput(output map[string]json.RawMessage) ([]payload.Member, error) {
	keys := make([]payload.Member, 0, len(output))
	for key, value := range output { // order does not matter: sorted when they are normalized
		keys = append(keys, payload.Member{Key: key, Value: value})
	}
	return normalizeKeys(keys)
}

// normalizeKeys sorts payloads by key and normalizes them, in place.
func normalizeKeys(keys []payload.Member) ([]payload.Member, error) {
	sortMembers(keys)
	for i, m := range keys {
		value, err := payload.Normalize(m.Value, payload.Limits{})
		if err != nil {
			return nil, notKept(m.Key, err)
		}
		keys[i].Value = value
	}
	return keys, nil
}

// Output returns the output of an activation, for prompts, history and placeholders: the payload of "result", else the
// payload of the only key, else an object of all payloads by key. No key at all gives null.
func Output(output map[string]json.RawMessage) (json.RawMessage, error) {
	keys, err := normalizeOutput(output)
	if err != nil {
		return nil, err
	}
	return outputOf(keys), nil
}

// OutputOf is [Output] of payloads that are a list, which it leaves as it is.
func OutputOf(payloads []payload.Member) (json.RawMessage, error) {
	keys, err := normalizeKeys(slices.Clone(payloads))
	if err != nil {
		return nil, err
	}
	return outputOf(keys), nil
}

func outputOf(keys []payload.Member) json.RawMessage {
	if payload, ok := find(keys, DefaultKey); ok {
		return payload
	}
	switch len(keys) {
	case 0:
		return json.RawMessage("null")
	case 1:
		return keys[0].Value
	default:
		return payload.AppendObject(nil, keys)
	}
}

func newResult(output map[string]json.RawMessage) (*result, error) {
	keys, err := normalizeOutput(output)
	if err != nil {
		return nil, err
	}
	return resultOf(keys), nil
}

// resultOf makes a result of normalized payloads, sorted by key, with all that follows from them.
func resultOf(keys []payload.Member) *result {
	r := &result{keys: keys, output: outputOf(keys)}
	if r.output[0] == '{' {
		r.fields = sortMembers(payload.Members(r.output))
	}
	return r
}

// share lays fields beside a result of one payload.
func (r *result) share(parts []payload.Part) {
	r.beside = parts
	r.fields = sortMembers(payload.JoinedMembers(r.output, parts))
}

// whole is the output with what is kept beside it.
func (r *result) whole() json.RawMessage { return payload.Join(r.output, r.beside) }

// wholeKeys are the payloads by output key, with what is kept beside them.
func (r *result) wholeKeys() []payload.Member {
	if len(r.beside) == 0 {
		return r.keys
	}
	return []payload.Member{{Key: r.keys[0].Key, Value: r.whole()}}
}

// Sync records a success in step_results and writes its output's fields into runtime_metadata of its scope, each as
// name and as <node id>_name. Among successes the last in the journal wins. Only objects have fields to sync. On an
// error nothing has changed.
func (l *Layers) Sync(s Step) (SyncTrace, error) {
	trace := SyncTrace{StepID: s.NodeID, Scope: s.Scope}
	sc, err := l.scope(s.Scope)
	if err != nil {
		return trace, err
	}
	keys, err := s.payloads()
	if err != nil {
		return trace, err
	}
	r := resultOf(keys)
	if len(s.Beside) > 0 {
		r.share(s.Beside)
	}
	if err := l.advance(s.Seq); err != nil {
		return trace, err
	}
	r.node, r.name, r.tool, r.scope, r.activation, r.seq, r.success = s.NodeID, s.NodeName, s.ToolID, s.Scope, s.Activation, s.Seq, true
	l.keep(sc, r)
	if r.output[0] != '{' {
		return trace, nil
	}
	data := r.synced(s, &trace)
	if len(data) == 0 {
		return trace, nil
	}
	prefix := s.NodeID + "_"
	length := 0
	for _, d := range data {
		trace.Synced = append(trace.Synced, d.field())
		length += len(prefix) + len(d.field())
	}
	room := newNames{most: 2 * len(data)}
	if len(sc.runtime) == 0 && len(data) > manyNames {
		sc.runtime = make(map[string]*history[datum], 2*len(data))
	}
	for _, d := range data {
		l.write(sc, d.field(), d, &room, &trace)
	}
	var full strings.Builder // one text has them all
	full.Grow(length)
	for _, d := range data { // last, so that a field that happens to be called <node id>_name does not take its place
		start := full.Len()
		full.WriteString(prefix)
		full.WriteString(d.field())
		l.write(sc, full.String()[start:], d, &room, &trace)
	}
	trace.Count = len(trace.Synced)
	return trace, nil
}

// payloads are what was put out, normalized and sorted by key.
func (s *Step) payloads() ([]payload.Member, error) {
	if len(s.Payloads) > 0 {
		return normalizeKeys(s.Payloads)
	}
	return normalizeOutput(s.Output)
}

// synced are the fields of a success that become names of the data, each once: those that the node or its tool lists, else all.
func (r *result) synced(s Step, trace *SyncTrace) []datum {
	names := s.OutputParams
	if len(names) == 0 {
		names = s.DeclaredOutputs
	}
	if len(names) == 0 {
		data := make([]datum, len(r.fields))
		for i := range r.fields {
			data[i] = datum{from: r, at: i}
		}
		if len(data) > 0 {
			trace.Synced = make([]string, 0, len(data))
		}
		return data
	}
	seen := make(map[string]bool, len(names))
	var data []datum
	for _, name := range names {
		if seen[name] {
			continue
		}
		seen[name] = true
		at, ok := findAt(r.fields, name)
		if !ok {
			trace.Missing = append(trace.Missing, name)
			continue
		}
		data = append(data, datum{from: r, at: at})
	}
	return data
}

// manyNames is from how many names on room is made for them at once.
const manyNames = 1000

// newNames makes room for the histories of names that are written for the first time. Mostly those of one output are all new, or
// none is, so it is made for all that are left when there is a first one.
type newNames struct {
	// most is how many may still come.
	most int
	room []newName
}

type newName struct {
	history history[datum]
	first   [1]version[datum]
}

func (n *newNames) next() *history[datum] {
	if len(n.room) == 0 {
		n.room = make([]newName, n.most)
	}
	own := &n.room[0]
	n.room = n.room[1:]
	own.history.versions = own.first[:0]
	return &own.history
}

func (l *Layers) write(sc *scope, name string, d datum, room *newNames, trace *SyncTrace) {
	h := sc.runtime[name]
	if h == nil {
		h = room.next()
		sc.runtime[name] = h
	} else if before, ok := h.at(l.seq); ok {
		from := before.value.from
		if from != d.from {
			trace.Overwritten = append(trace.Overwritten, Overwrite{Name: name, Node: from.node, Scope: from.scope, Seq: from.seq})
		}
	}
	room.most--
	put(l, h, d.from.seq, 0, d)
}

// Fail records a failure in step_results. It writes no metadata and hides no success of the same node.
func (l *Layers) Fail(f Failure) error {
	sc, err := l.scope(f.Scope)
	if err != nil {
		return err
	}
	r, err := newResult(f.Output)
	if err != nil {
		return err
	}
	if err := l.advance(f.Seq); err != nil {
		return err
	}
	r.node, r.name, r.tool, r.scope, r.activation, r.seq, r.message = f.NodeID, f.NodeName, f.ToolID, f.Scope,
		f.Activation, f.Seq, f.Message
	l.keep(sc, r)
	return nil
}

func (l *Layers) keep(sc *scope, r *result) {
	l.ordinal++
	l.notice(sc, r)
	l.keepAt(attemptsOf(sc.steps, r.node), r)
	if r.name != "" && r.name != r.node {
		l.keepAt(attemptsOf(sc.named, r.name), r)
	}
}

func (l *Layers) keepAt(a *attempts, r *result) {
	if r.success {
		put(l, &a.ok, r.seq, l.ordinal, r)
	} else {
		put(l, &a.failed, r.seq, l.ordinal, r)
	}
}

// TriggerPrefix is how the kinds begin whose result {{trigger.…}} reads: the type of triggers in definitions, and a dot. The packages of
// the two do not know each other.
const TriggerPrefix = "TRIGGER."

// notice keeps which trigger an execution has begun at, when it hears of its success.
func (l *Layers) notice(sc *scope, r *result) {
	if r.success && sc == l.root && strings.HasPrefix(r.tool, TriggerPrefix) {
		l.fired = r.node
	}
}

// Rewind is called when a plan is made anew. It clears nothing: new steps may read what finished steps left. It keeps
// the new plan id, or the old one if there is none, and says what stayed.
func (l *Layers) Rewind(planID string) RewindTrace {
	trace := RewindTrace{PlanID: planID, PreviousPlanID: l.planID}
	if planID == "" {
		trace.PlanID = l.planID
	}
	l.planID = trace.PlanID
	for _, s := range l.scopes { // order does not matter: a sum
		trace.StepResults += len(s.steps)
		trace.RuntimeMetadata += len(s.runtime)
	}
	return trace
}

// PlanID returns the id of the current plan, empty if there is none.
func (l *Layers) PlanID() string { return l.planID }

// ParamNames reads the names out of a node's output_params or a tool's declared outputs: the keys of an object, in the
// order they were written, or the strings of a list. Nothing, null and empty ones give no name.
func ParamNames(raw json.RawMessage) ([]string, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	value, err := payload.Normalize(raw, payload.Limits{})
	if err != nil {
		return nil, fault.Newf(fault.InvalidConfig, "output_params cannot be read: %w", err)
	}
	var names []string
	switch value[0] {
	case 'n':
		return nil, nil
	case '{':
		for _, m := range payload.Members(value) {
			names = append(names, m.Key)
		}
		return names, nil
	case '[':
		bad := false
		payload.EachItem(value, func(item []byte) bool {
			if bad = item[0] != '"'; !bad {
				names = append(names, payload.Unquote(item[1:len(item)-1]))
			}
			return !bad
		})
		if !bad {
			return names, nil
		}
	}
	return nil, fault.New(fault.InvalidConfig, "output_params must be an object with a field per name, or a list of names")
}
