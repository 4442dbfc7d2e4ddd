package workflow

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"tandem/fault"
	"tandem/text"
)

// Excerpt is what a test of a definition runs: the whole, what comes after a node, or a node alone. Nodes that are pinned do not run and
// have the outputs that were given for them.
type Excerpt struct {
	Definition *Definition
	// Trigger and StartFrom say where it begins. Neither: with the pinned nodes that nothing leads to.
	Trigger, StartFrom string
	// Passed are questions that are not asked although something with effects lies behind them.
	Passed []Passed
}

// Passed is a node that asks people, itself or in the workflow that it runs, and that a test would get around.
type Passed struct {
	Question string
	// Node is one that has effects and lies behind it.
	Node string
	// Child is the workflow that asks, perhaps; nil: the node does so itself.
	Child *ChildWorkflow
}

// ExcerptRequest says what of a definition is to be tested.
type ExcerptRequest struct {
	// Pinned are outputs by key of nodes that do not run.
	Pinned map[string]map[string]json.RawMessage
	// Node is the only one that runs, From the first. At most one is set; neither: the whole runs.
	Node, From string
	// WithoutEffects keeps what has effects, and is not pinned, from running: the test fails where it is reached.
	WithoutEffects bool
}

// excerpting is an excerpt in the making.
type excerpting struct {
	def   *Definition
	want  ExcerptRequest
	byID  map[string]int
	plans []Plan
	// pins are the pinned outputs by key, aliases resolved; nil for a node that runs.
	pins []map[string]json.RawMessage
	// barred are the nodes that may not run although they are not pinned.
	barred []bool
	// entries are the keys of loops into their bodies; empty for other nodes.
	entries []string
	// next and before are the connections out of a node and into it.
	next, before [][]int
	attached     []bool
	start        int
	kept         []bool
	// chain are the pinned nodes that come before the start, in the order in which they are recorded.
	chain []int
}

// NewExcerpt cuts out what a test runs. Errors name the field of the request.
func NewExcerpt(def *Definition, kinds Kinds, want ExcerptRequest) (*Excerpt, error) {
	x := &excerpting{def: def, want: want, byID: make(map[string]int, len(def.Nodes)), plans: make([]Plan, len(def.Nodes)),
		barred: make([]bool, len(def.Nodes)), entries: make([]string, len(def.Nodes)),
		pins: make([]map[string]json.RawMessage, len(def.Nodes)),
		next: make([][]int, len(def.Nodes)), before: make([][]int, len(def.Nodes)), attached: make([]bool, len(def.Nodes)),
		start: -1, kept: make([]bool, len(def.Nodes))}
	for i := range def.Nodes {
		x.byID[def.Nodes[i].ID] = i
		if kind, ok := kinds.Kind(def.Nodes[i].Kind()); ok {
			x.plans[i], _ = kind.Plan(&def.Nodes[i])
			if kind.Scope != nil {
				x.entries[i] = kind.Scope.Entry
			}
		}
	}
	for i := range def.Nodes {
		for _, id := range def.Nodes[i].AttachedNodes {
			if n, ok := x.byID[id]; ok {
				x.attached[n] = true
			}
		}
	}
	for i := range def.Connections {
		from, ok := x.byID[def.Connections[i].FromNode]
		to, known := x.byID[def.Connections[i].ToNode]
		if ok && known {
			x.next[from], x.before[to] = append(x.next[from], i), append(x.before[to], i)
		}
	}
	if err := x.readPins(); err != nil {
		return nil, err
	}
	if want.WithoutEffects {
		x.effectless()
	}
	if err := x.readStart(); err != nil {
		return nil, err
	}
	return x.cut()
}

// wrongPart is an error about one field of what is asked for. The test of the catalogues reads the formats where this is called.
func wrongPart(field, format string, args ...any) error {
	return fault.Newf(fault.InvalidInput, "%s: %s", field, text.Formatted(format, args...)).With("path", field)
}

func (x *excerpting) readPins() error {
	for _, id := range slices.Sorted(maps.Keys(x.want.Pinned)) {
		outputs, field := x.want.Pinned[id], "pinned."+id
		n, ok := x.byID[id]
		switch {
		case !ok:
			return wrongPart(field, "the definition has no node %q", id)
		case len(outputs) == 0:
			return wrongPart(field, "give at least one output: {\"result\": …}")
		case x.attached[n]:
			return wrongPart(field, "%q is attached to another node, which uses it; pin that one instead", id)
		}
		x.pins[n] = make(map[string]json.RawMessage, len(outputs))
		for key, value := range outputs { // order does not matter: each is kept under its key
			x.pins[n][x.key(n, key)] = value
		}
	}
	return nil
}

// key is an output key with its aliases resolved.
func (x *excerpting) key(node int, key string) string {
	if key == "" {
		key = DefaultKey
	}
	if to, ok := x.plans[node].KeyAliases[key]; ok {
		return to
	}
	return key
}

