package workflow

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// yamlReader brings the library's tree of a YAML file into values: the part of YAML that stands for JSON, with anchors,
// aliases and merge keys. What the library leaves open is decided here: equal keys, depth, tags, and how much aliases
// may stand for.
type yamlReader struct {
	limits limits
	weight int64 // how much text the document may stand for, aliases written out
	// anchored are the finished values of nodes with an anchor. Aliases share what is inside, so a bomb costs nothing
	// before its weight is found to be too much.
	anchored map[*yaml.Node]value
	repeated []flaw
	trail    trail
}

func readYAML(data string, limits limits, weight int64) (root value, repeated []flaw, fault *flaw) {
	document, fault := parseYAML(data, limits)
	if fault != nil {
		return root, nil, fault
	}
	r := &yamlReader{limits: limits, weight: weight, anchored: make(map[*yaml.Node]value)}
	if fault := r.node(&root, document, 0); fault != nil {
		return root, nil, fault
	}
	return root, r.repeated, nil
}

// flawAt is a flaw at a node.
func (r *yamlReader) flawAt(n *yaml.Node, format string, args ...any) *flaw {
	p := errorAt(ProblemSyntax, r.trail.String(), format, args...)
	return &flaw{p.Code, p.Path, p.Message, int32(n.Line), int32(n.Column)}
}

func (r *yamlReader) tooLarge(n *yaml.Node, format string, args ...any) *flaw {
	f := r.flawAt(n, format, args...)
	f.code = ProblemTooLarge
	return f
}

// count pays for one value.
func (r *yamlReader) count(n *yaml.Node) *flaw {
	if r.limits.values--; r.limits.values < 0 {
		return r.tooLarge(n, tooManyValues)
	}
	return nil
}

func (r *yamlReader) node(v *value, n *yaml.Node, depth int) *flaw {
	if fault := r.count(n); fault != nil {
		return fault
	}
	if depth > r.limits.depth {
		return r.tooLarge(n, tooDeep, r.limits.depth)
	}
	v.line, v.col = int32(n.Line), int32(n.Column)
	var fault *flaw
	switch n.Kind {
	case yaml.AliasNode:
		return r.alias(v, n)
	case yaml.MappingNode:
		if fault = r.tag(n, "!!map", kindObject); fault == nil {
			fault = r.mapping(v, n, depth)
		}
	case yaml.SequenceNode:
		if fault = r.tag(n, "!!seq", kindList); fault == nil {
			fault = r.sequence(v, n, depth)
		}
	default:
		fault = r.scalar(v, n)
	}
	if fault == nil && n.Anchor != "" {
		r.anchored[n] = *v
	}
	return fault
}

// tag refuses a tag other than the one that says what is there anyway.
func (r *yamlReader) tag(n *yaml.Node, want string, kind valueKind) *flaw {
	switch n.Tag {
	case want:
		return nil
	case "!!map", "!!seq", "!!str", "!!int", "!!float", "!!bool", "!!null", "!!timestamp":
		return r.flawAt(n, "the tag %s does not fit %s; remove it", n.Tag, kind)
	default:
		return r.flawAt(n, "the tag %s has no meaning here; remove it", shortened(n.Tag))
	}
}

// alias takes the value of an anchor, in the alias's own place. A node is finished before anything can name it, except
// by an alias inside of it.
func (r *yamlReader) alias(v *value, n *yaml.Node) *flaw {
	target, finished := r.anchored[n.Alias]
	if !finished {
		return r.flawAt(n, "the alias *%s stands inside of what it stands for, which would never end; remove it", n.Value)
	}
	v.kind, v.text, v.inside = target.kind, target.text, target.inside
	return nil
}

func (r *yamlReader) sequence(v *value, n *yaml.Node, depth int) *flaw {
	v.kind, v.inside = kindList, &members{items: make([]value, len(n.Content)), weight: 2}
	for i, content := range n.Content {
		r.trail = append(r.trail, step{index: i})
		item := &v.inside.items[i]
		if fault := r.node(item, content, depth+1); fault != nil {
			return fault
		}
		r.trail = r.trail[:len(r.trail)-1]
		if fault := r.grow(v, item, "", content); fault != nil {
			return fault
		}
	}
	return nil
}

// grow adds what an item is to its container's weight and depth, and sees that aliases do not blow the document up: both
// add up along a chain of aliases without anything being written out.
func (r *yamlReader) grow(v, item *value, key string, n *yaml.Node) *flaw {
	v.inside.weight += item.weight() + 1
	if v.kind == kindObject {
		v.inside.weight += int64(len(key)) + 3
	}
	if item.inside != nil {
		v.inside.depth = max(v.inside.depth, item.inside.depth+1)
	}
	switch {
	case v.inside.weight > r.weight:
		return r.tooLarge(n, "the document is too large when its aliases are written out; use fewer of them")
	case int(v.inside.depth) > r.limits.depth:
		return r.tooLarge(n, "objects and lists stand more than %d deep when aliases are written out; flatten them",
			r.limits.depth)
	}
	return nil
}

