package workflow

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"tandem/payload"
	"tandem/text"
)

// Options say how a definition is read. The zero value is useful, except that older spellings of kinds need Kinds.
type Options struct {
	// Kinds resolves older spellings of kinds. Without it they stay as written.
	Kinds Kinds
	// Pinned lets nodes have pinned outputs, which only the definitions of tests have.
	Pinned bool
	// MaxBytes limits the file and MaxYAMLBytes a file in YAML, which takes several times the memory to read; MaxValues
	// the values in it, MaxDepth how deep they nest; MaxNodes the nodes and MaxConnections the connections. Zero is the
	// default.
	MaxBytes, MaxYAMLBytes, MaxValues, MaxDepth, MaxNodes, MaxConnections int
}

// The limits by default. A workflow with the most nodes fits into a JSON file of the most bytes and values.
const (
	DefaultMaxBytes       = 32 << 20
	DefaultMaxYAMLBytes   = 8 << 20
	DefaultMaxValues      = 3_000_000
	DefaultMaxDepth       = 128
	DefaultMaxNodes       = 100_000
	DefaultMaxConnections = 500_000
)

// withDefaults puts the defaults in for what is zero.
func (o Options) withDefaults() Options {
	o.MaxBytes = cmp.Or(o.MaxBytes, DefaultMaxBytes)
	o.MaxYAMLBytes = min(cmp.Or(o.MaxYAMLBytes, DefaultMaxYAMLBytes), o.MaxBytes)
	o.MaxValues = cmp.Or(o.MaxValues, DefaultMaxValues)
	o.MaxDepth = cmp.Or(o.MaxDepth, DefaultMaxDepth)
	o.MaxNodes = cmp.Or(o.MaxNodes, DefaultMaxNodes)
	o.MaxConnections = cmp.Or(o.MaxConnections, DefaultMaxConnections)
	return o
}

// Format is the language of a file.
type Format string

// The formats.
const (
	JSON Format = "json"
	YAML Format = "yaml"
)

// Source is a definition together with the file it was read from, so that problems can be given their place in it.
type Source struct {
	Definition *Definition
	Format     Format

	root     value
	problems []Problem
}

// Parse reads a definition from JSON or YAML; which of them is told by the content. There is no source when the text
// cannot be read at all. Otherwise what is wrong with fields is among the problems, each with line and column, and the
// source holds the rest, so that [Source.Validate] can report everything at once.
func Parse(data []byte, opts Options) (*Source, []Problem) {
	opts = opts.withDefaults()
	s, repeated, problem := readDocument(data, opts)
	if problem != nil {
		return nil, []Problem{*problem}
	}
	d := &decoder{kinds: opts.Kinds, pinned: opts.Pinned, maxNodes: opts.MaxNodes, maxConnections: opts.MaxConnections,
		repeated: make(map[string]bool, len(repeated))}
	for i := range repeated {
		d.report(repeated[i].problem())
		d.repeated[repeated[i].path] = true
	}
	s.Definition = d.definition(&s.root)
	if s.Definition == nil {
		return nil, d.kept
	}
	s.problems = d.ordered()
	s.Locate(s.problems)
	return s, slices.Clone(s.problems)
}

// readDocument reads a document within the limits, whatever it describes, and tells which names stand in it twice.
func readDocument(data []byte, opts Options) (s *Source, repeated []flaw, wrong *Problem) {
	if len(data) > opts.MaxBytes {
		p := errorAt(ProblemTooLarge, "",
			"the definition has %d bytes, %d are allowed; split the workflow and use FLOW.SUB_WORKFLOW, or keep large data outside of it",
			len(data), opts.MaxBytes)
		return nil, nil, &p
	}
	text, fault := plainText(data)
	if fault == nil {
		s = &Source{Format: FormatOf(text)}
		limits := limits{depth: opts.MaxDepth, values: opts.MaxValues}
		switch {
		case s.Format == JSON:
			s.root, repeated, fault = readJSON(text, limits)
		case len(text) > opts.MaxYAMLBytes:
			p := errorAt(ProblemTooLarge, "",
				"the definition has %d bytes, %d are allowed in YAML; write it as JSON, which may have %d", len(text), opts.MaxYAMLBytes, opts.MaxBytes)
			return nil, nil, &p
		default:
			s.root, repeated, fault = readYAML(text, limits, 2*int64(opts.MaxYAMLBytes))
		}
	}
	if fault != nil {
		p := fault.problem()
		return nil, nil, &p
	}
	return s, repeated, nil
}

