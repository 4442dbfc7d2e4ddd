package llm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"tandem/fault"
)

// The bounds of what is looked for in an answer.
const (
	// maxAnswer is the longest text in which an object is looked for, in bytes.
	maxAnswer = 4 << 20
	// maxProblems is how many problems an error lists: a model mends a few at a time.
	maxProblems = 8
	// maxRepair is how much of an error goes back to a model, in bytes.
	maxRepair = 4 << 10
	// maxExponent is the largest exponent of a number: comparing larger ones exactly takes more memory than there is.
	maxExponent = 400
)

// FindJSON finds the JSON object that a model was asked for in what it wrote: the whole text, within ``` fences, or
// anywhere in prose. Among several the first object wins, and an array only where there is no object; what stands within
// fences comes before what stands around them, and values within other values do not count. JSON that breaks off at the
// end of the text is an error even if smaller objects within it are whole: half an answer must not pass for one.
func FindJSON(text string) (json.RawMessage, error) {
	if len(text) > maxAnswer {
		return nil, fault.Newf(fault.TooLarge, "the answer has %d bytes; JSON is looked for in at most %d", len(text), maxAnswer)
	}
	text = strings.TrimSpace(strings.TrimPrefix(strings.ToValidUTF8(text, "\uFFFD"), "\uFEFF"))
	s := search{budget: 8*len(text) + 1<<16}
	if n, end := scanJSON(text); end == scanWhole && n == len(text) && (text[0] == '{' || text[0] == '[') {
		return json.RawMessage(text), nil
	}
	for _, block := range fences(text) {
		if found := s.in(block); found != "" {
			return json.RawMessage(found), nil
		}
	}
	if !s.cut {
		if found := s.in(text); found != "" {
			return json.RawMessage(found), nil
		}
	}
	switch {
	case s.cut:
		return nil, fault.New(fault.OutputInvalid, "the answer breaks off before its JSON is complete; answer with one complete JSON object, and shorter")
	case s.budget < 0:
		return nil, fault.New(fault.OutputInvalid, "the answer has too many braces to find a JSON object among them; answer with one JSON object and nothing else")
	}
	return nil, fault.New(fault.OutputInvalid, "the answer has no JSON object; answer with one JSON object and nothing else")
}

// search looks through texts for values. What it reads in vain is taken from its budget, so that no text takes more than
// a time in proportion to its length.
type search struct {
	budget int
	cut    bool
}

// in returns the first object of a text, else its first array, else nothing.
func (s *search) in(text string) string {
	array := ""
	for i := 0; s.budget >= 0; {
		step := strings.IndexAny(text[i:], "{[")
		if step < 0 {
			break
		}
		i += step
		n, end := scanJSON(text[i:])
		if end == scanWhole {
			if text[i] == '{' {
				return text[i : i+n]
			}
			array = cmp.Or(array, text[i:i+n])
			i += n
			continue
		}
		s.budget -= n + 1
		if end == scanCut {
			// All that follows is within a value that never ends. A bare bracket at the end of a sentence is none.
			if strings.TrimSpace(text[i+1:]) != "" {
				s.cut = true
				return ""
			}
			break
		}
		i++
	}
	return array
}

// fences returns what stands between lines that begin with ```. A last one that is not closed goes to the end.
func fences(text string) []string {
	var blocks []string
	start := -1
	for at := 0; at < len(text); {
		end := strings.IndexByte(text[at:], '\n')
		next := len(text)
		if end >= 0 {
			next = at + end + 1
		}
		line := strings.TrimLeft(text[at:next], " \t>")
		if strings.HasPrefix(line, "```") {
			switch {
			case start >= 0:
				blocks = append(blocks, text[start:at])
				start = -1
			case strings.Contains(line[3:], "```"): // ```{"a":1}``` on one line
				inner := line[3:]
				blocks = append(blocks, inner[:strings.Index(inner, "```")])
			default:
				start = next
				// The object may begin on the line of the fence.
				if open := strings.IndexAny(line, "{["); open >= 0 {
					start = next - len(line) + open
				}
			}
		}
		at = next
	}
	if start >= 0 {
		blocks = append(blocks, text[start:])
	}
	return blocks
}

// Shape is a schema that is ready to check answers.
type Shape struct {
	schema  *jsonschema.Schema
	printer *message.Printer
}

// closedLoader refuses to fetch: a schema cannot make us read files or call servers.
type closedLoader struct{}

func (closedLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%q is outside of the schema; put what it needs under $defs", url)
}