// merge is what a merge key names. Merged members stand where the key does; written ones win over them.
type merge struct {
	at      int // number of written members before it
	key     *yaml.Node
	sources []value
}

func (r *yamlReader) mapping(v *value, n *yaml.Node, depth int) *flaw {
	size := len(n.Content) / 2
	v.kind = kindObject
	v.inside = &members{items: make([]value, 0, size), names: make([]name, 0, size), weight: 2}
	var merges []merge
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, content := n.Content[i], n.Content[i+1]
		if key.Kind == yaml.ScalarNode && key.Tag == "!!merge" && key.Value == "<<" {
			sources, fault := r.sources(key, content, depth)
			if fault != nil {
				return fault
			}
			merges = append(merges, merge{len(v.inside.names), key, sources})
			continue
		}
		text, fault := r.key(key)
		if fault != nil {
			return fault
		}
		line, col := int32(key.Line), int32(key.Column)
		r.trail = append(r.trail, step{text, -1})
		v.inside.names = append(v.inside.names, name{text, line, col})
		v.inside.items = append(v.inside.items, value{})
		item := &v.inside.items[len(v.inside.items)-1]
		if fault := r.node(item, content, depth+1); fault != nil {
			return fault
		}
		if content.Kind == yaml.ScalarNode && content.Value == "" && item.kind == kindNull {
			item.line, item.col = line, col // nothing is written there, so the key is where to look
		}
		r.trail = r.trail[:len(r.trail)-1]
		if fault := r.grow(v, item, text, content); fault != nil {
			return fault
		}
	}
	r.repeated = appendRepeated(r.repeated, v.inside.names, r.trail)
	return r.merge(v, merges)
}

// key reads a key: a text as written, whatever it would mean as a value.
func (r *yamlReader) key(n *yaml.Node) (string, *flaw) {
	at := n
	if n.Kind == yaml.AliasNode {
		target := n.Alias
		if target.Kind != yaml.ScalarNode {
			return "", r.flawAt(at, "a key must be a text, the alias *%s stands for an object or a list; write the text out", n.Value)
		}
		n = target
	}
	switch {
	case n.Kind == yaml.MappingNode:
		return "", r.flawAt(at, "a key must be a text, not an object; put a placeholder such as {{a.b}} in quotes")
	case n.Kind == yaml.SequenceNode:
		return "", r.flawAt(at, "a key must be a text, not a list; put it in quotes")
	case n.Style&yaml.TaggedStyle != 0 && n.Tag != "!!str":
		return "", r.flawAt(at, "the tag %s has no meaning at a key; remove it", shortened(n.Tag))
	case n.Value == "" && n.Tag == "!!null":
		return "", r.flawAt(at, "the key before a colon is missing; write it, or put the text with the colon in quotes")
	case strings.IndexByte(n.Value, 0) >= 0:
		return "", r.flawAt(at, "a key holds a NUL character, which cannot be stored; remove it")
	}
	if n.Anchor != "" {
		r.anchored[n] = value{kind: kindString, text: n.Value}
	}
	return n.Value, nil
}

// sources reads what a merge key names.
func (r *yamlReader) sources(key, content *yaml.Node, depth int) ([]value, *flaw) {
	var source value
	if fault := r.node(&source, content, depth+1); fault != nil {
		return nil, fault
	}
	sources := []value{source}
	if source.kind == kindList {
		sources = source.inside.items
	}
	for i := range sources {
		if sources[i].kind != kindObject {
			return nil, r.flawAt(key, "<< takes an object or a list of objects, not %s; put it in quotes if it is a key", sources[i].kind)
		}
	}
	return sources, nil
}

// merge puts the merged members in. Each member that is looked at is paid for, since aliases can name the same large
// object again and again.
func (r *yamlReader) merge(v *value, merges []merge) *flaw {
	if len(merges) == 0 {
		return nil
	}
	written := v.inside
	taken := make(map[string]struct{}, len(written.names))
	for i := range written.names {
		taken[written.names[i].text] = struct{}{}
	}
	v.inside = &members{weight: written.weight, depth: written.depth}
	from := 0
	take := func(to int) {
		v.inside.names = append(v.inside.names, written.names[from:to]...)
		v.inside.items = append(v.inside.items, written.items[from:to]...)
		from = to
	}
	for _, m := range merges {
		take(m.at)
		for _, source := range m.sources {
			if fault := r.count(m.key); fault != nil {
				return fault
			}
			for i, n := range source.inside.names {
				if fault := r.count(m.key); fault != nil {
					return fault
				}
				if _, there := taken[n.text]; there {
					continue
				}
				taken[n.text] = struct{}{}
				v.inside.names = append(v.inside.names, n)
				v.inside.items = append(v.inside.items, source.inside.items[i])
				if fault := r.grow(v, &source.inside.items[i], n.text, m.key); fault != nil {
					return fault
				}
			}
		}
	}
	take(len(written.names))
	return nil
}
