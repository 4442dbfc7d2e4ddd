package workflow

import "strings"

// yamlReader reads YAML into values: the part of YAML that stands for JSON, with comments, anchors, aliases and merge
// keys. It is written here, and not taken from a library, because of files by strangers: time and memory must grow no
// faster than the file, and depth and aliases must be bounded while reading.
//
// Plain scalars mean what the core schema of YAML 1.2 says: yes, no, on and off are strings.
type yamlReader struct {
	tokens   []yamlToken
	pos      int
	limits   limits
	weight   int64 // how much text the document may stand for, aliases written out
	anchors  map[string]value
	repeated []flaw
	trail    trail
}

func readYAML(data string, limits limits, weight int64) (root value, repeated []flaw, fault *flaw) {
	r := &yamlReader{limits: limits, weight: weight, anchors: make(map[string]value)}
	if r.tokens, fault = scanYAML(data, limits); fault != nil {
		return root, nil, fault
	}
	if fault := r.head(); fault != nil {
		return root, nil, fault
	}
	if fault := r.node(&root, 0, place{}); fault != nil {
		return root, nil, fault
	}
	if tk := r.peek(); tk != nil && tk.kind == tokenDocumentEnd {
		r.pos++
	}
	if tk := r.peek(); tk != nil {
		if tk.kind == tokenDocument {
			return root, nil, r.flawAt(tk, "a second document begins here; a file holds one workflow")
		}
		return root, nil, r.flawAt(tk, "%s does not belong here; check the indentation of this line and of those above it",
			shortened(tk.text))
	}
	return root, r.repeated, nil
}

// head passes directives and the mark of the document's start.
func (r *yamlReader) head() *flaw {
	directive := false
	for tk := r.peek(); tk != nil && tk.kind == tokenDirective; tk = r.peek() {
		directive = true
		r.pos++
	}
	if tk := r.peek(); tk != nil && tk.kind == tokenDocument {
		r.pos++
	} else if tk != nil && directive {
		return r.flawAt(tk, "a line with --- is missing between the directives and the document")
	}
	return nil
}

func (r *yamlReader) peek() *yamlToken { return r.at(0) }

func (r *yamlReader) at(ahead int) *yamlToken {
	if r.pos+ahead < len(r.tokens) {
		return &r.tokens[r.pos+ahead]
	}
	return nil
}

// flawAt is a flaw at a token, or at the end of the file when there is none.
func (r *yamlReader) flawAt(tk *yamlToken, format string, args ...any) *flaw {
	p := errorAt(ProblemSyntax, r.trail.String(), format, args...)
	f := &flaw{code: p.Code, path: p.Path, message: p.Message, line: 1, col: 1}
	if tk == nil && len(r.tokens) > 0 {
		tk = &r.tokens[len(r.tokens)-1]
	}
	if tk != nil {
		f.line, f.col = tk.line, tk.col
	}
	return f
}

func (r *yamlReader) tooLarge(tk *yamlToken, format string, args ...any) *flaw {
	f := r.flawAt(tk, format, args...)
	f.code = ProblemTooLarge
	return f
}

// place is where a node stands: in brackets, or in the block of a parent that begins at a column, in which case it is
// on the parent's line or further right. A sequence may also begin at the column of the key it belongs to.
type place struct {
	flow      bool
	line, col int32
	afterKey  bool
}

// holds tells whether the next token belongs to a node at this place.
func (r *yamlReader) holds(at place, line int32) bool {
	tk := r.peek()
	switch {
	case tk == nil:
		return false
	case at.flow:
		return tk.kind != tokenComma && tk.kind != tokenListClose && tk.kind != tokenObjectClose
	case tk.kind == tokenDocument || tk.kind == tokenDocumentEnd:
		return false
	case tk.line == line || tk.col > at.col:
		return true
	default:
		return at.afterKey && tk.kind == tokenDash && tk.col == at.col
	}
}

// properties are the anchor and the tag before a node.
type properties struct {
	anchor, tag string
	first       *yamlToken // where they begin; nil when there are none
	line        int32      // where they end
}

func (r *yamlReader) properties(at place) (properties, *flaw) {
	p := properties{line: at.line}
	for r.holds(at, p.line) {
		tk := r.peek()
		if p.first != nil && tk.line != p.line && r.keyFollows() {
			return p, nil // these are of the mapping, what follows is of its first key
		}
		switch tk.kind {
		case tokenAnchor:
			if p.anchor != "" {
				return p, r.flawAt(tk, "a value can have one anchor only")
			}
			p.anchor = tk.text
			r.pos++
		case tokenTag:
			if p.tag != "" {
				return p, r.flawAt(tk, "a value can have one tag only")
			}
			p.tag = tk.text
			r.pos++
		default:
			return p, nil
		}
		if p.first == nil {
			p.first = tk
		}
		p.line = tk.line
	}
	return p, nil
}

