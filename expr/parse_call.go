package expr

// call parses the arguments of a function; for a method the first is already there.
func (p *parser) call(f *function, tok token, args []node) (node, error) {
	c := &call{f: f, args: args, at: tok.at}
	if err := p.expect("("); err != nil {
		return nil, err
	}
	for n := len(args); !p.is(")"); n++ {
		param, size := p.lambdaHead()
		switch {
		case size > 0 && (f.lambda == lambdaNone || n != 1):
			return nil, p.fail(p.peek(), "%s takes no lambda here", f.name)
		case size > 0:
			p.next += size
			if err := p.lambdaBody(c, param); err != nil {
				return nil, err
			}
		default:
			arg, err := p.expression()
			if err != nil {
				return nil, err
			}
			c.args = append(c.args, arg)
		}
		if !p.accept(",") {
			break
		}
		if p.is(")") {
			return nil, p.unexpected(p.peek(), "an argument")
		}
	}
	if err := p.expect(")"); err != nil {
		return nil, err
	}
	if f.lambda == lambdaRequired && c.lambda == nil {
		return nil, p.fail(tok, "%s needs a lambda as its second argument: %s(list, x => …)", f.name, f.name)
	}
	if n := len(c.args); n < f.least || n > f.most {
		return nil, p.fail(tok, "%s takes %s, not %d", f.name, f.arity(), n)
	}
	return c, p.prepare(c)
}

// prepare compiles a pattern that is fixed in the source, so its errors show at once and it costs nothing later.
func (p *parser) prepare(c *call) error {
	if c.f.name != "matches" {
		return nil
	}
	fixed, ok := c.args[1].(*literal)
	if !ok {
		return nil
	}
	text, ok := fixed.v.(string)
	if !ok {
		return nil
	}
	if p.onlyCheck {
		if _, problem := patternCost(text); problem != "" {
			return failAt(p.source, c.at, "%s", problem)
		}
		return nil
	}
	pat, problem := compilePattern(text)
	if problem != "" {
		return failAt(p.source, c.at, "%s", problem)
	}
	c.pattern = pat
	return nil
}

// lambdaHead recognises `x =>` and `(x) =>` and says how many tokens that takes; 0 means there is no lambda.
func (p *parser) lambdaHead() (token, int) {
	sign := func(n int, text string) bool {
		tok := p.ahead(n)
		return tok.kind == tokenSign && tok.text == text
	}
	switch {
	case p.peek().kind == tokenName && sign(1, "=>"):
		return p.peek(), 2
	case sign(0, "(") && p.ahead(1).kind == tokenName && sign(2, ")") && sign(3, "=>"):
		return p.ahead(1), 4
	}
	return token{}, 0
}

func (p *parser) lambdaBody(c *call, param token) error {
	if reserved(param.text) {
		return p.fail(param, "%q cannot be the name of a parameter", param.text)
	}
	c.slot = len(p.lambda)
	p.lambda = append(p.lambda, param.text)
	p.prog.locals = max(p.prog.locals, len(p.lambda))
	body, err := p.expression()
	p.lambda = p.lambda[:c.slot]
	c.lambda = body
	return err
}