// plainText refuses what is not UTF-8 text. A byte order mark of UTF-8 is passed over.
func plainText(data []byte) (string, *flaw) {
	text := string(data)
	if strings.HasPrefix(text, "\xff\xfe") || strings.HasPrefix(text, "\xfe\xff") {
		return "", &flaw{ProblemSyntax, "", "the file is in UTF-16; save it as UTF-8", 1, 1}
	}
	text = strings.TrimPrefix(text, "\ufeff")
	if strings.TrimSpace(text) == "" {
		return "", &flaw{ProblemSyntax, "", emptyFile, 1, 1}
	}
	bad, message := strings.IndexByte(text, 0), "the file holds a NUL character; it is not a text file, or was damaged"
	if bad < 0 && !utf8.ValidString(text) {
		message = "the file is not valid UTF-8 here; save it as UTF-8"
		for i := 0; i < len(text); {
			r, size := utf8.DecodeRuneInString(text[i:])
			if r == utf8.RuneError && size == 1 {
				bad = i
				break
			}
			i += size
		}
	}
	if bad < 0 {
		return text, nil
	}
	start := strings.LastIndexByte(text[:bad], '\n') + 1
	return "", &flaw{ProblemSyntax, "", message, int32(strings.Count(text[:bad], "\n") + 1),
		int32(utf8.RuneCountInString(text[start:bad]) + 1)}
}

// FormatOf tells JSON from YAML: a JSON object begins with a key in double quotes.
func FormatOf(text string) Format {
	text = strings.TrimLeft(text, " \t\r\n")
	if strings.HasPrefix(text, "[") {
		return JSON
	}
	if rest, ok := strings.CutPrefix(text, "{"); ok {
		rest = strings.TrimLeft(rest, " \t\r\n")
		if rest == "" || rest[0] == '"' || rest[0] == '}' {
			return JSON
		}
	}
	return YAML
}

// Locate gives problems without a line the line and column of their path, or of the nearest thing around it that the
// file has.
func (s *Source) Locate(problems []Problem) {
	found := make(lookups)
	for i := range problems {
		if problems[i].Line == 0 {
			at := s.root.walk(problems[i].Path, found)
			problems[i].Line, problems[i].Column = int(at.line), int(at.col)
		}
	}
}

