package workflow

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"tandem/payload"
)

// fakeKinds is a small catalogue: enough kinds to have every part that graphs know, and no behaviour.
type fakeKinds struct {
	kinds map[string]Kind
	names []string
}

func newKinds() *fakeKinds {
	k := &fakeKinds{kinds: make(map[string]Kind)}
	for _, name := range []string{
		"TRIGGER.MANUAL", "TRIGGER.CRON", "AI_AGENT.LLM", "ACTION.HTTP_REQUEST", "ACTION.RUN_CODE", "TOOL.MCP_TOOL",
		"MEMORY.KEY_VALUE_STORE", "CALL.EMPTY",
	} {
		k.add(name, nil, []string{"result"}, map[string]string{"success": "result"})
	}
	loop := &ScopeKeys{Entry: "iteration", Exits: []string{"completed"}}
	for _, name := range []string{"FLOW.LOOP", "FLOW.FOR_EACH", "FLOW.WHILE"} {
		k.add(name, loop, []string{"iteration", "completed"}, map[string]string{"result": "completed"})
	}
	k.add("FLOW.TIMEOUT", &ScopeKeys{Entry: "body", Exits: []string{"result", "timeout"}}, []string{"body", "result", "timeout"}, nil)
	k.add("FLOW.SPLIT", &ScopeKeys{Entry: "branch", Exits: []string{"result"}}, []string{"branch", "result"}, nil)
	k.add("FLOW.IF", nil, []string{"true", "false"}, nil)
	k.add("FLOW.SWITCH", nil, nil, nil)
	k.add("FLOW.MERGE", nil, []string{"result"}, nil)
	return k
}

func (k *fakeKinds) add(name string, scope *ScopeKeys, keys []string, aliases map[string]string) {
	k.kinds[name] = Kind{Name: name, Scope: scope, Plan: func(n *Node) (Plan, []Problem) {
		plan := Plan{Keys: keys, KeyAliases: aliases, Effect: Pure}
		var cfg struct {
			OnError   OnError `json:"on_error"`
			Enabled   *bool   `json:"enabled"`
			First     bool    `json:"first"`
			Mode      string  `json:"split_mode"`
			Condition string  `json:"condition_expression"`
			Bad       bool    `json:"bad"`
		}
		var problems []Problem
		if len(n.Configurations) > 0 {
			if err := json.Unmarshal(n.Configurations, &cfg); err != nil {
				problems = append(problems, Problem{Code: ProblemConfig, Path: "configurations", Message: err.Error()})
			}
		}
		if cfg.Bad {
			problems = append(problems, Problem{Code: ProblemConfig, Path: "configurations.bad", Message: "set it to false"})
		}
		plan.OnError = cfg.OnError
		plan.Disabled = cfg.Enabled != nil && !*cfg.Enabled
		plan.Join.First = cfg.First
		plan.Unscoped = cfg.Mode == "predicate"
		if plan.Unscoped {
			plan.Keys = []string{"left", "right", "unmatched", "result"}
		}
		if cfg.Condition != "" {
			plan.Expressions = []Expression{{Path: "configurations.condition_expression", Source: cfg.Condition}}
		}
		return plan, problems
	}}
	k.names = append(k.names, name)
	slices.Sort(k.names)
}

func (k *fakeKinds) Kind(name string) (Kind, bool) {
	kind, ok := k.kinds[name]
	return kind, ok
}

func (k *fakeKinds) Names() []string { return k.names }

func (k *fakeKinds) Alias(typ, subtype string) (string, bool) {
	aliases := map[string]string{
		"START.": "TRIGGER.MANUAL", "END.": "CALL.EMPTY", "LLM.": "AI_AGENT.LLM", "CHOICE.": "FLOW.SWITCH", "LOOP.": "FLOW.LOOP",
	}
	name, ok := aliases[typ+"."+subtype]
	return name, ok
}

// graphOf builds a definition from one line per connection, "a -key-> b", with nodes "id: KIND {configurations}" before
// them; a node that is only named by a connection is CALL.EMPTY.
func graphOf(lines ...string) *Definition {
	def := &Definition{Metadata: Metadata{Name: "test", Version: "1.0"}}
	seen := make(map[string]bool)
	node := func(id, kind, configurations string) {
		if seen[id] {
			return
		}
		seen[id] = true
		typ, subtype, _ := strings.Cut(kind, ".")
		def.Nodes = append(def.Nodes, Node{
			ID: id, Name: id, Description: "a node", Type: typ, Subtype: subtype, Configurations: json.RawMessage(configurations),
			InputParams: json.RawMessage("{}"), OutputParams: json.RawMessage("{}"),
		})
	}
	for _, line := range lines {
		line = strings.TrimSpace(line)
		if from, rest, ok := strings.Cut(line, " -"); ok && strings.Contains(line, "> ") {
			key, to, _ := strings.Cut(rest, "> ")
			key = strings.TrimSuffix(key, "-")
			if key == "" {
				key = DefaultKey
			}
			node(from, "CALL.EMPTY", "{}")
			node(to, "CALL.EMPTY", "{}")
			def.Connections = append(def.Connections, Connection{
				ID: from + "-" + key + "-" + to, FromNode: from, ToNode: to, OutputKey: key,
			})
			continue
		}
		id, kind, _ := strings.Cut(line, ": ")
		kind, configurations, found := strings.Cut(kind, " ")
		if !found {
			configurations = "{}"
		}
		node(id, kind, configurations)
	}
	return def
}

func itoa(i int) string { return strconv.Itoa(i) }

// fakeReferences finds {{head.outputs.rest}}, {{head.rest}} and {{head}} in the strings of an object.
func fakeReferences(raw json.RawMessage) []Reference {
	v, ok := readObject(raw)
	if !ok {
		return nil
	}
	var found []Reference
	var visit func(path string, v *value)
	visit = func(path string, v *value) {
		if v.kind == kindString {
			rest := v.text
			for {
				_, after, ok := strings.Cut(rest, "{{")
				if !ok {
					break
				}
				inside, tail, _ := strings.Cut(after, "}}")
				head, more, _ := strings.Cut(inside, ".")
				certain := strings.HasPrefix(more, "outputs.")
				found = append(found, Reference{Path: path, Raw: "{{" + inside + "}}", Head: head, Rest: more, Certain: certain})
				rest = tail
			}
		}
		for i := range v.items() {
			if v.kind == kindObject {
				visit(payload.JoinKey(path, v.inside.names[i].text), &v.items()[i])
			} else {
				visit(payload.JoinIndex(path, i), &v.items()[i])
			}
		}
	}
	visit("", &v)
	return found
}

var errBad = errors.New("bad source")

func fakeExpression(source string) error {
	if strings.Contains(source, "(((") {
		return errBad
	}
	return nil
}

func fakeConversion(source string) error {
	if strings.Contains(source, "SyntaxError") {
		return errBad
	}
	return nil
}
