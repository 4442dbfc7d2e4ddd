package expr

import (
	"slices"
	"strconv"
	"strings"
)

// notePaths notes the paths that the tree reads.
func (p *parser) notePaths(x node) {
	if m, ok := x.(*member); ok && m.name == "length" {
		p.notePaths(m.x)
		return
	}
	path := staticPath(x)
	if path == nil {
		for _, child := range x.children() {
			p.notePaths(child)
		}
		return
	}
	key := strings.Join(path, "\x00")
	if !p.seen[key] {
		p.seen[key] = true
		p.prog.paths = append(p.prog.paths, path)
	}
}

// staticPath returns the path from a root name that x is, or nil if x is anything else.
func staticPath(x node) []string {
	var path []string
	for {
		switch n := x.(type) {
		case *rootName:
			if strings.HasPrefix(n.name, "{{") {
				return nil
			}
			path = append(path, n.name)
			slices.Reverse(path)
			return path
		case *member:
			path = append(path, n.name)
			x = n.x
		case *index:
			fixed, ok := n.i.(*literal)
			if !ok {
				return nil
			}
			switch key := fixed.v.(type) {
			case string:
				path = append(path, key)
			case int64:
				path = append(path, strconv.FormatInt(key, 10))
			default:
				return nil
			}
			x = n.x
		default:
			return nil
		}
	}
}

// Hands returns the keys of the object that the program makes which get the value of a name as it is, each with that name, unless the
// program reads the name anywhere else too: what it makes of them does not depend on their values.
func (p *Program) Hands() map[string]string {
	object, ok := p.root.(*objectNode)
	if !ok {
		return nil
	}
	read := map[string]int{}
	countNames(object, read)
	handed := map[string]string{}
	for i, value := range object.values {
		if name, ok := value.(*rootName); ok && read[name.name] == 1 {
			handed[object.keys[i]] = name.name
		}
	}
	return handed
}

// countNames counts how often names are read.
func countNames(x node, read map[string]int) {
	if name, ok := x.(*rootName); ok {
		read[name.name]++
	}
	for _, child := range x.children() {
		countNames(child, read)
	}
}
