package dify

import (
	"slices"
	"strings"

	"tandem/importer"
	"tandem/text"
)

// assign sets variables of the conversation, one after another.
func (f *flow) assign(n *node) {
	items := assignments(n)
	for i, item := range items {
		name := conversed(item)
		if name == "" || f.vars[name] == "" {
			n.line.Approximate(text.Of("a variable that is not one of the conversation is not set"))
			continue
		}
		value := f.value(n, item.First("input_variable_selector"))
		if item.At("input_type").Text() == "variable" {
			value = f.value(n, item.At("value"))
		} else if item.At("input_type").Text() == "constant" {
			value = item.At("value").Any()
		}
		if mode := modeOf(item); combines(mode) {
			again := slices.ContainsFunc(items[i+1:], func(later importer.Value) bool { return conversed(later) == name })
			value = f.combine(n, mode, name, value, again)
		}
		set := f.next(n, "", "MEMORY.KEY_VALUE_STORE", "Sets the variable "+name+" of the conversation.")
		f.write(n, set, item, name, value)
	}
	if n.main == nil {
		e := f.addNode(n, "CALL.EMPTY")
		e.Config["pass_through"] = true
	}
}

// assignments are what an assigner sets; that of an older file sets one variable and is itself what says so.
func assignments(n *node) []importer.Value {
	if items := n.data.At("items").List(); len(items) > 0 {
		return items
	}
	return []importer.Value{n.data}
}

// conversed is the variable of the conversation that is set; empty: it is another one.
func conversed(item importer.Value) string {
	target := item.First("variable_selector", "assigned_variable_selector").Texts()
	if len(target) < 2 || target[0] != "conversation" {
		return ""
	}
	return target[1]
}

// modeOf says how a value is written.
func modeOf(item importer.Value) string { return item.First("operation", "write_mode").Text() }

// next adds a node behind those that were made of a node already. Without an id it gets one.
func (f *flow) next(n *node, id, kind, words string) *importer.Node {
	if n.main == nil {
		m := f.addNode(n, kind)
		n.last = m.ID
		return m
	}
	if id == "" {
		id = f.ID(n.id + "_next")
	}
	m := f.Add(n.line, id, kind, words)
	f.Connect(n.last, "", m.ID, "{}")
	n.last = m.ID
	return m
}

// combines says that a mode of writing puts the value together with that which the variable has.
func combines(mode string) bool {
	return slices.Contains([]string{"append", "extend", "+=", "-=", "*=", "/="}, mode)
}

// combine adds the nodes that read a variable and put a value together with it, and returns what they make. The variable is read here and
// not at the beginning: an iteration before, or an assignment before, may have set it. Again says that the assigner sets it once more.
func (f *flow) combine(n *node, mode, name string, value any, again bool) (joined any) {
	code := "  return {value: (input.old ?? 0) " + strings.TrimSuffix(mode, "=") + " input.value};\n"
	switch mode {
	case "append":
		code = "  return {value: [...(input.old ?? []), input.value]};\n"
	case "extend":
		code = "  return {value: [...(input.old ?? []), ...(input.value ?? [])]};\n"
	case "+=":
		code = "  return {value: (input.old ?? (typeof input.value === \"string\" ? \"\" : 0)) + input.value};\n"
	}
	get := f.next(n, "", "MEMORY.KEY_VALUE_STORE", "Reads the variable "+name+" of the conversation.")
	get.Config["operation"], get.Config["session_id"], get.Input["key"] = "get", f.session(), name
	id := ""
	if !again {
		id = f.combined(n, name)
	}
	c := f.next(n, id, "ACTION.RUN_CODE", "Puts the value together with that of the variable "+name+".")
	c.Config["language"], c.Config["code"] = "javascript", "function main(input) {\n"+code+"}\n"
	c.Input["old"], c.Input["value"] = "{{"+get.ID+".outputs.value}}", value
	if f.atOnce(n, name) {
		n.line.Approximate(text.Of("the variable %q is read, put together and set in three steps: where others do that at the same time, one of the values may be lost", name))
	}
	return "{{" + c.ID + ".outputs.result.value}}"
}

// combined is the id of the node that puts the last value together which an assigner gives a variable: nodes behind it read the variable
// there.
func (f *flow) combined(n *node, name string) string {
	if n.made[name] == "" {
		n.made[name] = f.ID(n.id + "_" + name + "_value")
	}
	return n.made[name]
}

// maxOrdered is how many assigners of a variable are compared with each other; of more it is said that they may run at the same time.
const maxOrdered = 50

// atOnce says that a variable may be put together with something else while an assigner does so: in another iteration, or on another
// branch.
func (f *flow) atOnce(n *node, name string) bool {
	for p, depth := n.parent, 0; p != nil && depth <= len(f.nodes); p, depth = p.parent, depth+1 {
		if p.typ == "iteration" && p.data.At("is_parallel").Bool() {
			return true
		}
	}
	var others []*node
	for _, other := range f.nodes {
		if other != n && other.typ == "assigner" && slices.ContainsFunc(assignments(other),
			func(item importer.Value) bool { return conversed(item) == name }) {
			others = append(others, other)
		}
	}
	if len(others) > maxOrdered {
		return true
	}
	return slices.ContainsFunc(others, func(other *node) bool { return !f.precedes(n, other) && !f.precedes(other, n) })
}

// precedes says that a way leads from a node, or from a body that it is in, to another one.
func (f *flow) precedes(n, to *node) bool {
	seen, stack := map[*node]bool{to: true}, []*node{to}
	around := map[*node]bool{}
	for p := to.parent; p != nil && !around[p]; p = p.parent {
		around[p] = true
	}
	for len(stack) > 0 {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		ways := []*node{at.parent}
		for _, key := range f.before[at.key] {
			ways = append(ways, f.byID[key])
		}
		for _, way := range ways {
			if way != nil && !seen[way] {
				seen[way] = true
				stack = append(stack, way)
			}
		}
	}
	for checked := 0; n != nil && checked <= len(f.nodes); n, checked = n.parent, checked+1 {
		if seen[n] && !around[n] {
			return true
		}
	}
	return false
}
