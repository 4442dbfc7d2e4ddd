package dataflow

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"tandem/fault"
	"tandem/payload"
)

// The limits of templates.
const (
	// MaxOutput is how many bytes one resolved template may have, and one template as written.
	MaxOutput = 10 << 20
	// MaxPlaceholders is how many placeholders one template may have.
	MaxPlaceholders = 1000
)

// Template is a parameter object or a text whose placeholders have been found. It is immutable and may be shared.
type Template struct {
	// raw is the value as written, without insignificant white space.
	raw json.RawMessage
	// parts follow one another in the resolved value.
	parts []part
	// size is the bytes of all literal parts.
	size int
	open []Reference
	// tokens are those of a text of its own, for Bind; nil for a parameter object.
	tokens []token
	text   bool
}

// part is literal JSON followed by what a placeholder yields.
type part struct {
	literal []byte
	p       *placeholder // nil only at the end
	// whole placeholders are all of their string and keep the type of their value; others stand inside a string.
	whole bool
	// prompt says that it stands in a prompt: a name that nothing answers to stays as written.
	prompt bool
}

// Compile finds the placeholders in every string of a JSON value, keys excepted. Order of keys and digits of numbers stay as written; of a
// key written twice the last value counts. Strings at or under a shielded path ("rules[0].code", or "rules[*].code" for all) are left
// alone: sources of code and expressions are never searched. Absent parameters (nil) compile like {}.
func Compile(raw json.RawMessage, shielded ...string) (*Template, error) {
	return CompileMarked(raw, Marks{Shielded: shielded})
}

// Marks say which parts of a value are not ordinary text, by their paths ("rules[0].code", or "rules[*].code" for all).
type Marks struct {
	// Shielded are left alone with all that is in them.
	Shielded []string
	// Prompts are read by models, with all that is in them: a placeholder there that nothing answers to stays as written, and the trace
	// has a warning. Only null, if it is asked for, takes its place.
	Prompts []string
}

// CompileMarked is Compile for a value with parts that are read differently.
func CompileMarked(raw json.RawMessage, marks Marks) (*Template, error) {
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	if len(raw) > MaxOutput {
		return nil, fault.Newf(fault.TooLarge, "the parameters have %d bytes; at most %d are taken", len(raw), MaxOutput)
	}
	value, err := payload.Normalize(raw, payload.Limits{})
	if err != nil {
		return nil, fault.Newf(fault.InvalidConfig, "the parameters cannot be read: %w", err)
	}
	shields := &shield{}
	for _, path := range marks.Shielded {
		end, err := shields.addPath(path)
		if err != nil {
			return nil, err
		}
		end.here = true
	}
	for _, path := range marks.Prompts {
		end, err := shields.addPath(path)
		if err != nil {
			return nil, err
		}
		end.prompt = true
	}
	c := compiler{t: &Template{raw: value}}
	if err := c.value(value, []*shield{shields}); err != nil {
		return nil, err
	}
	c.finish()
	return c.t, nil
}

// CompileText finds the placeholders in one text. The template resolves to a JSON string, or to the value of its only
// placeholder if the text is nothing else.
func CompileText(text string) (*Template, error) {
	if len(text) > MaxOutput {
		return nil, fault.Newf(fault.TooLarge, "the text has %d bytes; at most %d are taken", len(text), MaxOutput)
	}
	if !utf8.ValidString(text) {
		return nil, fault.New(fault.InvalidConfig, "the text is not valid UTF-8")
	}
	c := compiler{t: &Template{raw: payload.AppendText(nil, text), text: true}}
	if err := c.str(text); err != nil {
		return nil, err
	}
	c.t.tokens, _ = parseText(text)
	c.finish()
	return c.t, nil
}

// Static says that the template has no placeholder, so that it resolves to the same value always.
func (t *Template) Static() bool {
	return len(t.parts) == 0 || t.parts[0].p == nil
}

// Raw returns the value as written, without insignificant white space. It is not to be changed.
func (t *Template) Raw() json.RawMessage { return t.raw }

type compiler struct {
	t       *Template
	pending []byte
	count   int
	// prompts is how many prompts the compiler is inside of.
	prompts int
	// at is where the compiler is. It is spelled only for a placeholder or an error: most values have neither.
	at payload.Path
}

func (c *compiler) finish() {
	if len(c.pending) > 0 {
		c.t.parts = append(c.t.parts, part{literal: c.pending})
	}
	for _, p := range c.t.parts {
		c.t.size += len(p.literal)
	}
}

