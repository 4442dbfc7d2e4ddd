package workflow

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"tandem/payload"
	"tandem/text"
)

// Test is a test that stands in a workflow's file: what of the workflow runs, with which data, and what must come of it. Tests change
// nothing in a run and are part of a revision.
type Test struct {
	// Name tells the tests of a workflow apart.
	Name string `json:"name"`
	// Node is the only node that runs, From the first. At most one is set; neither: the whole workflow runs.
	Node string `json:"node,omitempty"`
	From string `json:"from,omitempty"`
	// Inputs is the object that the execution is started with.
	Inputs json.RawMessage `json:"inputs,omitempty"`
	// Pinned are the outputs of nodes that do not run: an object by node, of objects by output key.
	Pinned json.RawMessage `json:"pinned,omitempty"`
	Expect Expectation     `json:"expect,omitzero"`
}

// Expectation is what must come of a test. Values are compared by one rule: what is written must be there, with this value; an object may
// have further fields; a list has as many items as are written.
type Expectation struct {
	// Status is how the execution ends; empty: SUCCESS, or ERROR if an error code is expected.
	Status string `json:"status,omitempty"`
	// Outputs are those of nodes: an object by node, of objects by output key.
	Outputs json.RawMessage `json:"outputs,omitempty"`
	// ErrorCode is the code of the error that ends the execution.
	ErrorCode string `json:"error_code,omitempty"`
}

// Wanted is the status that a test must end with.
func (e *Expectation) Wanted() string {
	switch {
	case e.Status != "":
		return e.Status
	case e.ErrorCode != "":
		return "ERROR"
	}
	return "SUCCESS"
}

// Request is what of the definition a test runs. Nothing with effects does.
func (t *Test) Request() (ExcerptRequest, error) {
	pinned, err := OutputsByNode(t.Pinned)
	return ExcerptRequest{Pinned: pinned, Node: t.Node, From: t.From, WithoutEffects: true}, err
}

// OutputsByNode reads outputs by node and output key, as tests write them.
func OutputsByNode(raw json.RawMessage) (outputs map[string]map[string]json.RawMessage, err error) {
	if len(raw) > 0 {
		err = json.Unmarshal(raw, &outputs)
	}
	return outputs, err
}

// TestNamed finds a test by its name.
func (def *Definition) TestNamed(name string) (*Test, bool) {
	i := slices.IndexFunc(def.Tests, func(t Test) bool { return t.Name == name })
	if i < 0 {
		return nil, false
	}
	return &def.Tests[i], true
}

func testFields() *fields {
	return &fields{what: text.Of("a test"), known: []string{"name", "node", "from", "inputs", "pinned", "expect"}}
}

func expectFields() *fields {
	return &fields{what: text.Of("an expectation"), known: []string{"status", "outputs", "error_code"}}
}

func testPath(i int) string { return payload.JoinIndex("tests", i) }

// tests reads the tests of the file.
func (d *decoder) tests(def *Definition, at spot, v *value) {
	list := d.list(at, v)
	if list == nil {
		return
	}
	def.Tests = make([]Test, len(list.items()))
	for i := range list.items() {
		t, path := &def.Tests[i], testPath(i)
		if !d.object(spot{path: path}, &list.items()[i], text.Of("a test, which is an object,")) {
			continue
		}
		d.each(path, &list.items()[i], testFields(), func(field string, at spot, v *value) {
			switch field {
			case "name":
				d.text(&t.Name, at, v)
			case "node":
				d.text(&t.Node, at, v)
			case "from":
				d.text(&t.From, at, v)
			case "inputs":
				if v.kind != kindNull {
					d.parameters(&t.Inputs, at, v)
				}
			case "pinned":
				d.outputs(&t.Pinned, at, v)
			case "expect":
				if v.kind != kindNull && d.object(at, v, text.Of("an object")) {
					d.expectation(&t.Expect, at.String(), v)
				}
			}
		})
	}
}

func (d *decoder) expectation(e *Expectation, path string, v *value) {
	d.each(path, v, expectFields(), func(field string, at spot, v *value) {
		switch field {
		case "status":
			d.text(&e.Status, at, v)
			e.Status = strings.ToUpper(e.Status)
		case "outputs":
			d.outputs(&e.Outputs, at, v)
		case "error_code":
			d.text(&e.ErrorCode, at, v)
		}
	})
}

// outputs reads outputs by node and output key.
func (d *decoder) outputs(to *json.RawMessage, at spot, v *value) {
	if v.kind == kindNull || !d.object(at, v, text.Of("an object with outputs by node")) {
		return
	}
	for i := range v.items() {
		if item := &v.items()[i]; item.kind != kindObject {
			d.report(errorAt(ProblemWrongType, payload.JoinKey(at.String(), v.inside.names[i].text),
				"the outputs of a node are an object by output key, not %s; write {result: …}", item.kind))
			return
		}
	}
	d.parameters(to, at, v)
}

