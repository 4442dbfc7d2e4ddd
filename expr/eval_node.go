package expr

import (
	"slices"
	"strings"

	"tandem/fault"
)

// node is a part of the tree. eval never changes the node: programs are shared.
type node interface {
	eval(r *run) (any, error)
	children() []node
}

type (
	literal  struct{ v any }
	local    struct{ slot int } // the parameter of a lambda
	rootName struct {
		name     string
		slot, at int
	}
	member struct {
		x    node
		name string
		at   int
	}
	index struct {
		x, i node
		at   int
	}
	negate    struct{ x node }
	minusNode struct {
		x  node
		at int
	}
	binary struct {
		op   string
		x, y node
		at   int
	}
	logic struct {
		op     string
		x, y   node
		parens bool // it stood in parentheses
	}
	choose   struct{ test, yes, no node }
	listNode struct {
		items []node
		at    int
	}
	objectNode struct {
		keys   []string
		values []node
		at     int
	}
	template struct {
		parts []node
		at    int
	}
	call struct {
		f       *function
		args    []node
		lambda  node // nil if there is none
		slot    int  // of the lambda's parameter
		pattern *pattern
		at      int
	}
)

func (*literal) children() []node      { return nil }
func (*local) children() []node        { return nil }
func (*rootName) children() []node     { return nil }
func (n *member) children() []node     { return []node{n.x} }
func (n *index) children() []node      { return []node{n.x, n.i} }
func (n *negate) children() []node     { return []node{n.x} }
func (n *minusNode) children() []node  { return []node{n.x} }
func (n *binary) children() []node     { return []node{n.x, n.y} }
func (n *logic) children() []node      { return []node{n.x, n.y} }
func (n *choose) children() []node     { return []node{n.test, n.yes, n.no} }
func (n *listNode) children() []node   { return n.items }
func (n *objectNode) children() []node { return n.values }
func (n *template) children() []node   { return n.parts }
func (n *call) children() []node {
	if n.lambda == nil {
		return n.args
	}
	return append(n.args[:len(n.args):len(n.args)], n.lambda)
}

func (n *literal) eval(r *run) (any, error) { return n.v, r.step(1) }

func (n *local) eval(r *run) (any, error) { return r.locals[n.slot], r.step(1) }

func (n *rootName) eval(r *run) (any, error) {
	if err := r.step(1); err != nil {
		return nil, err
	}
	v := r.roots[n.slot]
	if _, first := v.(unread); !first {
		return v, nil
	}
	r.at = n.at
	v, ok := r.env.Lookup(n.name)
	if !ok {
		return nil, r.unknown(n.name)
	}
	v, err := r.norm(v)
	if err != nil {
		return nil, err
	}
	r.roots[n.slot] = v
	return v, nil
}

func (r *run) unknown(name string) error {
	for i, inner := range r.prog.placeholders {
		if PlaceholderName(i) == name {
			return r.fail("the placeholder %q has no value", clip(inner))
		}
	}
	if near := fault.Nearest(name, r.env.Names()); near != "" {
		return r.fail("unknown name %q; did you mean %q?", clip(name), near).With("nearest", near)
	}
	const most = 12                                      // names in the message
	known := slices.Sorted(slices.Values(r.env.Names())) // sorted as a copy: the names are the caller's
	if len(known) == 0 {
		return r.fail("unknown name %q; no name is known here", clip(name))
	}
	more := ""
	if len(known) > most {
		known, more = known[:most], " and more"
	}
	for i := range known {
		known[i] = clip(known[i])
	}
	return r.fail("unknown name %q; known are %s%s", clip(name), strings.Join(known, ", "), more)
}

func (n *member) eval(r *run) (any, error) {
	x, err := n.x.eval(r)
	if err != nil {
		return nil, err
	}
	r.at = n.at
	return r.field(x, n.name)
}

func (n *index) eval(r *run) (any, error) {
	x, err := n.x.eval(r)
	if err != nil {
		return nil, err
	}
	i, err := n.i.eval(r)
	if err != nil {
		return nil, err
	}
	r.at = n.at
	return r.index(x, i)
}