// node reads one node with its properties.
func (r *yamlReader) node(v *value, depth int, at place) *flaw {
	if r.limits.values--; r.limits.values < 0 {
		return r.tooLarge(r.peek(), "the file has too many values; split the workflow into several")
	}
	if depth > r.limits.depth {
		return r.tooLarge(r.peek(), "objects and lists stand more than %d deep; flatten them", r.limits.depth)
	}
	begin := r.pos
	props, fault := r.properties(at)
	if fault != nil {
		return fault
	}
	tk := r.peek()
	if !r.holds(at, props.line) {
		if at.line > 0 {
			v.line, v.col = at.line, at.col
		}
		return r.finish(v, props, tk)
	}
	v.line, v.col = tk.line, tk.col
	switch {
	case !at.flow && r.keyFollows():
		// Properties on the line of the first key are the key's.
		if props.first != nil && props.line == tk.line {
			r.pos = begin
			props = properties{}
			tk = r.peek()
			v.line, v.col = tk.line, tk.col
		}
		if at.afterKey && tk.line == at.line {
			return r.flawAt(tk, "a key cannot stand on the line of another one; put it on the next line, further right, or quote the text")
		}
		fault = r.blockMapping(v, depth, tk.col)
	case tk.kind == tokenDash && !at.flow:
		if at.afterKey && tk.line == at.line {
			return r.flawAt(tk, "a list cannot begin on the line of its key; put it on the next line, or quote the text")
		}
		fault = r.blockSequence(v, depth, tk.col)
	case tk.kind == tokenListOpen:
		fault = r.flowSequence(v, depth)
	case tk.kind == tokenObjectOpen:
		fault = r.flowMapping(v, depth)
	default:
		return r.scalarNode(v, props)
	}
	if fault != nil {
		return fault
	}
	return r.finish(v, props, tk)
}

// finish applies a node's properties to what was read.
func (r *yamlReader) finish(v *value, props properties, tk *yamlToken) *flaw {
	switch props.tag {
	case "", "!":
	case "!!map", "!!seq", "!!null":
		want := map[string]valueKind{"!!map": kindObject, "!!seq": kindList, "!!null": kindNull}[props.tag]
		if v.kind != want {
			return r.flawAt(tk, "the tag %s does not fit %s", props.tag, v.kind)
		}
	case "!!str":
		if v.kind == kindNull {
			v.kind = kindString
		} else if v.kind != kindString {
			return r.flawAt(tk, "the tag %s does not fit %s", props.tag, v.kind)
		}
	case "!!int", "!!float", "!!bool":
		if v.kind != kindNumber && v.kind != kindBool || (props.tag == "!!bool") != (v.kind == kindBool) {
			return r.flawAt(tk, "the tag %s does not fit %s", props.tag, v.kind)
		}
	default:
		return r.flawAt(tk, "the tag %s has no meaning here; remove it", shortened(props.tag))
	}
	if props.anchor != "" {
		r.anchors[props.anchor] = *v
	}
	return nil
}

// isKey tells whether the token so far ahead is a key: a scalar or an alias with a colon after it on its line, or a sign
// that only keys have.
func (r *yamlReader) isKey(ahead int) bool {
	tk := r.at(ahead)
	if tk == nil {
		return false
	}
	switch tk.kind {
	case tokenQuestion, tokenColon:
		return true
	case tokenPlain, tokenQuoted, tokenAlias:
		colon := r.at(ahead + 1)
		return colon != nil && colon.kind == tokenColon && colon.line == tk.line
	}
	return false
}

func (r *yamlReader) blockSequence(v *value, depth int, col int32) *flaw {
	v.kind, v.inside = kindList, &members{weight: 2}
	for tk := r.peek(); tk != nil && tk.kind == tokenDash && tk.col == col; tk = r.peek() {
		r.pos++
		if fault := r.item(v, depth, place{line: tk.line, col: col}); fault != nil {
			return fault
		}
	}
	return nil
}

// item reads one more item of a list.
func (r *yamlReader) item(v *value, depth int, at place) *flaw {
	r.trail = append(r.trail, step{index: len(v.inside.items)})
	v.inside.items = append(v.inside.items, value{})
	item := &v.inside.items[len(v.inside.items)-1]
	if fault := r.node(item, depth+1, at); fault != nil {
		return fault
	}
	r.trail = r.trail[:len(r.trail)-1]
	return r.grow(v, item, "")
}

