package dataflow_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The model is the rules told naively: values are decoded, every scope is a few plain maps, and a view as of a row is
// had by applying the rows up to it to an empty model.

type modelResult struct {
	node, name string
	keys       map[string]any
	output     any
	order      int
}

type modelScope struct {
	path, group string
	index       int
	parent      *modelScope
	vars        map[string]any
	runtime     map[string]any
	ok, failed  map[string]*modelResult
	okNamed     map[string]*modelResult
	failedNamed map[string]*modelResult
	children    []*modelScope // open, or ended and waiting for a lower index
	ended       bool
}

type modelOp struct {
	seq    uint64
	kind   string // open, close, sync, fail
	scope  string
	vars   map[string]any
	node   string
	name   string
	keys   map[string]any
	params []string
}

type model struct {
	initial, trigger map[string]any
	env              map[string]string
	root             *modelScope
	order            int
}

func newModelScope(path string, parent *modelScope) *modelScope {
	s := &modelScope{path: path, parent: parent, runtime: map[string]any{}, ok: map[string]*modelResult{}, failed: map[string]*modelResult{},
		okNamed: map[string]*modelResult{}, failedNamed: map[string]*modelResult{}}
	last := path[strings.LastIndex(path, "/")+1:]
	if at := strings.Index(last, "["); at >= 0 {
		s.group = last[:at]
		if _, err := fmt.Sscanf(last[at:], "[%d]", &s.index); err != nil {
			panic(err)
		}
	}
	return s
}

func (s *modelScope) at(path string) *modelScope {
	if s.path == path {
		return s
	}
	for _, c := range s.children {
		if !c.ended && (c.path == path || strings.HasPrefix(path, c.path+"/")) {
			return c.at(path)
		}
	}
	return nil
}

func (m *model) apply(op modelOp) {
	switch op.kind {
	case "open":
		parent := m.root.at(op.scope[:max(strings.LastIndex(op.scope, "/"), 0)])
		s := newModelScope(op.scope, parent)
		s.vars = op.vars
		parent.children = append(parent.children, s)
	case "close":
		m.close(m.root.at(op.scope))
	case "sync", "fail":
		s := m.root.at(op.scope)
		m.order++
		r := &modelResult{node: op.node, name: op.name, keys: op.keys, order: m.order}
		switch payload, ok := op.keys["result"]; {
		case ok:
			r.output = payload
		case len(op.keys) == 1:
			for _, v := range op.keys {
				r.output = v
			}
		case len(op.keys) > 1:
			r.output = map[string]any(op.keys)
		}
		if op.kind == "fail" {
			s.failed[op.node], s.failedNamed[op.name] = r, r
			return
		}
		s.ok[op.node], s.okNamed[op.name] = r, r
		object, _ := r.output.(map[string]any)
		names := op.params
		if len(names) == 0 {
			names = slices.Sorted(maps.Keys(object))
		}
		for _, prefix := range []string{"", op.node + "_"} {
			for _, name := range names {
				if v, has := object[name]; has {
					s.runtime[prefix+name] = v
				}
			}
		}
	}
}

func (m *model) close(s *modelScope) {
	sorted := slices.Clone(s.children)
	slices.SortFunc(sorted, func(a, b *modelScope) int {
		return strings.Compare(fmt.Sprintf("%s%05d", a.group, a.index), fmt.Sprintf("%s%05d", b.group, b.index))
	})
	for _, c := range sorted {
		if !c.ended {
			m.close(c)
		}
	}
	s.ended = true
	// Fold what has ended and has no open sibling below it, lowest first.
	p := s.parent
	for {
		var next *modelScope
		for _, c := range p.children {
			if c.group == s.group && (next == nil || c.index < next.index) {
				next = c
			}
		}
		if next == nil || !next.ended {
			return
		}
		p.children = slices.DeleteFunc(p.children, func(c *modelScope) bool { return c == next })
		maps.Copy(p.runtime, next.runtime)
		all := []*modelResult{}
		for _, table := range []map[string]*modelResult{next.ok, next.failed} {
			for _, r := range table {
				all = append(all, r)
			}
		}
		slices.SortFunc(all, func(a, b *modelResult) int { return a.order - b.order })
		renewed := map[*modelResult]*modelResult{}
		for _, r := range all {
			m.order++
			c := *r
			c.order = m.order
			renewed[r] = &c
		}
		fold := func(dst, src map[string]*modelResult) {
			for k, r := range src {
				if n := renewed[r]; n != nil {
					r = n
				}
				dst[k] = r
			}
		}
		fold(p.ok, next.ok)
		fold(p.failed, next.failed)
		fold(p.okNamed, next.okNamed)
		fold(p.failedNamed, next.failedNamed)
	}
}