// Validate reports every problem of the file: those of reading it and those of [Validate], with their places, in the
// order of the file. What validation says about a value that could not be read is left out.
func (s *Source) Validate(rules Rules) []Problem {
	problems := slices.Clone(s.problems)
	unread := make(map[string]bool)
	for _, p := range s.problems {
		if p.Severity == SeverityError && p.Code == ProblemWrongType {
			unread[p.Path] = true
		}
	}
	for _, p := range Validate(s.Definition, rules) {
		covered := false
		for path := p.Path; path != "" && !covered; path = parentPath(path) {
			covered = unread[path]
		}
		if !covered {
			problems = append(problems, p)
		}
	}
	s.Locate(problems)
	slices.SortStableFunc(problems, func(a, b Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return problems
}

// parentPath cuts the last step off a path.
func parentPath(path string) string {
	if i := strings.LastIndexAny(path, ".["); i > 0 {
		return path[:i]
	}
	return ""
}

// decoder makes a definition of a value and notes what does not fit.
type decoder struct {
	kinds                    Kinds
	maxNodes, maxConnections int
	// pinned says that nodes may have pinned outputs.
	pinned bool
	problemList
	// repeated are the paths of keys that stand twice, which were noted when they were read.
	repeated map[string]bool
	// choices are the nodes whose older spelling lets connections name a branch in from_node.
	choices map[string]bool
}

// spot is the path of a field, written out only for a problem.
type spot struct{ path, field string }

func (s spot) String() string {
	if s.field == "" {
		return s.path
	}
	return payload.JoinKey(s.path, s.field)
}

func (d *decoder) wrongType(at spot, v *value, want text.Text) {
	if !d.full(ProblemWrongType) {
		d.report(errorAt(ProblemWrongType, at.String(), "%s was expected, not %s; write one, or leave it out", want, v.kind.words()))
	}
}

// fields are the fields that an object of the format can have, in its order, and those it is known to have had.
type fields struct {
	what    text.Text
	known   []string
	ignored func(folded string) bool
	old     []string // read or dropped with a warning
}

// each calls read for every known field that is there and not null, and reports the others.
func (d *decoder) each(path string, v *value, f *fields, read func(field string, at spot, v *value)) {
	seen := make([]string, 0, len(f.known))
	for i := range v.inside.names {
		n := &v.inside.names[i]
		field, ok := match(n.text, f.known)
		if !ok {
			field, ok = match(n.text, f.old)
		}
		if !ok {
			if (f.ignored == nil || !f.ignored(fold(n.text))) && !d.full(ProblemUnknownField) {
				p := errorAt(ProblemUnknownField, payload.JoinKey(path, n.text), "%s has no field %s%s", f.what, shortened(n.text),
					suggestion(n.text, f.known, text.Of("remove it or use one of: %s", strings.Join(f.known, ", "))))
				p.Line, p.Column = int(n.line), int(n.col)
				d.report(p)
			}
			continue
		}
		if slices.Contains(seen, field) {
			if at := payload.JoinKey(path, n.text); !d.repeated[at] && !d.full(ProblemDuplicateKey) {
				p := errorAt(ProblemDuplicateKey, at, "%s has the field %q in two spellings; remove one", f.what, field)
				p.Line, p.Column = int(n.line), int(n.col)
				d.repeated[at] = true
				d.report(p)
			}
			continue
		}
		seen = append(seen, field)
		read(field, spot{path, field}, &v.inside.items[i])
	}
}

// match finds the field that a name spells.
func match(text string, known []string) (string, bool) {
	if slices.Contains(known, text) {
		return text, true
	}
	folded := fold(text)
	for _, field := range known {
		if fold(field) == folded {
			return field, true
		}
	}
	return "", false
}

func (d *decoder) object(at spot, v *value, what text.Text) bool {
	if v.kind != kindObject {
		d.wrongType(at, v, what)
		return false
	}
	return true
}

// text reads a string field; null is not a value.
func (d *decoder) text(to *string, at spot, v *value) {
	switch v.kind {
	case kindString:
		*to = v.text
	case kindNull:
	case kindNumber, kindBool:
		if d.full(ProblemWrongType) {
			return
		}
		d.report(errorAt(ProblemWrongType, at.String(), "a string was expected, not %s; put it in quotes: \"%s\"", v.kind.words(), v.text))
	default:
		d.wrongType(at, v, text.Of("a string"))
	}
}

func (d *decoder) texts(to *[]string, at spot, v *value) {
	switch v.kind {
	case kindNull:
	case kindList:
		list := make([]string, 0, len(v.items()))
		for i := range v.items() {
			item := &v.items()[i]
			word := item.text
			if item.kind != kindString {
				word = ""
				here := spot{path: payload.JoinIndex(at.String(), i)}
				if item.kind == kindNull {
					d.wrongType(here, item, text.Of("a string"))
				}
				d.text(&word, here, item)
			}
			list = append(list, word)
		}
		*to = list
	default:
		d.wrongType(at, v, text.Of("a list of strings"))
	}
}