// Compile makes a schema ready. It is JSON Schema 2020-12 unless it says otherwise, and refers to nothing outside of itself.
func (s *Schema) Compile() (*Shape, error) {
	doc, err := decodeNumbers(s.JSON)
	if err != nil {
		return nil, fault.Newf(fault.InvalidConfig, "schema %q: %w", s.Name, err)
	}
	const name = "urn:tandem:answer"
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(closedLoader{})
	if err := c.AddResource(name, doc); err != nil {
		return nil, fault.Newf(fault.InvalidConfig, "schema %q: %w", s.Name, err)
	}
	schema, err := c.Compile(name)
	if err != nil {
		return nil, fault.Newf(fault.InvalidConfig, "schema %q is no usable JSON Schema: %s", s.Name, strings.ReplaceAll(err.Error(), name, "schema")).WithCause(err)
	}
	return &Shape{schema, message.NewPrinter(language.English)}, nil
}

// Check compiles the schema and checks a value with it. Who checks several compiles once.
func (s *Schema) Check(raw json.RawMessage) error {
	shape, err := s.Compile()
	if err != nil {
		return err
	}
	return shape.Check(raw)
}

// Problem is one way in which a value breaks a schema.
type Problem struct {
	// Path is where: names and positions from the outermost value, "answer" for that itself.
	Path    string `json:"path"`
	Message string `json:"message"`
}

// Check refuses a value that breaks the schema: output_invalid, with the first problems in the message, each with its
// path, so that a model that reads it can mend them. The details have the same problems.
func (s *Shape) Check(raw json.RawMessage) error {
	value, err := decodeNumbers(raw)
	if err != nil {
		return fault.Newf(fault.OutputInvalid, "the answer cannot be read: %w", err)
	}
	err = s.schema.Validate(value)
	if err == nil {
		return nil
	}
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return fault.Newf(fault.OutputInvalid, "the answer cannot be checked: %w", err)
	}
	var problems []Problem
	s.collect(invalid, &problems)
	// The validator walks over objects in any order; the same answer must always give the same message.
	slices.SortFunc(problems, func(a, b Problem) int { return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Message, b.Message)) })
	problems = slices.Compact(problems)
	more := ""
	if len(problems) > maxProblems {
		more = fmt.Sprintf("; and %d more", len(problems)-maxProblems)
		problems = problems[:maxProblems]
	}
	lines := make([]string, len(problems))
	for i, p := range problems {
		lines[i] = p.Path + ": " + p.Message
	}
	return fault.Newf(fault.OutputInvalid, "the answer does not fit its schema: %s%s", strings.Join(lines, "; "), more).With("problems", problems)
}

// collect gathers what is wrong itself, not what contains it.
func (s *Shape) collect(e *jsonschema.ValidationError, to *[]Problem) {
	for _, cause := range e.Causes {
		s.collect(cause, to)
	}
	if len(e.Causes) > 0 {
		return
	}
	path := "answer"
	for _, step := range e.InstanceLocation {
		if _, err := strconv.Atoi(step); err == nil {
			path += "[" + step + "]"
		} else {
			path += "." + step
		}
	}
	*to = append(*to, Problem{path, e.ErrorKind.LocalizedString(s.printer)})
}

// Read finds the JSON in an answer and checks it. A nil schema takes any object or array.
func (s *Schema) Read(text string) (json.RawMessage, error) {
	raw, err := FindJSON(text)
	if err != nil || s == nil {
		return raw, err
	}
	if err := s.Check(raw); err != nil {
		return nil, err
	}
	return raw, nil
}

// Repair is the message that asks a model to answer once more, with what was wrong. Languages are zh and en; any other
// reads as en.
func Repair(problem, lang string) Message {
	if len(problem) > maxRepair {
		cut := maxRepair
		for !utf8.RuneStart(problem[cut]) {
			cut--
		}
		problem = problem[:cut] + "…"
	}
	if lang == "zh" || strings.HasPrefix(lang, "zh-") {
		return Message{Role: User, Content: "上一个回答无法使用：" + problem + "\n请改正后重新回答。只输出一个完整的 JSON 对象，不要附带说明。"}
	}
	return Message{Role: User, Content: "The last answer cannot be used: " + problem + "\nCorrect it and answer again, with one complete JSON object and no explanation."}
}

// decodeNumbers reads one JSON value, with its numbers as they are written.
func decodeNumbers(raw json.RawMessage) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("it is no JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one JSON value")
	}
	if wildNumber(v) {
		return nil, fmt.Errorf("a number is out of range; exponents go to %d", maxExponent)
	}
	return v, nil
}

func wildNumber(v any) bool {
	switch x := v.(type) {
	case json.Number:
		if i := strings.IndexAny(string(x), "eE"); i >= 0 {
			exponent, err := strconv.Atoi(string(x[i+1:]))
			return err != nil || exponent > maxExponent || exponent < -maxExponent
		}
	case []any:
		return slices.ContainsFunc(x, wildNumber)
	case map[string]any:
		for _, item := range x {
			if wildNumber(item) {
				return true
			}
		}
	}
	return false
}
