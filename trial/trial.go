// Package trial is what tests of definitions need besides a host: what a request asks for, what must not be passed over, what is wrong with
// the nodes that run, and whether the end is as a test expects it. It starts nothing and reads no store. Package server imports it.
package trial

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tandem/api"
	"tandem/engine"
	"tandem/fault"
	"tandem/payload"
	"tandem/text"
	"tandem/workflow"
)

// Patience is how many seconds a test of a file may take.
const Patience = 60

// Request is what of a definition is to run. Where the request names a test of the definition, that is returned as well, and the request is
// filled with what it says.
func Request(def *workflow.Definition, want *api.TestRequest) (*workflow.Test, workflow.ExcerptRequest, error) {
	if want.Test == "" {
		return nil, workflow.ExcerptRequest{Pinned: want.Pinned, Node: want.Node, From: want.From}, nil
	}
	for field, given := range map[string]bool{"node": want.Node != "", "from": want.From != "", "trigger_node": want.TriggerNode != "",
		"inputs": len(want.Inputs) > 0 && string(want.Inputs) != "{}", "pinned": len(want.Pinned) > 0} {
		if given { // order does not matter: one of them is told
			return nil, workflow.ExcerptRequest{}, api.WrongField(field, "the test %q says this itself; leave one of them out", want.Test)
		}
	}
	test, ok := def.TestNamed(want.Test)
	if !ok {
		names := make([]string, len(def.Tests))
		for i := range def.Tests {
			names[i] = def.Tests[i].Name
		}
		remedy := text.Of("; add it to \"tests\"")
		if near := fault.Nearest(want.Test, names); near != "" {
			remedy = text.Of("; did you mean %q?", near)
		}
		return nil, workflow.ExcerptRequest{}, api.WrongField("test", "the definition has no test %q%s", want.Test, remedy)
	}
	request, err := test.Request()
	if err != nil {
		return nil, request, api.WrongField("test", "what test %q pins cannot be read: %v", want.Test, err)
	}
	want.Node, want.From, want.Pinned, want.Inputs = test.Node, test.From, request.Pinned, test.Inputs
	want.WaitSeconds = cmp.Or(want.WaitSeconds, Patience)
	return test, request, nil
}

// RefusePassed refuses a test that gets around a question. Asks says whether a workflow that is run by a node asks people.
func RefusePassed(ctx context.Context, passed []workflow.Passed, asks func(context.Context, workflow.ChildWorkflow) (bool, error)) error {
	for _, q := range passed {
		if q.Child != nil {
			asked, err := asks(ctx, *q.Child)
			if err != nil {
				return err
			}
			if !asked {
				continue
			}
		}
		return fault.Newf(fault.ApprovalRequired, "%q has effects and lies behind %q, which asks people and would not be asked; begin the test there (\"from\": %q) without a pin on it, or pin %q", q.Node, q.Question, q.Question, q.Node).
			With("question", q.Question).With("node", q.Node)
	}
	return nil
}

// Problems are what is wrong with the nodes of an excerpt that run. The places are those in the whole definition.
func Problems(whole, part *workflow.Definition, check func([]byte) (*workflow.Definition, []workflow.Problem)) ([]workflow.Problem, error) {
	runs := *part
	var places []int // in the whole, of the nodes that run
	runs.Nodes, runs.Connections = nil, nil
	names := map[string]bool{}
	for _, n := range part.Nodes {
		if len(n.Pinned) == 0 {
			names[n.ID] = true
			runs.Nodes = append(runs.Nodes, n)
			places = append(places, slices.IndexFunc(whole.Nodes, func(w workflow.Node) bool { return w.ID == n.ID }))
		}
	}
	if len(runs.Nodes) == 0 {
		return nil, api.WrongField("pinned", "all nodes are pinned; leave one to run")
	}
	for _, c := range part.Connections {
		if names[c.FromNode] && names[c.ToNode] {
			runs.Connections = append(runs.Connections, c)
		}
	}
	_, problems := check(workflow.Encode(&runs))
	// Of a loop whose body is pinned; compiling the excerpt finds others.
	problems = slices.DeleteFunc(problems, func(p workflow.Problem) bool { return p.Code == workflow.ProblemEmptyBody })
	if !workflow.HasErrors(problems) {
		return nil, nil
	}
	for i := range problems {
		p := &problems[i]
		p.Line, p.Column = 0, 0 // of a text that nobody wrote
		if path, err := payload.ParsePath(p.Path); err == nil && len(path) > 1 && path[0].Key == "nodes" && path[1].Index >= 0 &&
			path[1].Index < len(places) {
			_, rest, _ := strings.Cut(p.Path, "]")
			p.Path = payload.JoinIndex("nodes", places[path[1].Index]) + rest
		}
	}
	return problems, nil
}

// Outcome is how the execution of a test has ended.
type Outcome struct {
	Status string
	// Error is why it failed; nil if it did not.
	Error *api.ExecutionError
	// Outputs are those by key of the nodes that have ended well.
	Outputs map[string]map[string]json.RawMessage
}