// test writes a test in its canonical form.
func (e *encoder) test(t *Test) {
	e.out = append(e.out, '{')
	e.text("name", t.Name)
	e.optional("node", t.Node)
	e.optional("from", t.From)
	e.given("inputs", t.Inputs)
	e.given("pinned", t.Pinned)
	if x := &t.Expect; x.Status != "" || x.ErrorCode != "" || len(x.Outputs) > 0 {
		e.open("expect")
		e.optional("status", x.Status)
		e.given("outputs", x.Outputs)
		e.optional("error_code", x.ErrorCode)
		e.close('}')
	}
	e.close('}')
}

// given writes an object that is there.
func (e *encoder) given(key string, raw json.RawMessage) {
	if len(raw) > 0 {
		e.raw(key, raw)
	}
}

// checkTests sees that tests name nodes that are there and can mean something.
func (l *linked) checkTests() {
	if len(l.def.Tests) == 0 {
		return
	}
	ids := make([]string, len(l.def.Nodes))
	for i := range l.def.Nodes {
		ids[i] = l.def.Nodes[i].ID
	}
	first := make(map[string]int, len(l.def.Tests))
	for i := range l.def.Tests {
		t, path := &l.def.Tests[i], testPath(i)
		if strings.TrimSpace(t.Name) == "" {
			l.report(errorAt(ProblemInvalidName, path+".name", "a test needs a name; say in a few words what must hold"))
		} else if other, taken := first[t.Name]; taken {
			l.report(errorAt(ProblemDuplicateName, path+".name", "the name %q is already that of %s; give each test a name of its own", t.Name, testPath(other)))
		} else {
			first[t.Name] = i
		}
		known := func(at, id string) {
			if _, ok := l.byID[id]; !ok {
				l.report(errorAt(ProblemUnknownNode, at, "there is no node with the id %q%s", id, l.suggest(id, ids, text.Of("use the id of a node, or take this out of the test"))))
			}
		}
		if t.Node != "" && t.From != "" {
			l.report(errorAt(ProblemInvalidTest, path+".from", "a test runs one node (node) or begins at one (from); leave one out"))
		}
		if t.Node != "" {
			known(path+".node", t.Node)
		}
		if t.From != "" {
			known(path+".from", t.From)
		}
		l.checkPins(t, path, known)
		for _, n := range fieldNames(t.Expect.Outputs) {
			known(payload.JoinKey(path+".expect.outputs", n), n)
		}
		l.checkExpected(&t.Expect, path+".expect")
	}
}

func (l *linked) checkPins(t *Test, path string, known func(at, id string)) {
	v, ok := readObject(t.Pinned)
	if !ok {
		return
	}
	for i, n := range v.inside.names {
		at := payload.JoinKey(path+".pinned", n.text)
		known(at, n.text)
		switch {
		case len(v.inside.items[i].items()) == 0:
			l.report(errorAt(ProblemInvalidTest, at, "give at least one output of %q: {result: …}", n.text))
		case n.text == t.Node || n.text == t.From:
			l.report(errorAt(ProblemInvalidTest, at, "the test runs %q, so that it cannot be pinned; take one of both out", n.text))
		}
	}
}

func (l *linked) checkExpected(e *Expectation, path string) {
	statuses := []string{"SUCCESS", "ERROR", "TIMEOUT", "CANCELED"}
	switch {
	case e.Status != "" && !slices.Contains(statuses, e.Status):
		l.report(errorAt(ProblemInvalidTest, path+".status", "a test cannot end with %q%s", e.Status, suggestion(e.Status, statuses, text.Of("use one of: %s", strings.Join(statuses, ", ")))))
	case e.ErrorCode != "" && e.Status == "SUCCESS":
		l.report(errorAt(ProblemInvalidTest, path+".error_code", "what ends with SUCCESS has no error; take status or error_code out"))
	}
}

// fieldNames are the names of an object's fields, in their order.
func fieldNames(raw json.RawMessage) (names []string) {
	if v, ok := readObject(raw); ok {
		for _, n := range v.inside.names {
			names = append(names, n.text)
		}
	}
	return names
}

// effectless says what a test without effects may not run: what reaches outside, asks people, runs other workflows or has its input filled
// by a model.
func (x *excerpting) effectless() {
	for i := range x.def.Nodes {
		plan, n := &x.plans[i], &x.def.Nodes[i]
		x.barred[i] = x.pins[i] == nil && !x.attached[i] && !plan.Disabled && n.Type != TypeTrigger &&
			(plan.Effect != Pure || plan.Asks != "" || plan.Child != nil || len(n.AttachedNodes) > 0 || filled(n.Configurations))
	}
}

// filled says that a model fills the input of a node.
func filled(configurations json.RawMessage) bool {
	v, ok := readObject(configurations)
	if !ok {
		return false
	}
	fill := v.spelled("enable_filling")
	if fill == nil {
		return false
	}
	on, err := strconv.ParseBool(fill.text)
	return fill.kind != kindBool || err != nil || on
}
