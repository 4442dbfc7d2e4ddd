package expr

import (
	"slices"
	"strconv"
	"strings"

	"tandem/fault"
)

// The levels of binary operators, loosest first. `not` stands between and and equality, ! and - above all.
const (
	levelOr = iota + 1
	levelAnd
	levelEqual
	levelOrder
	levelAdd
	levelMultiply
)

// parser builds the tree by precedence climbing. It owns prog until program returns.
type parser struct {
	source string
	toks   []token
	next   int
	depth  int
	lambda []string // parameters in scope, by their slot
	prog   *Program
	slots  map[string]int  // of root names
	seen   map[string]bool // paths noted so far

	onlyCheck bool // the program will not run
}

func (p *parser) program() error {
	if p.peek().kind == tokenEnd {
		return p.fail(p.peek(), "the expression is empty")
	}
	root, err := p.expression()
	if err != nil {
		return err
	}
	if tok := p.peek(); tok.kind != tokenEnd {
		return p.unexpected(tok, "an operator or the end")
	}
	p.prog.root = root
	p.notePaths(root)
	slices.SortFunc(p.prog.paths, slices.Compare)
	return nil
}

func (p *parser) peek() token { return p.toks[p.next] }

func (p *parser) ahead(n int) token { return p.toks[min(p.next+n, len(p.toks)-1)] }

func (p *parser) fail(tok token, format string, args ...any) error {
	return failAt(p.source, tok.at, format, args...)
}

func (p *parser) unexpected(tok token, wanted string) error {
	if tok.kind == tokenEnd {
		return p.fail(tok, "the expression ends where %s is expected", wanted)
	}
	return p.fail(tok, "unexpected %q where %s is expected", clip(tok.text), wanted)
}

// is says whether the next token is this sign.
func (p *parser) is(sign string) bool {
	tok := p.peek()
	return tok.kind == tokenSign && tok.text == sign
}

func (p *parser) accept(sign string) bool {
	if p.is(sign) {
		p.next++
		return true
	}
	return false
}

func (p *parser) expect(sign string) error {
	if p.accept(sign) {
		return nil
	}
	return p.unexpected(p.peek(), strconv.Quote(sign))
}

// enter bounds how deep the parser, and with it every walk over the tree, recurses.
func (p *parser) enter() error {
	if p.depth++; p.depth > MaxDepth {
		return p.fail(p.peek(), "the expression is nested deeper than %d", MaxDepth)
	}
	return nil
}

// expression parses a ?: or anything tighter. The else branch is a loop, so a chain of cases is not nesting.
func (p *parser) expression() (node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	var first *choose
	var last *choose
	for n := 0; ; n++ {
		x, err := p.binary(levelOr)
		if err != nil {
			return nil, err
		}
		if !p.is("?") {
			if last == nil {
				return x, nil
			}
			last.no = x
			return first, nil
		}
		if n >= MaxChain {
			return nil, p.fail(p.peek(), "more than %d cases in one chain", MaxChain)
		}
		p.next++
		yes, err := p.expression()
		if err != nil {
			return nil, err
		}
		if err := p.expect(":"); err != nil {
			return nil, err
		}
		c := &choose{test: x, yes: yes}
		if last == nil {
			first = c
		} else {
			last.no = c
		}
		last = c
	}
}

// operator returns the binary operator at the next token, its level (0 if there is none) and how many tokens it takes.
func (p *parser) operator() (op string, level, size int) {
	tok := p.peek()
	switch tok.kind {
	case tokenSign:
		switch tok.text {
		case "||", "??":
			return tok.text, levelOr, 1
		case "&&":
			return "&&", levelAnd, 1
		case "==", "===":
			return "==", levelEqual, 1
		case "!=", "!==":
			return "!=", levelEqual, 1
		case "<", "<=", ">", ">=":
			return tok.text, levelOrder, 1
		case "+", "-":
			return tok.text, levelAdd, 1
		case "*", "/", "%":
			return tok.text, levelMultiply, 1
		}
	case tokenName:
		switch tok.text {
		case "or":
			return "||", levelOr, 1
		case "and":
			return "&&", levelAnd, 1
		case "in":
			return "in", levelOrder, 1
		case "not":
			if after := p.ahead(1); after.kind == tokenName && after.text == "in" {
				return "not in", levelOrder, 2
			}
		}
	}
	return "", 0, 0
}