// grow adds what an item is to its container's weight and depth, and sees that aliases do not blow the document up: both
// add up along a chain of aliases without anything being written out.
func (r *yamlReader) grow(v, item *value, key string) *flaw {
	v.inside.weight += item.weight() + 1
	if v.kind == kindObject {
		v.inside.weight += int64(len(key)) + 3
	}
	if item.inside != nil {
		v.inside.depth = max(v.inside.depth, item.inside.depth+1)
	}
	if v.inside.weight <= r.weight && int(v.inside.depth) <= r.limits.depth {
		return nil
	}
	here := &yamlToken{line: item.line, col: item.col}
	if v.inside.weight > r.weight {
		return r.tooLarge(here, "the document is too large when its aliases are written out; use fewer of them")
	}
	return r.tooLarge(here, "objects and lists stand more than %d deep when aliases are written out; flatten them",
		r.limits.depth)
}

func (r *yamlReader) blockMapping(v *value, depth int, col int32) *flaw {
	o := r.open(v)
	for tk := r.peek(); tk != nil && tk.col == col && r.keyFollows(); tk = r.peek() {
		key, fault := r.key()
		if fault != nil {
			return fault
		}
		colon := r.peek()
		if colon == nil || colon.kind != tokenColon {
			return r.flawAt(colon, "a colon was expected after the key %s", shortened(key.text))
		}
		r.pos++
		if fault := r.memberOf(o, key, depth, place{line: colon.line, col: col, afterKey: true}); fault != nil {
			return fault
		}
	}
	return r.close(o)
}

// keyFollows tells whether a key comes next, perhaps behind an anchor or a tag on its line.
func (r *yamlReader) keyFollows() bool {
	ahead := 0
	first := r.peek()
	for tk := first; tk != nil && tk.line == first.line; tk = r.at(ahead) {
		switch tk.kind {
		case tokenAnchor, tokenTag:
			ahead++
		default:
			return r.isKey(ahead)
		}
	}
	return false
}

// key reads a key: its token, with an alias followed.
func (r *yamlReader) key() (*yamlToken, *flaw) {
	first := r.peek()
	props, fault := r.properties(place{flow: true})
	if fault != nil {
		return nil, fault
	}
	tk := r.peek()
	switch {
	case tk == nil:
		return nil, r.flawAt(tk, "a key was expected")
	case tk.kind == tokenColon:
		return nil, r.flawAt(tk, "the key before this colon is missing")
	case tk.kind == tokenQuestion:
		return nil, r.flawAt(tk, "keys written with ? are not supported; write the key as a plain text before a colon")
	case tk.kind == tokenAlias:
		target, fault := r.alias()
		if fault != nil {
			return nil, fault
		}
		if target.inside != nil {
			return nil, r.flawAt(tk, "a key must be a text, the alias stands for %s", target.kind)
		}
		named := *tk
		named.kind, named.text = tokenQuoted, target.text
		return &named, nil
	case tk.kind == tokenObjectOpen:
		return nil, r.flawAt(tk, "a key must be a text, not an object; put a placeholder such as {{a.b}} in quotes")
	case tk.kind != tokenPlain && tk.kind != tokenQuoted:
		return nil, r.flawAt(tk, "a key was expected, not %s", shortened(tk.text))
	}
	r.pos++
	if props.anchor != "" {
		r.anchors[props.anchor] = value{kind: kindString, text: tk.text, line: tk.line, col: tk.col}
	}
	if strings.ContainsRune(tk.text, 0) {
		return nil, r.flawAt(first, "a key holds a NUL character, which cannot be stored; remove it")
	}
	return tk, nil
}

// openMapping is a mapping being read. Merged members stand where the merge key does; written ones win over them.
type openMapping struct {
	v      *value
	seen   keySet
	merges []merge
}

type merge struct {
	at      int // number of written members before it
	sources []value
}

func (r *yamlReader) open(v *value) *openMapping {
	v.kind, v.inside = kindObject, &members{weight: 2}
	return &openMapping{v: v}
}

// memberOf reads the value of a key, or takes in what a merge key names.
func (r *yamlReader) memberOf(o *openMapping, key *yamlToken, depth int, at place) *flaw {
	v := o.v
	if key.kind == tokenPlain && key.text == "<<" {
		var source value
		if fault := r.node(&source, depth+1, at); fault != nil {
			return fault
		}
		sources := []value{source}
		if source.kind == kindList {
			sources = source.inside.items
		}
		for i := range sources {
			if sources[i].kind != kindObject {
				return r.flawAt(key, "<< takes an object or a list of objects, not %s", sources[i].kind)
			}
		}
		o.merges = append(o.merges, merge{len(v.inside.names), sources})
		return nil
	}
	line, col := key.line, key.col
	r.trail = append(r.trail, step{key.text, -1})
	if o.seen.add(v.inside.names, key.text) && len(r.repeated) <= problemsPerCode {
		r.repeated = append(r.repeated, repeatedKey(r.trail, key.text, line, col))
	}
	v.inside.names = append(v.inside.names, name{key.text, line, col})
	v.inside.items = append(v.inside.items, value{line: line, col: col})
	item := &v.inside.items[len(v.inside.items)-1]
	if fault := r.node(item, depth+1, at); fault != nil {
		return fault
	}
	r.trail = r.trail[:len(r.trail)-1]
	return r.grow(v, item, key.text)
}

