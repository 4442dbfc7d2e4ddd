package workflow

import (
	"encoding/json"
	"math"
	"strings"
	"unicode"

	"tandem/payload"
	"tandem/text"
)

// Rules are what validation asks of others. Kinds must be set; a check whose function is nil is left out.
type Rules struct {
	Kinds Kinds
	// References finds the placeholders in a node's raw object.
	References func(raw json.RawMessage) []Reference
	// Expression checks an expression of the expression language.
	Expression func(source string) error
	// Conversion checks a conversion function in any other language; see [LanguageOf].
	Conversion func(source string) error
}

// Reference is a placeholder, as far as its target can be told from its syntax.
type Reference struct {
	// Path is where it stands inside the raw object: "headers.token", "list[0]".
	Path string
	// Raw is the placeholder as written, brackets included.
	Raw string
	// Head is the first step of what it names, Rest the steps after that.
	Head, Rest string
	// Certain says that the head can only be a node (the forms with output or outputs); otherwise it may be any name in
	// the data.
	Certain bool
	// Problem is set for brackets that look like a placeholder and are none; the rest is then empty.
	Problem string
}

// The ranges of settings.
const (
	maxTimeoutSeconds        = 10 * 366 * 24 * 3600
	maxConcurrentActivations = 10_000
)

// Validate reports every problem of a definition, ordered by place. It costs about linear time; where a check would
// compare nodes pairwise it follows only so many connections in all (see order) and is silent about the rest.
func Validate(def *Definition, rules Rules) []Problem {
	l := linkUp(def, rules.Kinds)
	b, shape := checkShape(l)
	for _, p := range shape {
		l.report(p)
	}
	l.checkSettings()
	l.checkNames()
	l.checkTests()
	l.checkSources(rules)
	l.checkReachable(b)
	l.checkHandling(b)
	var o *order
	if !HasErrors(shape) {
		o = newOrder(b)
		l.checkOverwrites(o)
	}
	if rules.References != nil {
		l.checkReferences(rules, o)
	}
	return l.ordered()
}

func (l *linked) checkSettings() {
	s := &l.def.Metadata.Settings
	const at = "metadata.settings."
	if t := s.TimeoutSeconds; t < 0 || t > maxTimeoutSeconds || math.IsNaN(t) {
		l.report(errorAt(ProblemSettings, at+"timeout_seconds",
			"the timeout must be from 0 (none) to %d seconds, not %v", maxTimeoutSeconds, t))
	}
	if n := s.MaxConcurrentActivations; n < 0 || n > maxConcurrentActivations {
		l.report(errorAt(ProblemSettings, at+"max_concurrent_activations",
			"max_concurrent_activations must be from 1 to %d, or absent for the default, not %d", maxConcurrentActivations, n))
	}
	switch s.OnUnresolved {
	case "", "error", "keep", "null":
	default:
		l.report(errorAt(ProblemSettings, at+"on_unresolved", "on_unresolved cannot be %q%s", s.OnUnresolved,
			suggestion(s.OnUnresolved, []string{"error", "keep", "null"}, text.Of("use one of: %s", "error, keep, null"))))
	}
	if s.Language != "" && text.CheckLanguage(s.Language) != nil {
		known := text.Languages()
		l.report(errorAt(ProblemSettings, at+"language", "language cannot be %q%s", s.Language,
			suggestion(s.Language, known, text.Of("use one of: %s", strings.Join(known, ", ")))))
	}
}

