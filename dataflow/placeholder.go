package dataflow

import (
	"encoding/json"
	"strings"

	"tandem/payload"
	"tandem/text"
)

// Style is the brackets a placeholder is written in. All styles mean the same.
type Style string

// The bracket styles.
const (
	StyleDouble Style = "{{}}"
	StyleTriple Style = "{{{}}}"
	StyleDollar Style = "${}"
)

// placeholder is one placeholder of a template, taken apart once.
type placeholder struct {
	// raw is the placeholder as written, brackets included.
	raw   string
	style Style
	// at is the JSON path of the string it stands in, offset its place in that string's text.
	at     string
	offset int
	// path is the whole path, head its first name. problem is set instead when it cannot be read as a path.
	path    payload.Path
	head    string
	problem string
	// outputs tells a.outputs.b and a.output.b; rest is what follows, otherwise what follows the head.
	outputs bool
	rest    payload.Path
	// joined is head_b for a.b: the name under which b of node a stands in runtime_metadata.
	joined string
}

func newPlaceholder(raw string, style Style, offset int, path payload.Path) *placeholder {
	p := &placeholder{raw: raw, style: style, offset: offset, path: path, head: path[0].Key, rest: path[1:]}
	if len(path) == 1 {
		return p
	}
	second := path[1]
	switch {
	case second.Bracketed:
	case second.Key == "outputs" || second.Key == "output":
		p.outputs, p.rest = true, path[2:]
	default:
		p.joined = p.head + "_" + second.Key
	}
	return p
}

// token is a stretch of a text: literal words, or a placeholder.
type token struct {
	text string
	p    *placeholder
}

// loose is an opening bracket that no closing one follows. It is literal text.
type loose struct {
	raw    string
	offset int
}

// parseText cuts a text into literal words and placeholders. It never refuses a text:
//
//   - a backslash before an opening bracket makes it literal and disappears; two stand for one backslash;
//   - an opening bracket that is never closed is literal;
//   - what stands between brackets but is not a path is a placeholder that cannot be resolved, so that a slip is an error
//     in parameters and not silence;
//   - of a run of braces the innermost three count if the closing side has three as well, else the innermost two.
func parseText(s string) (tokens []token, open []loose) {
	var words strings.Builder
	emit := func(p *placeholder) {
		if words.Len() > 0 {
			tokens = append(tokens, token{text: words.String()})
			words.Reset()
		}
		tokens = append(tokens, token{p: p})
	}
	i := 0
	for i < len(s) {
		j := nextOpening(s, i)
		if j < 0 {
			words.WriteString(s[i:])
			break
		}
		k := j
		for k > i && s[k-1] == '\\' {
			k--
		}
		words.WriteString(s[i:k])
		for range (j - k) / 2 {
			words.WriteByte('\\')
		}
		body := j
		if s[body] == '$' {
			body++
		}
		for body < len(s) && s[body] == '{' {
			body++
		}
		if (j-k)%2 == 1 { // escaped, however many braces there are
			words.WriteString(s[j:body])
			i = body
			continue
		}
		if s[j] == '$' && body-j > 2 { // ${{…}}: a dollar before a placeholder
			words.WriteByte('$')
			i = j + 1
			continue
		}
		p, end := parseOpening(s, j, body)
		if p == nil {
			words.WriteString(s[j:body])
			open = append(open, loose{s[j:body], j})
			i = body
			continue
		}
		words.WriteString(s[j:p.offset])
		emit(p)
		i = end
	}
	if words.Len() > 0 {
		tokens = append(tokens, token{text: words.String()})
	}
	return tokens, open
}