// close puts the merged members in.
func (r *yamlReader) close(o *openMapping) *flaw {
	if len(o.merges) == 0 {
		return nil
	}
	written := o.v.inside
	taken := make(map[string]struct{}, len(written.names))
	for i := range written.names {
		taken[written.names[i].text] = struct{}{}
	}
	o.v.inside = &members{weight: written.weight, depth: written.depth}
	from := 0
	take := func(to int) {
		o.v.inside.names = append(o.v.inside.names, written.names[from:to]...)
		o.v.inside.items = append(o.v.inside.items, written.items[from:to]...)
		from = to
	}
	for _, m := range o.merges {
		take(m.at)
		for _, source := range m.sources {
			for i, n := range source.inside.names {
				if _, there := taken[n.text]; there {
					continue
				}
				taken[n.text] = struct{}{}
				if r.limits.values--; r.limits.values < 0 {
					return r.tooLarge(r.peek(), "the document is too large when its aliases are written out; use fewer of them")
				}
				o.v.inside.names = append(o.v.inside.names, n)
				o.v.inside.items = append(o.v.inside.items, source.inside.items[i])
				if fault := r.grow(o.v, &source.inside.items[i], n.text); fault != nil {
					return fault
				}
			}
		}
	}
	take(len(written.names))
	return nil
}

func (r *yamlReader) flowSequence(v *value, depth int) *flaw {
	v.kind, v.inside = kindList, &members{weight: 2}
	opening := r.peek()
	r.pos++
	for {
		tk := r.peek()
		if tk == nil {
			return r.flawAt(opening, "the list that begins here is never closed; a ] is missing")
		}
		if tk.kind == tokenListClose {
			r.pos++
			return nil
		}
		if tk.kind == tokenComma {
			return r.flawAt(tk, "there is nothing before this comma; remove it")
		}
		if r.keyFollows() {
			if fault := r.pair(v, depth); fault != nil {
				return fault
			}
		} else if fault := r.item(v, depth, place{flow: true}); fault != nil {
			return fault
		}
		if fault := r.comma(tokenListClose, opening); fault != nil {
			return fault
		}
	}
}

// pair reads an item of a flow sequence that is a mapping of one key without braces.
func (r *yamlReader) pair(v *value, depth int) *flaw {
	if depth+1 > r.limits.depth {
		return r.tooLarge(r.peek(), "objects and lists stand more than %d deep; flatten them", r.limits.depth)
	}
	r.trail = append(r.trail, step{index: len(v.inside.items)})
	tk := r.peek()
	item := value{line: tk.line, col: tk.col}
	o := r.open(&item)
	if fault := r.flowMember(o, depth+1); fault != nil {
		return fault
	}
	if fault := r.close(o); fault != nil {
		return fault
	}
	v.inside.items = append(v.inside.items, item)
	r.trail = r.trail[:len(r.trail)-1]
	return r.grow(v, &item, "")
}

func (r *yamlReader) flowMember(o *openMapping, depth int) *flaw {
	key, fault := r.key()
	if fault != nil {
		return fault
	}
	at := place{flow: true}
	if colon := r.peek(); colon != nil && colon.kind == tokenColon {
		r.pos++
	} else if colon != nil && colon.kind != tokenComma && colon.kind != tokenObjectClose {
		return r.flawAt(colon, "a colon was expected after the key %s", shortened(key.text))
	}
	return r.memberOf(o, key, depth, at)
}

// comma passes the comma between two items; before the closing bracket there may be one.
func (r *yamlReader) comma(closing tokenKind, opening *yamlToken) *flaw {
	tk := r.peek()
	switch {
	case tk == nil:
		return r.flawAt(opening, "what begins here with %s is never closed", opening.text)
	case tk.kind == tokenComma:
		r.pos++
		if next := r.peek(); next != nil && next.kind == tokenComma {
			return r.flawAt(next, "there is nothing between two commas; remove one")
		}
	case tk.kind != closing:
		return r.flawAt(tk, "a comma or the closing bracket was expected, not %s", shortened(tk.text))
	}
	return nil
}

func (r *yamlReader) flowMapping(v *value, depth int) *flaw {
	o := r.open(v)
	opening := r.peek()
	r.pos++
	for {
		tk := r.peek()
		if tk == nil {
			return r.flawAt(opening, "the object that begins here is never closed; a } is missing")
		}
		if tk.kind == tokenObjectClose {
			r.pos++
			return r.close(o)
		}
		if fault := r.flowMember(o, depth); fault != nil {
			return fault
		}
		if fault := r.comma(tokenObjectClose, opening); fault != nil {
			return fault
		}
	}
}
