package workflow

import (
	"encoding/json"
	"slices"
	"strings"

	"tandem/fault"
	"tandem/payload"
	"tandem/text"
)

// linked is a definition whose names were looked up: nodes by index, their kinds and plans, connections with both ends.
// Compilation and validation share it. What could not be looked up is in problems and left out of links.
type linked struct {
	def      *Definition
	byID     map[string]int
	known    []bool       // the node's kind exists
	plans    []Plan       // zero where not known
	scopes   []*ScopeKeys // nil for a node that runs no body
	attached []bool
	uses     [][]int // the nodes attached to a node
	severed  []bool  // a connection of the node leads to a node that does not exist
	links    []link
	problemList
	// ids are kept for suggestions, in definition order; hints counts how many suggestions may still be made, since a file in
	// which everything is misspelt must not cost a search for each.
	ids   []string
	hints int
}

// link is a connection both ends of which exist.
type link struct {
	connection int
	from, to   int
	key        string
	entry      bool // leaves a scope node by its entry key
}

func linkUp(def *Definition, kinds Kinds) *linked {
	n := len(def.Nodes)
	l := &linked{
		def:      def,
		byID:     make(map[string]int, n),
		known:    make([]bool, n),
		plans:    make([]Plan, n),
		scopes:   make([]*ScopeKeys, n),
		attached: make([]bool, n),
		uses:     make([][]int, n),
		severed:  make([]bool, n),
		ids:      make([]string, 0, n),
		hints:    200,
	}
	if n == 0 {
		l.report(errorAt(ProblemNoNodes, "nodes", "the workflow has no node; add at least one"))
	}
	for i := range def.Nodes {
		l.linkNode(i, kinds)
	}
	l.linkAttached()
	l.linkConnections()
	l.checkTriggers()
	return l
}

func (l *linked) linkNode(i int, kinds Kinds) {
	node := &l.def.Nodes[i]
	first, taken := l.byID[node.ID]
	switch {
	case node.ID == "":
		l.report(errorAt(ProblemEmptyID, nodePath(i)+".id", "the node has no id; give it a unique one"))
	case taken:
		l.report(errorAt(ProblemDuplicateID, nodePath(i)+".id", "the id %q is already that of %s; give the node another one",
			node.ID, nodePath(first)))
	default:
		l.byID[node.ID] = i
		l.ids = append(l.ids, node.ID)
	}
	for _, part := range [...]struct {
		field string
		raw   json.RawMessage
	}{{"configurations", node.Configurations}, {"input_params", node.InputParams}, {"output_params", node.OutputParams}} {
		if len(part.raw) > 0 && string(part.raw) != "{}" {
			if !isObject(part.raw) {
				l.report(errorAt(ProblemWrongType, nodePath(i)+"."+part.field,
					"a JSON object without repeated keys was expected; write {} or leave the field out"))
				return
			}
		}
	}
	kind, ok := kinds.Kind(node.Kind())
	if !ok {
		l.report(l.unknownKind(i, node, kinds))
		return
	}
	l.known[i] = true
	if len(node.Pinned) > 0 {
		l.plans[i] = pinnedPlan(kind, node)
		return
	}
	plan, problems := kind.Plan(node)
	l.plans[i] = plan
	for _, p := range problems {
		if p.Path == "" {
			p.Path = nodePath(i)
		} else {
			p.Path = nodePath(i) + "." + p.Path
		}
		if p.Severity == "" {
			p.Severity = SeverityError
		}
		l.report(p)
	}
	if kind.Scope != nil && !plan.Unscoped {
		l.scopes[i] = kind.Scope
	}
}

// unknownKind blames the type when no kind has it, else the subtype.
func (l *linked) unknownKind(i int, node *Node, kinds Kinds) Problem {
	names := kinds.Names()
	var types, subtypes []string
	for _, name := range names {
		typ, subtype, _ := strings.Cut(name, ".")
		if len(types) == 0 || types[len(types)-1] != typ {
			types = append(types, typ)
		}
		if typ == node.Type {
			subtypes = append(subtypes, subtype)
		}
	}
	if len(subtypes) == 0 {
		if node.Type == "" {
			return errorAt(ProblemUnknownKind, nodePath(i)+".type", "the node has no type; use one of: %s", listed(types))
		}
		return errorAt(ProblemUnknownKind, nodePath(i)+".type", "no type is called %q%s", node.Type,
			l.suggest(node.Type, types, text.Of("use one of: %s", listed(types))))
	}
	if node.Subtype == "" {
		return errorAt(ProblemUnknownKind, nodePath(i)+".subtype", "the node has no subtype; of the type %s there is: %s", node.Type,
			listed(subtypes))
	}
	return errorAt(ProblemUnknownKind, nodePath(i)+".subtype", "%s has no subtype %q%s", node.Type, node.Subtype,
		l.suggest(node.Subtype, subtypes, text.Of("use one of: %s", listed(subtypes))))
}

