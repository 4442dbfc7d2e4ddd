package expr

import (
	"encoding/json"
	"math"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"tandem/fault"
)

// textArg returns an argument that must be a text; ok is false for null.
func (r *run) textArg(c *call, v any) (s string, ok bool, err error) {
	switch x := v.(type) {
	case nil:
		return "", false, nil
	case string:
		return x, true, nil
	}
	return "", false, r.fail("%s needs a text, not %s; convert with str()", c.f.name, typeName(v))
}

func fnLen(r *run, c *call, args []any) (any, error) {
	switch x := args[0].(type) {
	case nil:
		return int64(0), nil
	case string:
		return r.length(x)
	case []any:
		return int64(len(x)), nil
	case map[string]any:
		return int64(len(x)), nil
	}
	return nil, r.fail("%s needs a text, a list or an object, not %s", c.f.name, typeName(args[0]))
}

// changeText is for functions from text to text, which leave null alone.
func changeText(r *run, c *call, v any, change func(string) string) (any, error) {
	s, ok, err := r.textArg(c, v)
	if !ok || err != nil {
		return nil, err
	}
	if err := r.alloc(16 + len(s)); err != nil {
		return nil, err
	}
	out := change(s)
	return out, r.alloc(max(0, len(out)-len(s))) // some letters grow with their case
}

func fnLower(r *run, c *call, args []any) (any, error) {
	return changeText(r, c, args[0], strings.ToLower)
}

func fnUpper(r *run, c *call, args []any) (any, error) {
	return changeText(r, c, args[0], strings.ToUpper)
}

func fnTrim(r *run, c *call, args []any) (any, error) {
	s, ok, err := r.textArg(c, args[0])
	if !ok || err != nil {
		return nil, err
	}
	return strings.TrimSpace(s), r.scan(len(s))
}

func fnContains(r *run, _ *call, args []any) (any, error) { return r.contains(args[0], args[1]) }

func fnStartsWith(r *run, c *call, args []any) (any, error) {
	return affix(r, c, args, strings.HasPrefix)
}

func fnEndsWith(r *run, c *call, args []any) (any, error) {
	return affix(r, c, args, strings.HasSuffix)
}

func affix(r *run, c *call, args []any, test func(s, x string) bool) (any, error) {
	s, okS, err := r.textArg(c, args[0])
	if err != nil {
		return nil, err
	}
	x, okX, err := r.textArg(c, args[1])
	if err != nil {
		return nil, err
	}
	return okS && okX && test(s, x), r.scan(len(x))
}

func fnSplit(r *run, c *call, args []any) (any, error) {
	s, ok, err := r.textArg(c, args[0])
	if err != nil {
		return nil, err
	}
	sep, sepOK, err := r.textArg(c, args[1])
	if err != nil {
		return nil, err
	}
	if !ok {
		return r.newList(0)
	}
	if !sepOK {
		return nil, r.fail("%s needs a text to split by, not null", c.f.name)
	}
	if err := r.scan(len(s)); err != nil {
		return nil, err
	}
	n := strings.Count(s, sep) + 1
	if sep == "" {
		n = utf8.RuneCountInString(s)
	}
	if err := r.alloc(16 * n); err != nil { // the texts; they share the bytes of s
		return nil, err
	}
	out, err := r.newList(n)
	if err != nil {
		return nil, err
	}
	if sep == "" {
		for s != "" {
			_, size := utf8.DecodeRuneInString(s)
			out = append(out, s[:size])
			s = s[size:]
		}
		return out, nil
	}
	for part := range strings.SplitSeq(s, sep) {
		out = append(out, part)
	}
	return out, nil
}

func fnJoin(r *run, c *call, args []any) (any, error) {
	items, err := r.listArg(c, args[0])
	if err != nil {
		return nil, err
	}
	sep, ok, err := r.textArg(c, args[1])
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, r.fail("%s needs a text to put between the elements, not null", c.f.name)
	}
	var out strings.Builder
	for i, item := range items {
		item, err := r.norm(item)
		if err != nil {
			return nil, err
		}
		text, err := r.text(item)
		if err != nil {
			return nil, err
		}
		between := sep
		if i == 0 {
			between = ""
		}
		if err := r.alloc(2 * (len(between) + len(text))); err != nil { // twice: the builder grows by doubling
			return nil, err
		}
		out.WriteString(between)
		out.WriteString(text)
	}
	return out.String(), nil
}

func fnReplace(r *run, c *call, args []any) (any, error) {
	var texts [3]string
	for i, arg := range args {
		s, ok, err := r.textArg(c, arg)
		if err != nil {
			return nil, err
		}
		if !ok {
			if i == 0 {
				return nil, nil
			}
			return nil, r.fail("%s needs texts to look for and to put in, not null", c.f.name)
		}
		texts[i] = s
	}
	s, before, after := texts[0], texts[1], texts[2]
	if before == "" {
		return nil, r.fail("%s needs a text to look for that is not empty", c.f.name)
	}
	if err := r.scan(len(s)); err != nil {
		return nil, err
	}
	// Texts are far below 2^31 bytes, so this does not overflow.
	if err := r.alloc(16 + len(s) + strings.Count(s, before)*(len(after)-len(before))); err != nil {
		return nil, err
	}
	return strings.ReplaceAll(s, before, after), nil
}