// parseOpening reads the placeholder whose opening bracket is s[j:body], or returns nil if nothing closes it.
func parseOpening(s string, j, body int) (*placeholder, int) {
	style, closing, start := StyleDouble, "}}", body-2
	if s[j] == '$' {
		style, closing, start = StyleDollar, "}", j
	}
	path, end, problem := payload.ScanPath(s, body)
	if problem == "" {
		if style == StyleDouble && body-j > 2 && strings.HasPrefix(s[end:], "}}}") {
			return newPlaceholder(s[body-3:end+3], StyleTriple, body-3, path), end + 3
		}
		if strings.HasPrefix(s[end:], closing) {
			end += len(closing)
			return newPlaceholder(s[start:end], style, start, path), end
		}
		problem = "is not one path of names"
	}
	reach := nextOpening(s, body)
	if reach < 0 {
		reach = len(s)
	}
	at := strings.Index(s[body:reach], closing)
	if at < 0 {
		return nil, 0
	}
	if strings.TrimSpace(s[body:body+at]) == "" {
		problem = "is empty"
	}
	end = body + at + len(closing)
	if style == StyleDouble && body-j > 2 && strings.HasPrefix(s[end:], "}") {
		style, start, end = StyleTriple, body-3, end+1
	}
	return &placeholder{raw: s[start:end], style: style, offset: start, problem: problem}, end
}

// nextOpening returns where the next {{ or ${ stands at or after i, or -1.
func nextOpening(s string, i int) int {
	for ; i+1 < len(s); i++ {
		at := strings.IndexByte(s[i:], '{')
		if at < 0 {
			return -1
		}
		i += at
		if i > 0 && s[i-1] == '$' && at > 0 {
			return i - 1
		}
		if i+1 < len(s) && s[i+1] == '{' {
			return i
		}
	}
	return -1
}

// Reference is a placeholder as validation sees it: what it names, without any data.
type Reference struct {
	// Raw is the placeholder as written, brackets included.
	Raw   string `json:"raw"`
	Style Style  `json:"style"`
	// Path is the JSON path of the string it stands in, empty for a text of its own; Offset is in bytes of that string.
	Path   string `json:"path"`
	Offset int    `json:"offset"`
	// Head is the first name: a node's id or name, or a name in metadata. Node says that it can only be a node, since an
	// output is asked for.
	Head string `json:"head,omitempty"`
	Node bool   `json:"node,omitempty"`
	// Rest is what follows the head, without output or outputs.
	Rest []string `json:"rest,omitempty"`
	// Problem is set when the brackets hold no path (an error when resolved in parameters) or never close (literal text,
	// Unterminated). It names the remedy.
	Problem      string `json:"problem,omitempty"`
	Unterminated bool   `json:"unterminated,omitempty"`
}

// References lists the placeholders of a parameter object, in order, and the brackets that look like one and are not.
// What is under a shielded path is not searched; see [Compile].
func References(raw json.RawMessage, shielded ...string) ([]Reference, error) {
	t, err := Compile(raw, shielded...)
	if err != nil {
		return nil, err
	}
	return t.References(), nil
}

// TextReferences is References for one text.
func TextReferences(text string) ([]Reference, error) {
	t, err := CompileText(text)
	if err != nil {
		return nil, err
	}
	return t.References(), nil
}

// References lists the placeholders of a template, in order, then the brackets that never close.
func (t *Template) References() []Reference {
	var refs []Reference
	for _, part := range t.parts {
		if p := part.p; p != nil {
			refs = append(refs, p.reference())
		}
	}
	return append(refs, t.open...)
}

func (p *placeholder) reference() Reference {
	ref := Reference{Raw: p.raw, Style: p.style, Path: p.at, Offset: p.offset, Head: p.head, Node: p.outputs}
	if p.problem != "" {
		ref.Problem = p.complaint().String()
	}
	for _, s := range p.rest {
		ref.Rest = append(ref.Rest, s.Key)
	}
	return ref
}

// complaint says why a placeholder can never be resolved.
func (p *placeholder) complaint() text.Text {
	return text.Of("the placeholder %q %s"+
		`; write a path such as {{node.outputs.field}} or {{node["odd key"]}}, or put a backslash before the brackets to keep them as text`, shorten(p.raw), p.problem)
}

func (o loose) reference(at string) Reference {
	style := StyleDouble
	switch {
	case o.raw[0] == '$':
		style = StyleDollar
	case len(o.raw) > 2:
		style = StyleTriple
	}
	return Reference{Raw: o.raw, Style: style, Path: at, Offset: o.offset, Unterminated: true,
		Problem: "the brackets " + quoteShort(o.raw) + " are never closed and stay as text; close them, or put a backslash before them to say so"}
}