func (x *excerpting) readStart() error {
	field, id := "node", x.want.Node
	switch {
	case x.want.Node != "" && x.want.From != "":
		return wrongPart("from", "a test runs one node (node) or begins at one (from); leave one out")
	case x.want.From != "":
		field, id = "from", x.want.From
	case x.want.Node == "":
		return nil
	}
	n, ok := x.byID[id]
	switch {
	case !ok:
		return wrongPart(field, "the definition has no node %q", id)
	case x.attached[n]:
		return wrongPart(field, "%q is attached to another node, which uses it; run that one", id)
	case x.pins[n] != nil:
		return wrongPart(field, "%q is pinned and does not run; take its pin away", id)
	case x.barred[n]:
		return wrongPart(field, "%q has effects, and a test in a file has none; begin at the node behind it, and pin the output of %q", id, id)
	}
	x.start = n
	return nil
}

func (x *excerpting) ends(connection int) (from, to int) {
	c := &x.def.Connections[connection]
	return x.byID[c.FromNode], x.byID[c.ToNode]
}

// live says that a connection can bring something: a pinned node produces what it is pinned with and nothing else.
func (x *excerpting) live(connection int) bool {
	from, _ := x.ends(connection)
	if x.pins[from] == nil {
		return !x.barred[from]
	}
	_, ok := x.pins[from][x.key(from, x.def.Connections[connection].OutputKey)]
	return ok
}

// reach marks what can be reached from some nodes, along the connections that follow returns.
func (x *excerpting) reach(from []int, follow func(node int) []int) []bool {
	seen := make([]bool, len(x.def.Nodes))
	for stack := slices.Clone(from); len(stack) > 0; {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if !seen[n] {
			seen[n] = true
			stack = append(stack, follow(n)...)
		}
	}
	return seen
}

func (x *excerpting) targets(node int, all bool) (list []int) {
	for _, c := range x.next[node] {
		if _, to := x.ends(c); all || x.live(c) {
			list = append(list, to)
		}
	}
	return list
}

func (x *excerpting) sources(node int) (list []int) {
	for _, c := range x.before[node] {
		from, _ := x.ends(c)
		list = append(list, from)
	}
	return list
}

// cut decides what stays, and where the test begins.
func (x *excerpting) cut() (*Excerpt, error) {
	out := &Excerpt{}
	if x.start < 0 {
		x.keepWhole()
	} else if err := x.keepPart(out); err != nil {
		return nil, err
	}
	for i := range x.def.Nodes {
		if x.kept[i] && x.pins[i] == nil && !x.barred[i] {
			for _, id := range x.def.Nodes[i].AttachedNodes {
				if n, ok := x.byID[id]; ok {
					x.kept[n] = true
				}
			}
		}
	}
	out.Definition = x.write()
	if out.StartFrom == "" || x.want.Node != "" || len(x.want.Pinned) > 0 { // else what the start passes over is asked before it
		out.Passed = x.passed()
	}
	return out, nil
}

// keepWhole keeps what the triggers lead to. A trigger that is pinned is the one that has fired.
func (x *excerpting) keepWhole() {
	var triggers, pinned, roots []int
	for i := range x.def.Nodes {
		switch {
		case x.attached[i]:
		case x.def.Nodes[i].Type == TypeTrigger && x.pins[i] != nil:
			pinned = append(pinned, i)
		case x.def.Nodes[i].Type == TypeTrigger:
			triggers = append(triggers, i)
		case len(x.before[i]) == 0:
			roots = append(roots, i)
		}
	}
	if len(pinned) > 0 {
		roots = pinned
	} else if len(triggers) > 0 {
		roots = triggers
	}
	x.kept = x.reach(roots, func(n int) []int { return x.targets(n, false) })
}

func (x *excerpting) keepPart(out *Excerpt) error {
	before := x.reach(x.sources(x.start), x.sources)
	before[x.start] = false
	var direct []int
	for i := range x.def.Nodes {
		if !before[i] || x.pins[i] == nil {
			continue
		}
		if slices.ContainsFunc(x.next[i], func(c int) bool { _, to := x.ends(c); return to == x.start && x.live(c) }) {
			direct = append(direct, i)
		} else {
			x.chain = append(x.chain, i)
		}
	}
	x.chain = append(x.chain, direct...) // what the start waits for comes last, so that all of them are there when it begins
	for _, n := range x.chain {
		x.kept[n] = true
	}
	x.kept[x.start] = true
	if x.want.From != "" {
		follow := func(n int) []int { // not back to a loop around it that is pinned
			return slices.DeleteFunc(x.targets(n, false), func(to int) bool { return before[to] && x.pins[to] != nil })
		}
		for i, ok := range x.reach([]int{x.start}, follow) {
			x.kept[i] = x.kept[i] || ok
		}
	}
	id := x.def.Nodes[x.start].ID
	switch {
	case x.def.Nodes[x.start].Type == TypeTrigger:
		out.Trigger = id
	case len(direct) > 0:
	case len(x.chain) > 0:
		var names []string
		for _, n := range x.sources(x.start) {
			names = append(names, x.def.Nodes[n].ID)
		}
		slices.Sort(names)
		return wrongPart("pinned", "nothing that is pinned arrives at %q; pin an output of one of these, under the key that is connected: %s", id, listed(slices.Compact(names)))
	default:
		out.StartFrom = id
		if x.want.From != "" { // what lies before it says which questions it passes over
			for i := range before {
				x.kept[i] = x.kept[i] || before[i]
			}
		}
	}
	return nil
}