// checkNames sees that a name means one node: names and ids are both references.
func (l *linked) checkNames() {
	named := make(map[string]int, len(l.def.Nodes))
	for i := range l.def.Nodes {
		node := &l.def.Nodes[i]
		label := node.Name
		if label == "" {
			label = node.ID
		}
		if label == "" {
			continue
		}
		if strings.IndexFunc(label, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) >= 0 {
			l.report(errorAt(ProblemInvalidName, nodePath(i)+".name",
				"the name %q has a space or control character, so placeholders could not name the node; write %q", label,
				strings.Join(strings.FieldsFunc(label, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), "_")))
		}
		if first, taken := named[label]; taken {
			if node.Name != "" && !(node.Name == node.ID && l.byID[node.ID] != i) {
				l.report(errorAt(ProblemDuplicateName, nodePath(i)+".name",
					"the name %q is already that of %q; names are references, give the node another one", label,
					l.def.Nodes[first].ID))
			}
		} else {
			named[label] = i
			if other, ok := l.byID[label]; ok && other != i && label != node.ID {
				l.report(errorAt(ProblemDuplicateName, nodePath(i)+".name",
					"the name %q is the id of another node; names and ids are both references, give the node another one", label))
			}
		}
		if node.Description == "" {
			l.report(warningAt(ProblemNoDescription, nodePath(i)+".description",
				"%q has no description; say in one sentence what it does", node.ID))
		}
	}
}

// checkSources sees that conditions and conversion functions parse.
func (l *linked) checkSources(rules Rules) {
	if rules.Expression != nil {
		for i := range l.plans {
			for _, e := range l.plans[i].Expressions {
				if err := rules.Expression(e.Source); err != nil {
					l.report(errorAt(ProblemExpression, nodePath(i)+"."+e.Path, "the expression %s does not parse: %v",
						shortened(e.Source), err))
				}
			}
		}
	}
	for c := range l.def.Connections {
		source := l.def.Connections[c].ConversionFunction
		if strings.TrimSpace(source) == "" {
			continue
		}
		language := LanguageOf(source)
		check := rules.Conversion
		if language == LanguageExpression {
			check = rules.Expression
		}
		if check == nil {
			continue
		}
		if err := check(source); err != nil {
			l.report(errorAt(ProblemConversion, connectionPath(c)+".conversion_function",
				"the conversion function, read as %s, does not parse: %v", language, err))
		}
	}
}

// checkReachable warns of nodes to which no trigger leads. Without a trigger an execution starts wherever nothing leads
// to, so nothing can be out of reach.
func (l *linked) checkReachable(b *bodies) {
	named := make([]bool, len(l.def.Nodes))
	for _, id := range l.def.Triggers {
		if i, ok := l.byID[id]; ok {
			named[i] = true
		}
	}
	reached := make([]bool, len(l.def.Nodes))
	var stack []int
	for i := range l.def.Nodes {
		if l.def.Nodes[i].Type == TypeTrigger && (len(l.def.Triggers) == 0 || named[i]) {
			reached[i] = true
			stack = append(stack, i)
		}
	}
	if len(stack) == 0 {
		return
	}
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if l.severed[v] {
			return // the connection that names no node may be the one that is missing
		}
		for _, i := range b.outLinks.Of(int32(v)) {
			if to := l.links[i].to; !reached[to] {
				reached[to] = true
				stack = append(stack, to)
			}
		}
	}
	for i := range l.def.Nodes {
		if !reached[i] && !l.attached[i] {
			remedy := text.Of("connect it, or remove it")
			switch l.def.Nodes[i].Type {
			case TypeTrigger:
				remedy = text.Of("name it in triggers, or remove it")
			case TypeTool, TypeMemory:
				remedy = text.Of("connect it, name it in the attached_nodes of an AI_AGENT node, or remove it")
			}
			l.report(warningAt(ProblemUnreachable, nodePath(i), "no trigger leads to %q, so it never runs; %s",
				l.def.Nodes[i].ID, remedy))
		}
	}
}