func (l *linked) linkAttached() {
	for i := range l.def.Nodes {
		node := &l.def.Nodes[i]
		if len(node.AttachedNodes) == 0 {
			continue
		}
		if node.Type != TypeAgent {
			l.report(errorAt(ProblemNotAgent, nodePath(i)+".attached_nodes",
				"only an AI_AGENT node can have attached nodes, %q is %s; connect them with connections instead", node.ID,
				node.Kind()))
			continue
		}
		for j, id := range node.AttachedNodes {
			path := payload.JoinIndex(nodePath(i)+".attached_nodes", j)
			other, ok := l.byID[id]
			if !ok {
				l.report(errorAt(ProblemUnknownNode, path, "no node has the id %q%s", id, l.suggestID(id)))
				continue
			}
			if t := l.def.Nodes[other].Type; t != TypeTool && t != TypeMemory {
				l.report(errorAt(ProblemAttachedKind, path,
					"%q is %s; only TOOL and MEMORY nodes can be attached, connect it with a connection instead", id,
					l.def.Nodes[other].Kind()))
				continue
			}
			if slices.Contains(l.uses[i], other) {
				l.report(errorAt(ProblemDuplicateID, path, "%q is attached twice; remove one of them", id))
				continue
			}
			l.uses[i] = append(l.uses[i], other)
			l.attached[other] = true
		}
	}
}

func (l *linked) linkConnections() {
	l.links = make([]link, 0, len(l.def.Connections))
	seen := make(map[string]int, len(l.def.Connections))
	for c := range l.def.Connections {
		conn := &l.def.Connections[c]
		if first, taken := seen[conn.ID]; conn.ID == "" {
			l.report(errorAt(ProblemEmptyID, connectionPath(c)+".id", "the connection has no id; give it a unique one"))
		} else if taken {
			l.report(errorAt(ProblemDuplicateID, connectionPath(c)+".id",
				"the id %q is already that of %s; give the connection another one", conn.ID, connectionPath(first)))
		} else {
			seen[conn.ID] = c
		}
		from, fromOK := l.end(conn.FromNode, c, "from_node")
		to, toOK := l.end(conn.ToNode, c, "to_node")
		if !fromOK || !toOK {
			if fromOK {
				l.severed[from] = true
			}
			continue
		}
		if l.attached[from] || l.attached[to] {
			id, field := conn.ToNode, ".to_node"
			if l.attached[from] {
				id, field = conn.FromNode, ".from_node"
			}
			l.report(errorAt(ProblemAttachedEdge, connectionPath(c)+field,
				"%q is attached to an AI_AGENT node and takes no part in the flow; remove the connection, or remove the node from attached_nodes", id))
			continue
		}
		key := conn.OutputKey
		if key == "" {
			key = DefaultKey
		}
		if l.known[from] {
			key = l.checkKey(from, key, c)
		}
		scope := l.scopes[from]
		l.links = append(l.links, link{c, from, to, key, scope != nil && key == scope.Entry})
	}
}

// end looks up one end of a connection.
func (l *linked) end(id string, connection int, field string) (int, bool) {
	i, ok := l.byID[id]
	switch {
	case ok:
	case id == "":
		l.report(errorAt(ProblemUnknownNode, connectionPath(connection)+"."+field, "the connection names no node here; give the id of one"))
	default:
		l.report(errorAt(ProblemUnknownNode, connectionPath(connection)+"."+field, "no node has the id %q%s", id, l.suggestID(id)))
	}
	return i, ok
}