// pattern is a compiled pattern with what a match costs per byte.
type pattern struct {
	re   *regexp.Regexp
	cost int // states a match may have to follow at once
}

const maxStates = 5_000

// compilePattern compiles a pattern after judging its size from its syntax, since {n} can make a few letters huge. The second
// result says what is wrong with it.
func compilePattern(text string) (*pattern, string) {
	cost, problem := patternCost(text)
	if problem != "" {
		return nil, problem
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, "the pattern is not valid: " + strings.TrimPrefix(err.Error(), "error parsing regexp: ")
	}
	return &pattern{re: re, cost: cost}, ""
}

// CheckPattern says what is wrong with a pattern that matches would refuse, or returns nil. It costs little, whatever the
// pattern: nothing is compiled.
func CheckPattern(text string) error {
	if _, problem := patternCost(text); problem != "" {
		return fault.New(fault.ExpressionError, problem)
	}
	return nil
}

// patternCost judges a pattern without compiling it.
func patternCost(text string) (cost int, problem string) {
	if len(text) > MaxPattern {
		return 0, "the pattern is longer than " + strconv.Itoa(MaxPattern) + " bytes"
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return 0, "the pattern is not valid: " + strings.TrimPrefix(err.Error(), "error parsing regexp: ")
	}
	if cost = states(tree); cost > maxStates {
		return 0, "the pattern is too large; use smaller repetitions"
	}
	return cost, ""
}

// states estimates from above how many states the compiled pattern has; anything over maxStates is as good as infinite.
func states(x *syntax.Regexp) int {
	n := 2 + len(x.Rune)/64 // a class is searched by halves
	if x.Op == syntax.OpLiteral {
		n = 1 + len(x.Rune)
	}
	for _, sub := range x.Sub {
		n = min(n+states(sub), maxStates+1)
	}
	if x.Op == syntax.OpRepeat {
		n = min((n+1)*(1+max(x.Min, x.Max)), maxStates+1)
	}
	return n
}

func fnMatches(r *run, c *call, args []any) (any, error) {
	s, ok, err := r.textArg(c, args[0])
	if err != nil {
		return nil, err
	}
	text, patOK, err := r.textArg(c, args[1])
	if err != nil {
		return nil, err
	}
	if !patOK {
		return nil, r.fail("%s needs a pattern, not null", c.f.name)
	}
	p := c.pattern
	if p == nil {
		if p, err = r.pattern(text); err != nil {
			return nil, err
		}
	}
	if !ok {
		return false, nil
	}
	// A match follows up to cost states for every byte; it cannot be interrupted, so it is paid for in advance.
	if len(s) > 0 && p.cost > math.MaxInt32/len(s) {
		return nil, r.step(math.MaxInt32)
	}
	if err := r.step(1 + len(s)*p.cost/64); err != nil {
		return nil, err
	}
	return p.re.MatchString(s), nil
}

// pattern compiles a pattern known only now, once per evaluation.
func (r *run) pattern(text string) (*pattern, error) {
	if p, ok := r.patterns[text]; ok {
		return p, r.scan(len(text))
	}
	if err := r.step(200 + 2*len(text)); err != nil { // parsing
		return nil, err
	}
	p, problem := compilePattern(text)
	if problem != "" {
		return nil, r.fail("%s", problem)
	}
	if err := r.alloc(64 * p.cost); err != nil {
		return nil, err
	}
	if r.patterns == nil {
		r.patterns = map[string]*pattern{}
	}
	r.patterns[text] = p
	return p, nil
}

func fnStr(r *run, _ *call, args []any) (any, error) { return r.text(args[0]) }

func fnInt(r *run, c *call, args []any) (any, error) {
	v, err := fnNum(r, c, args)
	if f, ok := v.(float64); ok && err == nil {
		return wholeIfFits(math.Trunc(f)), nil
	}
	return v, err
}

func fnNum(r *run, c *call, args []any) (any, error) {
	switch x := args[0].(type) {
	case nil:
		return nil, nil
	case bool:
		return int64(boolInt(x)), nil
	case string:
		if err := r.scan(len(x)); err != nil {
			return nil, err
		}
		digits := strings.TrimSpace(x)
		if v, ok := normNumber(json.Number(digits)); ok {
			if n, huge := v.(json.Number); !huge || wholeNumber(string(n)) {
				return v, nil
			}
		}
		return nil, r.fail("%s cannot read %q as a number", c.f.name, clip(x))
	case time.Time:
		if x.Nanosecond() == 0 {
			return x.Unix(), nil
		}
		return float64(x.Unix()) + float64(x.Nanosecond())/1e9, nil
	case time.Duration:
		return plain(x), nil
	}
	if isNumber(args[0]) {
		return args[0], nil
	}
	return nil, r.fail("%s cannot make a number of %s", c.f.name, typeName(args[0]))
}

func fnBool(r *run, c *call, args []any) (any, error) {
	s, ok := args[0].(string)
	if !ok {
		return Truth(args[0]), nil
	}
	if len(s) <= len("false") {
		switch strings.ToLower(s) {
		case "true", "1":
			return true, nil
		case "false", "0", "":
			return false, nil
		}
	}
	return nil, r.fail("%s cannot read %q as true or false; compare with == instead", c.f.name, clip(s))
}