// value compiles one value. shields are what is left of the shielded paths that lead here.
func (c *compiler) value(raw []byte, shields []*shield) error {
	if slices.ContainsFunc(shields, func(s *shield) bool { return s.here }) {
		c.pending = append(c.pending, raw...)
		return nil
	}
	if slices.ContainsFunc(shields, func(s *shield) bool { return s.prompt }) {
		c.prompts++
		defer func() { c.prompts-- }()
	}
	var err error
	switch raw[0] {
	case '"':
		return c.quoted(raw)
	case '{':
		c.pending = append(c.pending, '{')
		for i, m := range payload.Members(raw) {
			if i > 0 {
				c.pending = append(c.pending, ',')
			}
			c.pending = append(payload.AppendText(c.pending, m.Key), ':')
			if err := c.inside(m.Value, payload.KeyStep(m.Key), shields); err != nil {
				return err
			}
		}
		c.pending = append(c.pending, '}')
	case '[':
		c.pending = append(c.pending, '[')
		n := 0
		payload.EachItem(raw, func(value []byte) bool {
			if n > 0 {
				c.pending = append(c.pending, ',')
			}
			err = c.inside(value, payload.Step{Key: strconv.Itoa(n), Index: n, Bracketed: true}, shields)
			n++
			return err == nil
		})
		c.pending = append(c.pending, ']')
	default:
		c.pending = append(c.pending, raw...)
	}
	return err
}

// inside compiles a value one step further in.
func (c *compiler) inside(raw []byte, step payload.Step, shields []*shield) error {
	c.at = append(c.at, step)
	err := c.value(raw, under(shields, step.Key))
	c.at = c.at[:len(c.at)-1]
	return err
}

// shield is the shielded paths with the same beginning: a tree by path payload.Step, so that one step into the value costs
// a look-up however many paths there are.
type shield struct {
	here   bool // a path ends here: the value is shielded with all that is in it
	prompt bool // a path ends here: the value is a prompt with all that is in it
	keys   map[string]*shield
	any    *shield // under "*"
}

// addPath returns where a path ends.
func (s *shield) addPath(path string) (*shield, error) {
	spelled := strings.ReplaceAll(path, "[*]", ".*")
	segs, end, problem := payload.ScanPath(spelled, 0)
	if problem != "" || end != len(spelled) {
		return nil, fault.Newf(fault.Internal, "the marked path %q is not a path", path)
	}
	for _, seg := range segs {
		next := s.any
		if seg.Key != "*" {
			next = s.keys[seg.Key]
		}
		if next == nil {
			next = &shield{}
			switch {
			case seg.Key == "*":
				s.any = next
			case s.keys == nil:
				s.keys = map[string]*shield{seg.Key: next}
			default:
				s.keys[seg.Key] = next
			}
		}
		s = next
	}
	return s, nil
}

// under returns what is left of shields one step further in: one for each that has the key, one for each that has "*".
// There are several only where paths have a key beside a "*".
func under(shields []*shield, key string) []*shield {
	var left []*shield
	for _, s := range shields {
		if next := s.keys[key]; next != nil {
			left = append(left, next)
		}
		if s.any != nil {
			left = append(left, s.any)
		}
	}
	return left
}

func (c *compiler) quoted(raw []byte) error {
	text := payload.Unquote(raw[1 : len(raw)-1])
	if nextOpening(text, 0) < 0 && strings.IndexByte(text, 0) < 0 {
		c.pending = append(c.pending, raw...)
		return nil
	}
	return c.str(text)
}

func (c *compiler) str(text string) error {
	at := c.at.String()
	if i := strings.IndexByte(text, 0); i >= 0 {
		return fault.Newf(fault.InvalidConfig, "the text%s has a NUL character at byte %d; remove it", where(at), i).With("path", at)
	}
	tokens, open := parseText(text)
	for _, o := range open {
		c.t.open = append(c.t.open, o.reference(at))
	}
	whole := len(tokens) == 1 && tokens[0].p != nil
	if !whole {
		c.pending = append(c.pending, '"')
	}
	for _, token := range tokens {
		if token.p == nil {
			c.pending = payload.AppendEscaped(c.pending, token.text)
			continue
		}
		if c.count++; c.count > MaxPlaceholders {
			return fault.Newf(fault.TooLarge, "there are more than %d placeholders", MaxPlaceholders).With("path", at)
		}
		token.p.at = at
		c.t.parts = append(c.t.parts, part{literal: c.pending, p: token.p, whole: whole, prompt: c.prompts > 0})
		c.pending = nil
	}
	if !whole {
		c.pending = append(c.pending, '"')
	}
	return nil
}

// Unresolved says what becomes of a placeholder that nothing answers to.
type Unresolved string

// The ways to treat an unresolved placeholder. The first three are those of a workflow's on_unresolved setting.
const (
	// UnresolvedError refuses with the code unresolved_placeholder. It is the default.
	UnresolvedError Unresolved = "error"
	// UnresolvedKeep leaves the placeholder as written.
	UnresolvedKeep Unresolved = "keep"
	// UnresolvedNull puts null; inside other text the word null.
	UnresolvedNull Unresolved = "null"
	// UnresolvedWarn is for prompts: the placeholder stays as written and the trace has a warning.
	UnresolvedWarn Unresolved = "warn"
)

// ParseUnresolved reads an on_unresolved setting; empty means error.
func ParseUnresolved(setting string) (Unresolved, error) {
	switch u := Unresolved(setting); u {
	case "":
		return UnresolvedError, nil
	case UnresolvedError, UnresolvedKeep, UnresolvedNull:
		return u, nil
	}
	return "", fault.Newf(fault.InvalidConfig, "on_unresolved is %q; it can be error, keep or null", setting)
}