func (p *parser) binary(loosest int) (node, error) {
	left, err := p.unary()
	if err != nil {
		return nil, err
	}
	for n := 0; ; n++ {
		op, level, size := p.operator()
		if level < loosest {
			return left, nil
		}
		tok := p.peek()
		if n >= MaxChain {
			return nil, p.fail(tok, "more than %d operators in one chain", MaxChain)
		}
		p.next += size
		right, err := p.binary(level + 1)
		if err != nil {
			return nil, err
		}
		switch op {
		case "||", "&&", "??":
			if mixes(op, left) || mixes(op, right) {
				return nil, p.fail(tok, "?? next to && or || needs parentheses")
			}
			left = &logic{op: op, x: left, y: right}
		default:
			left = &binary{op: op, x: left, y: right, at: tok.at}
		}
	}
}

// mixes says whether x is a ?? that should stand in parentheses next to op, or the other way round.
func mixes(op string, x node) bool {
	l, ok := x.(*logic)
	return ok && !l.parens && (l.op == "??") != (op == "??")
}

// unary parses prefix operators and what they apply to.
func (p *parser) unary() (node, error) {
	tok := p.peek()
	minus, bang, not := p.is("-"), p.is("!"), tok.kind == tokenName && tok.text == "not"
	if !minus && !bang && !not {
		return p.postfix()
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	p.next++
	if digits := p.peek(); minus && digits.kind == tokenNumber {
		// One token with its sign, so the smallest whole number can be written.
		if v, ok := literalNumber("-" + digits.text); ok {
			p.next++
			return p.trailer(&literal{v: v})
		}
	}
	if not {
		x, err := p.binary(levelEqual)
		return &negate{x: x}, err
	}
	x, err := p.unary()
	if bang {
		return &negate{x: x}, err
	}
	return &minusNode{x: x, at: tok.at}, err
}

func (p *parser) postfix() (node, error) {
	x, err := p.primary()
	if err != nil {
		return nil, err
	}
	return p.trailer(x)
}

// trailer parses the fields, indexes and method calls that follow x.
func (p *parser) trailer(x node) (node, error) {
	for n := 0; ; n++ {
		tok := p.peek()
		if n >= MaxChain {
			return nil, p.fail(tok, "more than %d fields in one chain", MaxChain)
		}
		var err error
		switch {
		case p.accept("["):
			x, err = p.index(x, tok)
		case p.accept("?."):
			if bracket := p.peek(); p.accept("[") {
				x, err = p.index(x, bracket)
			} else {
				x, err = p.field(x)
			}
		case p.accept("."):
			x, err = p.field(x)
		case p.is("("):
			return nil, p.fail(tok, "only a function name can be called")
		default:
			return x, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func (p *parser) index(x node, bracket token) (node, error) {
	i, err := p.expression()
	if err != nil {
		return nil, err
	}
	return &index{x: x, i: i, at: bracket.at}, p.expect("]")
}

// field parses what follows a dot: a name or a position, or the call of a method.
func (p *parser) field(x node) (node, error) {
	tok := p.peek()
	switch tok.kind {
	case tokenPlaceholder, tokenText:
		return nil, p.fail(tok, "a field after a dot is a plain name; write [%s]", clip(tok.text))
	case tokenName, tokenNumber:
	default:
		return nil, p.unexpected(tok, "a field name")
	}
	p.next++
	if tok.kind == tokenNumber || !p.is("(") {
		return &member{x: x, name: tok.text, at: tok.at}, nil
	}
	f := method(tok.text)
	if f == nil {
		if lookupFunction(tok.text) != nil {
			return nil, failAt(p.source, tok.at, "unknown method %q; write it as a function: %s(…, …)", tok.text, tok.text).With("nearest", tok.text)
		}
		if near := fault.Nearest(tok.text, methodNames()); near != "" {
			return nil, failAt(p.source, tok.at, "unknown method %q; did you mean %q?", tok.text, near).With("nearest", near)
		}
		if tok.text == "length" {
			return nil, p.fail(tok, "length is a field; write .length without parentheses")
		}
		return nil, p.fail(tok, "unknown method %q; the methods are %s", clip(tok.text), strings.Join(methodNames(), ", "))
	}
	return p.call(f, tok, []node{x})
}

// primary parses a literal, a name, a call, or something in brackets.
func (p *parser) primary() (node, error) {
	tok := p.peek()
	p.next++
	switch tok.kind {
	case tokenNumber:
		v, ok := literalNumber(tok.text)
		if !ok {
			return nil, p.fail(tok, "the number is out of range")
		}
		return &literal{v: v}, nil
	case tokenText:
		return p.textNode(tok), nil
	case tokenPlaceholder:
		return p.placeholder(tok.index, tok.at), nil
	case tokenName:
		return p.name(tok)
	case tokenSign:
		switch tok.text {
		case "(":
			x, err := p.expression()
			if err != nil {
				return nil, err
			}
			if l, ok := x.(*logic); ok {
				l.parens = true
			}
			return x, p.expect(")")
		case "[":
			return p.listLiteral(tok)
		case "{":
			return p.objectLiteral(tok)
		}
	}
	p.next--
	return nil, p.unexpected(tok, "a value")
}

func (p *parser) textNode(tok token) node {
	switch {
	case tok.pieces == nil:
		return &literal{v: tok.text}
	case len(tok.pieces) == 1:
		return p.placeholder(tok.pieces[0].index, tok.at)
	}
	t := &template{at: tok.at}
	for _, pc := range tok.pieces {
		if pc.index < 0 {
			t.parts = append(t.parts, &literal{v: pc.text})
		} else {
			t.parts = append(t.parts, p.placeholder(pc.index, tok.at))
		}
	}
	return t
}

func (p *parser) placeholder(i, at int) node { return p.root(PlaceholderName(i), at) }

// root returns the node that reads a root name; each name has one slot.
func (p *parser) root(name string, at int) node {
	slot, known := p.slots[name]
	if !known {
		slot = len(p.prog.names)
		p.slots[name] = slot
		p.prog.names = append(p.prog.names, name)
	}
	return &rootName{name: name, slot: slot, at: at}
}

// reserved says whether a word can be neither data nor a parameter.
func reserved(word string) bool {
	switch word {
	case "true", "false", "null", "undefined", "and", "or", "not", "in":
		return true
	}
	return false
}

func (p *parser) name(tok token) (node, error) {
	switch tok.text {
	case "true":
		return &literal{v: true}, nil
	case "false":
		return &literal{v: false}, nil
	case "null", "undefined":
		return &literal{}, nil
	}
	if reserved(tok.text) {
		p.next--
		return nil, p.unexpected(tok, "a value")
	}
	if p.is("(") {
		f := lookupFunction(tok.text)
		if f == nil {
			if near := fault.Nearest(tok.text, functionNames()); near != "" {
				return nil, failAt(p.source, tok.at, "unknown function %q; did you mean %q?", tok.text, near).With("nearest", near)
			}
			return nil, p.fail(tok, "unknown function %q; the functions are %s", clip(tok.text), strings.Join(functionNames(), ", "))
		}
		return p.call(f, tok, nil)
	}
	if p.is("=>") {
		return nil, p.fail(tok, "a lambda can only be the second argument of a list function such as any(list, x => …)")
	}
	for slot := len(p.lambda) - 1; slot >= 0; slot-- {
		if p.lambda[slot] == tok.text {
			return &local{slot: slot}, nil
		}
	}
	return p.root(tok.text, tok.at), nil
}

func (p *parser) listLiteral(open token) (node, error) {
	l := &listNode{at: open.at}
	for !p.is("]") {
		item, err := p.expression()
		if err != nil {
			return nil, err
		}
		l.items = append(l.items, item)
		if !p.accept(",") {
			break
		}
	}
	return l, p.expect("]")
}

func (p *parser) objectLiteral(open token) (node, error) {
	o := &objectNode{at: open.at}
	given := map[string]bool{}
	for !p.is("}") {
		tok := p.peek()
		switch {
		case tok.kind == tokenText && tok.pieces != nil:
			return nil, p.fail(tok, "a key cannot hold a placeholder")
		case tok.kind == tokenText, tok.kind == tokenName:
		default:
			return nil, p.unexpected(tok, "a key")
		}
		p.next++
		if err := p.expect(":"); err != nil {
			return nil, err
		}
		value, err := p.expression()
		if err != nil {
			return nil, err
		}
		if given[tok.text] {
			return nil, p.fail(tok, "the key %q is given twice", clip(tok.text))
		}
		given[tok.text] = true
		o.keys, o.values = append(o.keys, tok.text), append(o.values, value)
		if !p.accept(",") {
			break
		}
	}
	return o, p.expect("}")
}