// suggestID offers the id of the node that has the name, else the nearest id.
func (l *linked) suggestID(id string) text.Text {
	otherwise := text.Of("add the node, or give the id of one that is there")
	if l.hints == 0 {
		return text.Of("; %s", otherwise)
	}
	for i := range min(len(l.def.Nodes), 4096) {
		if node := &l.def.Nodes[i]; node.Name == id && node.ID != "" {
			return text.Of("; use the id of the node with this name, %q", node.ID)
		}
	}
	return l.suggest(id, l.ids, otherwise)
}

// suggest is suggestion, as long as more may be made.
func (l *linked) suggest(name string, candidates []string, otherwise text.Text) text.Text {
	if l.hints == 0 {
		return text.Of("; %s", otherwise)
	}
	l.hints--
	return suggestion(name, candidates, otherwise)
}

// suggestKey is the tail of a message about a key that a node does not produce: the nearest one, if more suggestions may be made, and all
// of them.
func (l *linked) suggestKey(key string, keys []string) text.Text {
	if len(keys) == 0 {
		return text.Of("; it produces none, so remove the connection")
	}
	near := ""
	if l.hints > 0 {
		l.hints--
		near = fault.Nearest(key, keys)
	}
	if near == "" {
		return text.Of("; it produces %s", listed(keys))
	}
	return text.Of("; did you mean %q? It produces %s", near, listed(keys))
}

// checkKey brings an output key to its proper spelling and reports one that the node cannot produce.
func (l *linked) checkKey(from int, key string, connection int) string {
	plan, scope := &l.plans[from], l.scopes[from]
	has := func(k string) bool {
		return plan.Keys == nil || slices.Contains(plan.Keys, k) ||
			scope != nil && (k == scope.Entry || slices.Contains(scope.Exits, k))
	}
	key = plan.keyOf(key)
	if key == ErrorKey && !slices.Contains(plan.Keys, key) {
		if plan.OnError != OnErrorContinue && !(plan.Asks != "" && plan.OnError == OnErrorDefault) {
			l.report(errorAt(ProblemUnknownKey, connectionPath(connection)+".output_key",
				"%q produces the key \"error\" only with on_error: continue; set it in the node's configurations",
				l.def.Nodes[from].ID))
		}
		return key
	}
	if !has(key) {
		keys := slices.Clone(plan.Keys)
		if scope != nil {
			for _, k := range append([]string{scope.Entry}, scope.Exits...) {
				if !slices.Contains(keys, k) {
					keys = append(keys, k)
				}
			}
		}
		l.report(errorAt(ProblemUnknownKey, connectionPath(connection)+".output_key", "%q (%s) does not produce the key %q%s",
			l.def.Nodes[from].ID, l.def.Nodes[from].Kind(), key, l.suggestKey(key, keys)))
		return key
	}
	main, one := plan.MainKey()
	if plan.Disabled && !plan.SkipDisabled && one && key != main && (scope == nil || key != scope.Entry) {
		l.report(warningAt(ProblemDeadKey, connectionPath(connection)+".output_key",
			"%q is switched off, so it produces only %q and what is connected to %q is skipped; enable it, or connect %q", l.def.Nodes[from].ID, main, key, main))
	}
	return key
}

// keyOf is what a key of a connection is called by the node that produces it.
func (p *Plan) keyOf(key string) string {
	if key == "main" && p.KeyAliases[key] == "" && !slices.Contains(p.Keys, key) {
		key = DefaultKey
	}
	if alias, ok := p.KeyAliases[key]; ok {
		return alias
	}
	return key
}

func (l *linked) checkTriggers() {
	for i, id := range l.def.Triggers {
		path := payload.JoinIndex("triggers", i)
		n, ok := l.byID[id]
		if !ok {
			l.report(errorAt(ProblemUnknownNode, path, "no node has the id %q%s", id, l.suggestID(id)))
		} else if l.def.Nodes[n].Type != TypeTrigger {
			l.report(errorAt(ProblemNotTrigger, path,
				"%q is %s, which cannot start a workflow; name a TRIGGER node or remove it from triggers", id,
				l.def.Nodes[n].Kind()))
		}
	}
}

// listed is a list of names for a message, shortened when it is long.
func listed(names []string) string {
	const most = 24
	quoted := make([]string, 0, min(len(names), most+1))
	for i, name := range names {
		if i == most {
			quoted = append(quoted, "…")
			break
		}
		quoted = append(quoted, name)
	}
	if len(quoted) == 0 {
		return "none"
	}
	return strings.Join(quoted, ", ")
}
