package host

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"tandem/dataflow"
	"tandem/engine"
	"tandem/fault"
	"tandem/payload"
)

// frame is what a host keeps of an open scope: the results of its iterations, in index order, and its failures.
type frame struct {
	opened int64
	last   ended
	// results are those of the iterations 0 to count-1, each followed by a comma; held are the results of later ones
	// that have ended before an earlier one.
	results []byte
	count   int64
	held    map[int64]json.RawMessage
	// discard says that the results are not needed.
	discard bool
	size    int
	// ends are the outputs of the last nodes of open iterations, by scope path and node.
	ends   map[string]map[string]ended
	errors []Failure
	// program says that a program runs in it, whose iterations get nothing from the node.
	program bool
	// level is the level of the execution in which it was opened.
	level int
	// scope is prepared when the first turn or iteration needs it.
	scope Opened
}

// ended is the output of a node that ends an iteration, and the fields that are kept beside it.
type ended struct {
	output json.RawMessage
	beside []payload.Part
}

func (e ended) whole() json.RawMessage { return payload.Join(e.output, e.beside) }

// Failure is the failure of one iteration.
type Failure struct {
	Index int64        `json:"index"`
	Error *fault.Error `json:"error"`
}

// Scope is what a run of a scope's node may know about its iterations.
type Scope struct {
	Opened time.Time
	// Last returns the result of the iteration that ended last. It is built on demand: it may be large, and is rarely needed.
	Last     func() json.RawMessage
	Failures []Failure
	results  []byte
	size     int
}

// MaxResults bounds the results that a scope collects, in bytes.
const MaxResults = 64 << 20

// maxFailures bounds the failures that a scope lists.
const maxFailures = 10_000

func newFrame(now int64, discard, program bool) *frame {
	return &frame{opened: now, discard: discard, program: program, held: map[int64]json.RawMessage{}, ends: map[string]map[string]ended{}}
}

// Scope returns what is kept of the scope that an activation has opened.
func (f *Fold) Scope(id engine.ActivationID) (Scope, bool) {
	fr := f.frames[id]
	if fr == nil {
		return Scope{}, false
	}
	return Scope{
		Opened: time.UnixMilli(fr.opened).UTC(), Last: fr.last.whole, Failures: slices.Clone(fr.errors), results: fr.results, size: fr.size,
	}, true
}

// Results returns the results of the iterations in index order.
func (s Scope) Results() ([]json.RawMessage, error) {
	if s.size > MaxResults {
		return nil, fault.Newf(fault.TooLarge, "the results of the iterations have %d bytes, at most %d are collected; set collect_results to false", s.size, MaxResults)
	}
	if len(s.results) == 0 {
		return nil, nil
	}
	var list []json.RawMessage
	text := append(append([]byte{'['}, s.results[:len(s.results)-1]...), ']')
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fault.Newf(fault.Internal, "the results of the iterations cannot be read: %w", err)
	}
	return list, nil
}

// noteResult keeps the output of a node that ends an iteration, as the conversions of its connections back to the loop made it.
func (f *Fold) noteResult(run engine.RunNode, outputs []payload.Member, beside []payload.Part, settled []engine.Verdict) error {
	if run.Scope == "" || run.Node < 0 {
		return nil
	}
	owner, _ := splitIteration(run.Scope) // the engine may have closed the scope already
	n := &f.graph.Nodes[run.Node]
	if !slices.Contains(f.graph.Bodies[n.Body].Last, run.Node) {
		return nil
	}
	fr := f.frames[owner]
	if fr == nil {
		return fault.Newf(fault.Internal, "%q has opened no scope", owner)
	}
	output, err := dataflow.OutputOf(outputs)
	if err != nil {
		return err
	}
	converted, live := false, false
	for _, v := range settled {
		if !f.graph.Edges[v.Edge].Back {
			continue
		}
		if converted = true; !v.Live {
			continue
		}
		if output, err = f.Value(v.Ref); err != nil {
			return err
		}
		live, beside = true, nil
	}
	if converted && !live {
		return nil // it returns nothing
	}
	if fr.ends[run.Scope] == nil {
		fr.ends[run.Scope] = map[string]ended{}
	}
	fr.ends[run.Scope][n.ID] = ended{output, beside}
	return nil
}

// noteFailure keeps the first failure inside an iteration, for the list of a scope that keeps going.
func (f *Fold) noteFailure(end engine.EndNode) {
	if end.Status != engine.NodeFailure || end.Error == nil {
		return
	}
	path, _ := end.Activation.Split()
	for path != "" {
		owner, index := splitIteration(path)
		if fr := f.frames[owner]; fr != nil && len(fr.errors) < maxFailures {
			if !slices.ContainsFunc(fr.errors, func(e Failure) bool { return e.Index == index }) {
				fr.errors = append(fr.errors, Failure{index, end.Error})
			}
		}
		path, _ = owner.Split()
	}
}

// closeIteration adds an iteration's result to the scope's.
func (f *Fold) closeIteration(c engine.CloseScope) {
	owner, index := splitIteration(c.Scope)
	fr := f.frames[owner]
	if fr == nil {
		return
	}
	result := resultOf(fr.ends[c.Scope])
	delete(fr.ends, c.Scope)
	if c.Failed {
		result = ended{output: json.RawMessage("null")}
	} else {
		fr.errors = slices.DeleteFunc(fr.errors, func(e Failure) bool { return e.Index == index }) // it was handled inside
		fr.last = result
	}
	if fr.discard {
		return
	}
	whole := result.whole()
	fr.size += len(whole) + 1
	if fr.size > MaxResults {
		fr.results, fr.held = nil, nil // they are not needed
		return
	}
	fr.held[index] = whole
	for next, ok := fr.held[fr.count]; ok; next, ok = fr.held[fr.count] {
		fr.results = append(append(fr.results, next...), ',')
		delete(fr.held, fr.count)
		fr.count++
	}
}

// resultOf is the result of an iteration: the output of its last node, an object by node id when several ended, null when all were skipped.
func resultOf(ends map[string]ended) ended {
	if len(ends) == 0 {
		return ended{output: json.RawMessage("null")}
	}
	if len(ends) == 1 {
		for _, output := range ends {
			return output
		}
	}
	object, err := json.Marshal(wholeEnds(ends)) // keys sorted; the outputs are JSON that has been checked
	if err != nil {
		return ended{output: json.RawMessage("null")}
	}
	return ended{output: object}
}

// wholeEnds are outputs by node id, with what is kept beside them.
func wholeEnds(ends map[string]ended) map[string]json.RawMessage {
	outputs := make(map[string]json.RawMessage, len(ends))
	for node, e := range ends { // order does not matter: one entry per node
		outputs[node] = e.whole()
	}
	return outputs
}

// splitIteration returns the activation that opened an iteration's scope, and the iteration's number.
func splitIteration(path string) (engine.ActivationID, int64) {
	open := strings.LastIndexByte(path, '[')
	index := int64(0)
	for _, c := range path[open+1 : len(path)-1] {
		index = index*10 + int64(c-'0')
	}
	return engine.ActivationID(path[:open]), index
}