// write makes the definition of what is kept. No error workflow is started for a test.
func (x *excerpting) write() *Definition {
	def := &Definition{Metadata: x.def.Metadata}
	def.Metadata.Settings.ErrorWorkflow = ""
	chained := map[int]bool{}
	for _, n := range x.chain {
		chained[n] = true
	}
	for i := range x.def.Nodes {
		if !x.kept[i] {
			continue
		}
		n := x.def.Nodes[i]
		if x.pins[i] != nil {
			n.Pinned, n.AttachedNodes = pinnedObject(x.pins[i]), nil
		} else if x.barred[i] {
			n.Pinned, n.AttachedNodes = json.RawMessage("{}"), nil
		}
		def.Nodes = append(def.Nodes, n)
	}
	for i := range x.def.Connections {
		c := x.def.Connections[i]
		from, ok := x.byID[c.FromNode]
		to, known := x.byID[c.ToNode]
		if !ok || !known || !x.kept[from] || !x.kept[to] || !x.live(i) || chained[to] || x.pins[to] != nil && x.returns(from, to) {
			continue
		}
		def.Connections = append(def.Connections, c)
	}
	for i := 1; i < len(x.chain); i++ {
		from, to := x.chain[i-1], x.chain[i]
		def.Connections = append(def.Connections, Connection{
			ID: "pinned-" + x.def.Nodes[from].ID + "-" + x.def.Nodes[to].ID, FromNode: x.def.Nodes[from].ID, ToNode: x.def.Nodes[to].ID,
			OutputKey: slices.Sorted(maps.Keys(x.pins[from]))[0],
		})
	}
	for _, id := range x.def.Triggers {
		if n, ok := x.byID[id]; ok && x.kept[n] && x.pins[n] == nil {
			def.Triggers = append(def.Triggers, id)
		}
	}
	return def
}

// returns says that a node is in the body of a loop: its connection to the loop is the end of an iteration. A loop that is pinned has none.
func (x *excerpting) returns(from, loop int) bool {
	if x.entries[loop] == "" {
		return false
	}
	var first []int
	for _, c := range x.next[loop] {
		if _, to := x.ends(c); x.key(loop, x.def.Connections[c].OutputKey) == x.entries[loop] {
			first = append(first, to)
		}
	}
	body := x.reach(first, func(n int) []int {
		if n == loop {
			return nil
		}
		return x.targets(n, true)
	})
	return body[from]
}

// passed finds the questions that are pinned or left out while something with effects behind them runs.
func (x *excerpting) passed() (list []Passed) {
	for q := range x.def.Nodes {
		plan := &x.plans[q]
		if plan.Asks == "" && plan.Child == nil || plan.Disabled || x.kept[q] && x.pins[q] == nil || x.start < 0 && x.pins[q] == nil {
			continue
		}
		behind := x.reach([]int{q}, func(n int) []int { return x.targets(n, true) })
		for n := range x.def.Nodes {
			if n == q || !behind[n] || !x.kept[n] || x.barred[n] || x.pins[n] != nil ||
				x.plans[n].Effect == Pure && x.plans[n].Child == nil && len(x.def.Nodes[n].AttachedNodes) == 0 {
				continue
			}
			p := Passed{Question: x.def.Nodes[q].ID, Node: x.def.Nodes[n].ID}
			if plan.Asks == "" {
				p.Child = plan.Child
			}
			list = append(list, p)
			break
		}
	}
	return list
}

// pinnedObject writes pinned outputs, their keys in order.
func pinnedObject(outputs map[string]json.RawMessage) json.RawMessage {
	e := encoder{out: []byte{'{'}}
	for _, key := range slices.Sorted(maps.Keys(outputs)) {
		e.key(key)
		e.out = append(append(e.out, outputs[key]...), ',')
	}
	e.close('}')
	return e.out[:len(e.out)-1]
}

// pinnedPlan is how a pinned node behaves: it waits for nothing but its connections, does nothing, and produces what it is pinned with.
func pinnedPlan(kind Kind, n *Node) Plan {
	of, _ := kind.Plan(n)
	return Plan{KeyAliases: of.KeyAliases, Effect: Pure, TimeoutMS: cmp.Or(of.TimeoutMS, 60_000), OnError: OnErrorFail,
		OnUnknown: OnUnknownRetry, Unscoped: true}
}