// Judge says in the answer whether a test has passed, and what is not as it expects. Outputs reads those of nodes that have ended well.
// What has not ended in time is canceled: nobody else looks after it.
func Judge(test *workflow.Test, told *api.TestResponse,
	outputs func(nodes []string) (map[string]map[string]json.RawMessage, error), cancel func() error) error {
	if !engine.Status(told.Status).Final() {
		told.Differences = []api.TestDifference{{About: "status", Expected: payload.Quote(test.Expect.Wanted()),
			Got: payload.Quote(told.Status), Message: "it has not ended in time, and was canceled; pin what waits"}}
		told.Passed = new(bool)
		return cancel()
	}
	nodes, err := expected(test)
	if err != nil {
		return err
	}
	values, err := outputs(nodes)
	if err != nil {
		return err
	}
	told.Differences, err = Compare(test, Outcome{Status: told.Status, Error: told.Error, Outputs: values})
	passed := len(told.Differences) == 0
	told.Passed = &passed
	return err
}

// expected are the nodes whose outputs a test has something to say about.
func expected(test *workflow.Test) ([]string, error) {
	outputs, err := workflow.OutputsByNode(test.Expect.Outputs)
	return slices.Sorted(maps.Keys(outputs)), err
}

// Compare says what is not as a test expects it. What is written must be there, with this value; an object may have further fields; a list
// has as many items as are written.
func Compare(test *workflow.Test, o Outcome) ([]api.TestDifference, error) {
	c := &comparison{}
	if wanted := test.Expect.Wanted(); o.Status != wanted {
		d := api.TestDifference{About: "status", Expected: payload.Quote(wanted), Got: payload.Quote(o.Status)}
		if o.Error != nil {
			d.Message = o.Error.ErrorCode + ": " + o.Error.ErrorMessage
		}
		c.addDifference(d)
	}
	if wanted := test.Expect.ErrorCode; wanted != "" && (o.Error == nil || o.Error.ErrorCode != wanted) {
		d := api.TestDifference{About: "error_code", Expected: payload.Quote(wanted)}
		if o.Error != nil {
			d.Got, d.Message = payload.Quote(o.Error.ErrorCode), o.Error.ErrorMessage
		}
		c.addDifference(d)
	}
	wanted, err := workflow.OutputsByNode(test.Expect.Outputs)
	if err != nil {
		return nil, err
	}
	for _, node := range slices.Sorted(maps.Keys(wanted)) {
		got, done := o.Outputs[node]
		if !done {
			c.addDifference(api.TestDifference{About: "outputs", Node: node, Message: "it has not run to its end"})
			continue
		}
		c.node = node
		for _, key := range slices.Sorted(maps.Keys(wanted[node])) {
			value, ok := got[key]
			if !ok {
				c.addDifference(api.TestDifference{About: "outputs", Node: node, Path: key, Expected: shown(decode(wanted[node][key])),
					Message: "it went by " + listed(slices.Sorted(maps.Keys(got)))})
				continue
			}
			c.values(payload.JoinKey("", key), decode(wanted[node][key]), decode(value))
		}
	}
	if c.more > 0 {
		c.list = append(c.list, api.TestDifference{About: "outputs", Message: strconv.Itoa(c.more) + " more places differ"})
	}
	return c.list, nil
}

// maxPlaces is how many differences are told of one test, maxShown how many bytes of a value.
const (
	maxPlaces = 20
	maxShown  = 500
)

type comparison struct {
	node string
	list []api.TestDifference
	more int
}

func (c *comparison) addDifference(d api.TestDifference) {
	if len(c.list) == maxPlaces {
		c.more++
		return
	}
	c.list = append(c.list, d)
}

func (c *comparison) values(path string, wanted, got any) {
	switch a := wanted.(type) {
	case map[string]any:
		b, ok := got.(map[string]any)
		if !ok {
			break
		}
		for _, name := range slices.Sorted(maps.Keys(a)) {
			if value, there := b[name]; there {
				c.values(payload.JoinKey(path, name), a[name], value)
			} else {
				c.addDifference(api.TestDifference{About: "outputs", Node: c.node, Path: payload.JoinKey(path, name), Expected: shown(a[name])})
			}
		}
		return
	case []any:
		b, ok := got.([]any)
		if !ok || len(a) != len(b) {
			break
		}
		for i := range a {
			c.values(payload.JoinIndex(path, i), a[i], b[i])
		}
		return
	case json.Number:
		if b, ok := got.(json.Number); ok && payload.SameNumber(a, b) {
			return
		}
	default:
		if wanted == got {
			return
		}
	}
	c.addDifference(api.TestDifference{About: "outputs", Node: c.node, Path: path, Expected: shown(wanted), Got: shown(got)})
}

func decode(raw json.RawMessage) any {
	v, err := payload.Decode(raw)
	if err != nil {
		return string(raw)
	}
	return v
}

// shown is a value as a report shows it.
func shown(v any) json.RawMessage {
	raw, err := payload.Encode(v)
	if err != nil {
		return payload.Quote("…")
	}
	if len(raw) <= maxShown {
		return raw
	}
	return payload.Quote(fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(string(raw[:maxShown]), ""), len(raw)))
}

func listed(keys []string) string {
	if len(keys) == 0 {
		return "no key"
	}
	for i := range keys {
		keys[i] = strconv.Quote(keys[i])
	}
	return strings.Join(keys, ", ")
}