func modelWalk(v any, path []string) (any, bool) {
	for _, key := range path {
		switch c := v.(type) {
		case map[string]any:
			next, ok := c[key]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			n := -1
			for i := range c {
				if fmt.Sprint(i) == key {
					n = i
				}
			}
			if n < 0 {
				return nil, false
			}
			v = c[n]
		default:
			return nil, false
		}
	}
	return v, true
}

func (r *modelResult) read(path []string) (any, bool) {
	if v, ok := modelWalk(r.output, path); ok {
		return v, true
	}
	if len(path) == 0 {
		return nil, false
	}
	if _, has := modelWalk(r.output, path[:1]); has {
		return nil, false
	}
	if payload, ok := r.keys[path[0]]; ok {
		return modelWalk(payload, path[1:])
	}
	return nil, false
}

func (s *modelScope) results(head string) (ok, failed *modelResult) {
	for _, named := range []bool{false, true} {
		for c := s; c != nil && ok == nil; c = c.parent {
			oks, faileds := c.ok, c.failed
			if named {
				oks, faileds = c.okNamed, c.failedNamed
			}
			ok = oks[head]
			if failed == nil {
				failed = faileds[head]
			}
		}
		if ok != nil || failed != nil {
			return ok, failed
		}
	}
	return nil, nil
}

func (s *modelScope) step(head string, path []string) (any, bool) {
	ok, failed := s.results(head)
	if ok != nil {
		if v, found := ok.read(path); found {
			return v, true
		}
	}
	if failed != nil && len(failed.keys) > 0 {
		return failed.read(path)
	}
	return nil, false
}

func (s *modelScope) runtimeValue(name string, path []string) (any, bool) {
	for c := s; c != nil; c = c.parent {
		if v, ok := c.runtime[name]; ok {
			return modelWalk(v, path)
		}
	}
	return nil, false
}

// read follows the rules of dispatch, with nothing but the path: outputs is part of it.
func (m *model) read(scope string, path []string) (any, bool) {
	s := m.root.at(scope)
	head, rest := path[0], path[1:]
	isOutput := len(rest) > 0 && (rest[0] == "outputs" || rest[0] == "output")
	if isOutput {
		if v, ok := s.step(head, rest[1:]); ok {
			return v, true
		}
		if ok, failed := s.results(head); ok != nil || failed != nil {
			return nil, false
		}
	}
	for c := s; c != nil; c = c.parent {
		if v, ok := c.vars[head]; ok {
			return modelWalk(v, rest)
		}
	}
	if head == "env" && len(rest) > 0 {
		v, ok := m.env[rest[0]]
		return v, ok && len(rest) == 1
	}
	if head == "trigger" && len(rest) > 0 {
		if v, ok := modelWalk(m.trigger, rest); ok {
			return v, true
		}
	}
	if isOutput {
		return nil, false
	}
	if len(rest) > 0 {
		if v, ok := s.runtimeValue(head+"_"+rest[0], rest[1:]); ok {
			return v, true
		}
		if ok, _ := s.results(head); ok != nil {
			if v, found := s.runtimeValue(ok.node+"_"+rest[0], rest[1:]); found {
				return v, true
			}
		}
		if v, ok := s.step(head, rest); ok {
			return v, true
		}
		if v, ok := s.runtimeValue(head, rest); ok {
			return v, true
		}
		return modelWalk(m.initial, path)
	}
	if v, ok := s.runtimeValue(head, nil); ok {
		return v, true
	}
	if v, ok := m.initial[head]; ok {
		return v, true
	}
	if v, ok := s.step(head, nil); ok {
		return v, true
	}
	for c := s; c != nil; c = c.parent {
		var best *modelResult
		for _, r := range c.ok {
			if object, ok := r.output.(map[string]any); ok {
				if _, has := object[head]; has && (best == nil || r.order > best.order) {
					best = r
				}
			}
		}
		if best != nil {
			return best.output.(map[string]any)[head], true
		}
	}
	if head == "trigger" {
		return m.trigger, true
	}
	return nil, false
}
