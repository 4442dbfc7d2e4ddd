package workflow

import (
	"math/big"
	"strings"

	"go.yaml.in/yaml/v3"
)

// scalar reads a scalar. Without quotes and tag it means what the core schema of YAML 1.2 says: yes, no, on, off and
// dates are strings. Numbers keep their digits.
func (r *yamlReader) scalar(v *value, n *yaml.Node) *flaw {
	const quoted = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	tag := ""
	if n.Style&yaml.TaggedStyle != 0 {
		tag = n.Tag
	}
	v.kind, v.text = kindString, n.Value
	if strings.IndexByte(n.Value, 0) >= 0 {
		return r.flawAt(n, "a string holds a NUL character, which cannot be stored; remove it")
	}
	if n.Style&quoted == 0 && tag != "!!str" && tag != "!!timestamp" {
		var problem string
		if v.kind, v.text, problem = plainScalar(n.Value); problem != "" {
			return r.flawAt(n, "%s %s", shortened(n.Value), problem)
		}
		// 1_000, 0b11 and -0x1F are numbers to the library and in YAML 1.1, but texts in YAML 1.2.
		if tag == "" && v.kind == kindString && (n.Tag == "!!int" || n.Tag == "!!float") {
			return r.flawAt(n, "%s is a number to some and a text to others; put it in quotes, or write the number in plain digits",
				shortened(n.Value))
		}
	}
	fits := true
	switch tag {
	case "", "!!str", "!!timestamp":
	case "!!null":
		fits = v.kind == kindNull
	case "!!bool":
		fits = v.kind == kindBool
	case "!!float":
		fits = v.kind == kindNumber
	case "!!int":
		fits = v.kind == kindNumber && !strings.ContainsAny(v.text, ".eE")
	default:
		return r.tag(n, "", v.kind)
	}
	if !fits {
		return r.flawAt(n, "the tag %s does not fit %s; remove it", tag, shortened(n.Value))
	}
	return nil
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
		return kindNull, "", "is not a number of JSON; write another value, or put it in quotes"
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