// checkOverwrites warns of nodes that write the same bare name in an order nobody knows. Only names in output_params are
// known before an execution. If every two neighbours in some order of execution are ordered then all are, so comparing
// neighbours finds every name with a race.
func (l *linked) checkOverwrites(o *order) {
	writers := make(map[string][]int)
	var names []string
	for _, i := range o.sequence {
		raw := l.def.Nodes[i].OutputParams
		if len(raw) == 0 || string(raw) == "{}" || l.attached[i] {
			continue
		}
		v, ok := readObject(raw)
		if !ok {
			continue
		}
		for _, n := range v.inside.names {
			if writers[n.text] == nil {
				names = append(names, n.text)
			}
			writers[n.text] = append(writers[n.text], i)
		}
	}
	for _, bare := range names {
		nodes := writers[bare]
		for k := 1; k < len(nodes); k++ {
			first, second := nodes[k-1], nodes[k]
			if fixed, sure := o.ordered(first, second); sure && !fixed {
				first, second = min(first, second), max(first, second)
				l.report(warningAt(ProblemAmbiguousName, payload.JoinKey(nodePath(second)+".output_params", bare),
					"%q and %q both write %q and nothing orders them, so {{%s}} may be either; rename one, or read {{%s.%s}} or {{%s.%s}}",
					l.def.Nodes[first].ID, l.def.Nodes[second].ID, bare, bare, l.def.Nodes[first].ID, bare, l.def.Nodes[second].ID, bare))
			}
		}
	}
}

// checkReferences warns of placeholders that name a node which does not exist or does not run before.
func (l *linked) checkReferences(rules Rules, o *order) {
	named := make(map[string]int, 2*len(l.def.Nodes))
	candidates := make([]string, 0, len(l.def.Nodes))
	for i := len(l.def.Nodes) - 1; i >= 0; i-- {
		named[l.def.Nodes[i].Name] = i
	}
	for i := range l.def.Nodes {
		candidates = append(candidates, l.def.Nodes[i].ID)
		if l.def.Nodes[i].Name != l.def.Nodes[i].ID {
			candidates = append(candidates, l.def.Nodes[i].Name)
		}
	}
	for i := range l.def.Nodes {
		if id := l.def.Nodes[i].ID; l.byID[id] == i {
			named[id] = i
		}
	}
	delete(named, "")
	for i := range l.def.Nodes {
		node := &l.def.Nodes[i]
		var conditions map[string]bool
		for _, part := range [...]struct {
			field string
			raw   json.RawMessage
		}{{"configurations", node.Configurations}, {"input_params", node.InputParams}} {
			if len(part.raw) == 0 || string(part.raw) == "{}" {
				continue
			}
			for _, ref := range rules.References(part.raw) {
				path := payload.JoinPath(nodePath(i)+"."+part.field, ref.Path)
				if part.field == "configurations" && shielded(l.plans[i].Shielded, ref.Path) {
					continue
				}
				if ref.Problem != "" {
					// The expression language reads the placeholders of conditions itself, and reports them.
					if conditions == nil {
						conditions = l.conditions(i)
					}
					if !conditions[part.field+"."+ref.Path] {
						l.report(warningAt(ProblemInvalidPlaceholder, path, "%s", ref.Problem))
					}
					continue
				}
				target, ok := named[ref.Head]
				if !ok && ref.Certain {
					l.report(warningAt(ProblemUnknownReference, path, "%s names the node %q, which does not exist%s",
						shortened(ref.Raw), ref.Head, l.suggest(ref.Head, candidates, text.Of("name a node that is there, or add this one"))))
				}
				if !ok || o == nil || !ref.Certain && ref.Rest == "" {
					continue
				}
				if before, sure := o.before(target, i); sure && !before {
					l.report(warningAt(ProblemNotBefore, path,
						"%s names %q, which does not run before %q; connect them, or read something that is there by then",
						shortened(ref.Raw), l.def.Nodes[target].ID, node.ID))
				}
			}
		}
	}
}

// conditions are the paths of a node's expressions.
func (l *linked) conditions(node int) map[string]bool {
	paths := make(map[string]bool, len(l.plans[node].Expressions))
	for _, e := range l.plans[node].Expressions {
		paths[e.Path] = true
	}
	return paths
}

// shielded tells whether a path inside the configurations lies in one of those that are never searched.
func shielded(paths []string, path string) bool {
	for _, s := range paths {
		s = strings.TrimPrefix(s, "configurations.")
		if rest, ok := strings.CutPrefix(path, s); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}