func (n *negate) eval(r *run) (any, error) {
	x, err := n.x.eval(r)
	if err != nil {
		return nil, err
	}
	return !Truth(x), r.step(1)
}

func (n *minusNode) eval(r *run) (any, error) {
	x, err := n.x.eval(r)
	if err != nil {
		return nil, err
	}
	r.at = n.at
	return r.minus(x)
}

func (n *binary) eval(r *run) (any, error) {
	x, err := n.x.eval(r)
	if err != nil {
		return nil, err
	}
	y, err := n.y.eval(r)
	if err != nil {
		return nil, err
	}
	r.at = n.at
	if err := r.step(1); err != nil {
		return nil, err
	}
	switch n.op {
	case "==":
		return r.equal(x, y)
	case "!=":
		same, err := r.equal(x, y)
		return !same, err
	case "<", "<=", ">", ">=":
		return r.ordered(n.op, x, y)
	case "in":
		return r.contains(y, x)
	case "not in":
		found, err := r.contains(y, x)
		return !found, err
	}
	return r.arithmetic(n.op, x, y)
}

func (n *logic) eval(r *run) (any, error) {
	x, err := n.x.eval(r)
	if err != nil {
		return nil, err
	}
	if err := r.step(1); err != nil {
		return nil, err
	}
	var done bool
	switch n.op {
	case "||":
		done = Truth(x)
	case "&&":
		done = !Truth(x)
	case "??":
		done = x != nil
	}
	if done {
		return x, nil
	}
	return n.y.eval(r)
}

func (n *choose) eval(r *run) (any, error) {
	test, err := n.test.eval(r)
	if err != nil {
		return nil, err
	}
	if err := r.step(1); err != nil {
		return nil, err
	}
	if Truth(test) {
		return n.yes.eval(r)
	}
	return n.no.eval(r)
}

func (n *listNode) eval(r *run) (any, error) {
	r.at = n.at
	out, err := r.newList(len(n.items))
	if err != nil {
		return nil, err
	}
	for _, item := range n.items {
		v, err := item.eval(r)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func (n *objectNode) eval(r *run) (any, error) {
	r.at = n.at
	r.built = true
	size := 48
	for _, key := range n.keys {
		size += len(key) + 48
	}
	if err := r.alloc(size); err != nil {
		return nil, err
	}
	out := make(map[string]any, len(n.keys))
	for i, value := range n.values {
		v, err := value.eval(r)
		if err != nil {
			return nil, err
		}
		out[n.keys[i]] = v
	}
	return out, nil
}

func (n *template) eval(r *run) (any, error) {
	var out strings.Builder
	for _, part := range n.parts {
		v, err := part.eval(r)
		if err != nil {
			return nil, err
		}
		r.at = n.at
		text, err := r.text(v)
		if err != nil {
			return nil, err
		}
		if err := r.alloc(len(text)); err != nil {
			return nil, err
		}
		out.WriteString(text)
	}
	return out.String(), nil
}

func (n *call) eval(r *run) (any, error) {
	base := len(r.args)
	for _, arg := range n.args {
		v, err := arg.eval(r)
		if err != nil {
			return nil, err
		}
		r.args = append(r.args, v)
	}
	r.at = n.at
	v, err := n.f.apply(r, n, r.args[base:len(r.args):len(r.args)])
	r.args = r.args[:base]
	if err != nil {
		return nil, err
	}
	return v, r.step(1)
}

// apply evaluates the lambda of a call for one element.
func (r *run) apply(c *call, v any) (any, error) {
	r.locals[c.slot] = v
	got, err := c.lambda.eval(r)
	r.at = c.at
	return got, err
}

// newList makes an empty list with room for n elements.
func (r *run) newList(n int) ([]any, error) {
	r.built = true
	if err := r.alloc(24 + 16*n); err != nil {
		return nil, err
	}
	return make([]any, 0, n), nil
}
