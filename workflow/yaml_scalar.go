package workflow

import (
	"math/big"
	"strings"
)

// alias reads an alias: the value of its anchor, in its own place.
func (r *yamlReader) alias() (value, *flaw) {
	tk := r.peek()
	v, ok := r.anchors[tk.text]
	if !ok {
		return value{}, r.flawAt(tk, "no anchor before this line is called &%s; put the value in quotes if it is a text", tk.text)
	}
	r.pos++
	v.line, v.col = tk.line, tk.col
	return v, nil
}

// scalarNode reads a scalar or an alias.
func (r *yamlReader) scalarNode(v *value, props properties) *flaw {
	tk := r.peek()
	switch tk.kind {
	case tokenAlias:
		if props.first != nil {
			return r.flawAt(tk, "an alias can have neither an anchor nor a tag")
		}
		var fault *flaw
		*v, fault = r.alias()
		return fault
	case tokenPlain, tokenQuoted, tokenBlock:
	default:
		return r.flawAt(tk, "%s does not belong here", shortened(tk.text))
	}
	r.pos++
	v.kind, v.text = kindString, tk.text
	if strings.IndexByte(v.text, 0) >= 0 {
		return r.flawAt(tk, "a string holds a NUL character, which cannot be stored; remove it")
	}
	if tk.kind == tokenPlain && props.tag != "!!str" && props.tag != "!" {
		var problem string
		if v.kind, v.text, problem = plainScalar(tk.text); problem != "" {
			return r.flawAt(tk, "%s %s", shortened(tk.text), problem)
		}
		if props.tag == "!!int" && v.kind == kindNumber && strings.ContainsAny(v.text, ".eE") {
			return r.flawAt(tk, "the tag !!int does not fit %s", shortened(v.text))
		}
	}
	return r.finish(v, props, tk)
}

// plainScalar tells what a scalar without quotes means, and writes a number as JSON does.
func plainScalar(text string) (kind valueKind, meaning, problem string) {
	switch text {
	case "", "~", "null", "Null", "NULL":
		return kindNull, "", ""
	case "true", "True", "TRUE":
		return kindBool, "true", ""
	case "false", "False", "FALSE":
		return kindBool, "false", ""
	case ".nan", ".NaN", ".NAN", ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF":
		return kindNull, "", "is no number of JSON; write another value, or put it in quotes"
	}
	if base, digits, ok := based(text); ok {
		n, _ := new(big.Int).SetString(digits, base)
		return kindNumber, n.String(), ""
	}
	number, ok, zeros := decimal(text)
	switch {
	case !ok:
		return kindString, text, ""
	case zeros:
		return kindNull, "", "begins with a zero, which some read as octal; put it in quotes, or write the number without the zero"
	case !finite(number):
		return kindNull, "", "is beyond what can be reckoned with; put it in quotes"
	}
	return kindNumber, number, ""
}

// based recognizes 0x1F and 0o17, up to a length that no number of use has.
func based(text string) (base int, digits string, ok bool) {
	const most = 64
	allowed := ""
	switch {
	case len(text) < 3 || len(text) > most:
		return 0, "", false
	case strings.HasPrefix(text, "0x"):
		base, allowed = 16, "0123456789abcdefABCDEF"
	case strings.HasPrefix(text, "0o"):
		base, allowed = 8, "01234567"
	default:
		return 0, "", false
	}
	digits = text[2:]
	return base, digits, strings.Trim(digits, allowed) == ""
}

// decimal brings a decimal number to the form of JSON: .5 is 0.5, 5. is 5.0, +1 is 1; the digits stay.
func decimal(text string) (number string, ok, zeros bool) {
	rest := strings.TrimLeft(text, "+-")
	if len(text)-len(rest) > 1 {
		return "", false, false
	}
	sign := ""
	if strings.HasPrefix(text, "-") {
		sign = "-"
	}
	digits := func(s string) (string, string) {
		n := 0
		for n < len(s) && s[n] >= '0' && s[n] <= '9' {
			n++
		}
		return s[:n], s[n:]
	}
	whole, rest := digits(rest)
	part := ""
	if strings.HasPrefix(rest, ".") {
		var after string
		after, rest = digits(rest[1:])
		if whole == "" && after == "" {
			return "", false, false
		}
		if after == "" {
			after = "0"
		}
		part = "." + after
	} else if whole == "" {
		return "", false, false
	}
	exponent := ""
	if rest != "" {
		if rest[0] != 'e' && rest[0] != 'E' {
			return "", false, false
		}
		mark := 1
		if len(rest) > 1 && (rest[1] == '+' || rest[1] == '-') {
			mark = 2
		}
		power, end := digits(rest[mark:])
		if power == "" || end != "" {
			return "", false, false
		}
		exponent = rest
	}
	if whole == "" {
		whole = "0"
	}
	return sign + whole + part + exponent, true, len(whole) > 1 && whole[0] == '0'
}