// Request says for whom a template is resolved.
type Request struct {
	View View
	// StepID is the activation's node, for the trace.
	StepID string
	// Own is the node's own input, for text fields of its configuration: names are looked up there first. Nil otherwise.
	Own json.RawMessage
	// Apart is what the loops around the node do not hand on, the inner ones first. Handed says that it would be part of the
	// node's own input, so that its names are found there.
	Apart  []Apart
	Handed bool
	// OnUnresolved is UnresolvedError when empty.
	OnUnresolved Unresolved
}

// Resolve puts values in the place of the placeholders. A string that is one placeholder and nothing else becomes the
// value with its type; inside other text a string is put as it is, null as the word null, and everything else as
// compact JSON that people can read. What was put in is data: it is not searched again.
//
// The result may share memory with the template; it is not to be changed.
func (t *Template) Resolve(l *Layers, r Request) (json.RawMessage, ResolveTrace, error) {
	trace := ResolveTrace{StepID: r.StepID, Original: t.raw}
	if t.Static() {
		if len(t.parts) == 1 {
			trace.Resolved = t.parts[0].literal
		}
		return trace.Resolved, trace, nil
	}
	rd, err := l.reader(r)
	if err != nil {
		return nil, trace, err
	}
	out := make([]byte, 0, t.size+64*len(t.parts))
	var missing []*placeholder
	for i := range t.parts {
		part := &t.parts[i]
		out = append(out, part.literal...)
		p := part.p
		if p == nil {
			continue
		}
		unresolved := r.OnUnresolved
		if part.prompt && unresolved != UnresolvedNull {
			unresolved = UnresolvedWarn
		}
		hit, ok := rd.find(p)
		switch {
		case ok && part.whole:
			out = append(out, hit.raw...)
		case ok:
			out = appendInText(out, hit.raw)
		case unresolved == UnresolvedNull:
			trace.warn(p, rd.explain(p), "null stands in its place")
			out = append(out, "null"...)
		case unresolved == UnresolvedKeep || unresolved == UnresolvedWarn:
			if unresolved == UnresolvedWarn {
				trace.warn(p, rd.explain(p), "it stays as written")
			}
			if part.whole {
				out = payload.AppendText(out, p.raw)
			} else {
				out = payload.AppendEscaped(out, p.raw)
			}
		default:
			missing = append(missing, p)
		}
		if len(out) > MaxOutput {
			return nil, trace, fault.Newf(fault.TooLarge, "with the value of %s%s the resolved parameters have more than %d bytes; hand large values on by reference",
				quoteShort(p.raw), where(p.at), MaxOutput).With("path", p.at).With("placeholder", p.raw)
		}
	}
	if rd.ownErr != nil {
		return nil, trace, rd.ownErr
	}
	if len(missing) > 0 {
		return nil, trace, rd.unresolved(missing)
	}
	trace.Resolved = out
	return out, trace, nil
}

// appendInText appends a value as it stands inside a JSON string.
func appendInText(dst, raw []byte) []byte {
	if raw[0] == '"' {
		return append(dst, raw[1:len(raw)-1]...) // its escapes are those of JSON already
	}
	raw = payload.Readable(raw)
	start := 0
	for i, c := range raw {
		if c == '"' || c == '\\' {
			dst = append(append(dst, raw[start:i]...), '\\', c)
			start = i + 1
		}
	}
	return append(dst, raw[start:]...)
}

// ResolveText resolves like Resolve and returns text: a string's own words, any other value as compact JSON.
func (t *Template) ResolveText(l *Layers, r Request) (string, ResolveTrace, error) {
	value, trace, err := t.Resolve(l, r)
	if err != nil {
		return "", trace, err
	}
	return payload.Text(value), trace, nil
}

// Bound is a text whose placeholders are values beside it, for sources into which nothing may be spliced: expressions
// and SQL. Value i stands between text i and text i+1.
type Bound struct {
	Text   []string
	Values []json.RawMessage
}

// Bind resolves the placeholders of a template made by [CompileText] without putting them into the text. A kept or
// unresolved placeholder cannot stand in such a source, so anything but UnresolvedNull is an error.
func (t *Template) Bind(l *Layers, r Request) (Bound, error) {
	if !t.text {
		return Bound{}, fault.New(fault.Internal, "only a text can be bound; compile it with CompileText")
	}
	rd, err := l.reader(r)
	if err != nil {
		return Bound{}, err
	}
	b := Bound{Text: []string{""}}
	var missing []*placeholder
	for _, token := range t.tokens {
		if token.p == nil {
			b.Text[len(b.Text)-1] += token.text
			continue
		}
		hit, ok := rd.find(token.p)
		switch {
		case ok:
			b.Values = append(b.Values, hit.raw)
		case r.OnUnresolved == UnresolvedNull:
			b.Values = append(b.Values, json.RawMessage("null"))
		default:
			missing = append(missing, token.p)
		}
		b.Text = append(b.Text, "")
	}
	if rd.ownErr != nil {
		return Bound{}, rd.ownErr
	}
	if len(missing) > 0 {
		return Bound{}, rd.unresolved(missing)
	}
	return b, nil
}
