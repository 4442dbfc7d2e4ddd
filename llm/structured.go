package llm

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tandem/fault"
	"tandem/payload"
	"tandem/text"
)

// The bounds of what is looked for in an answer.
const (
	// maxAnswer is the longest text in which an object is looked for, in bytes.
	maxAnswer = 4 << 20
	// maxProblems is how many problems an error lists: a model mends a few at a time.
	maxProblems = 8
	// maxRepair is how much of an error goes back to a model, in bytes.
	maxRepair = 4 << 10
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
	if n, wrong := scanValue([]byte(text)); wrong == nil && n == len(text) && (text[0] == '{' || text[0] == '[') {
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

// maxScanDepth is how deep values in an answer may lie in each other; deeper ones are taken for no JSON.
const maxScanDepth = 500

// scanValue reads the one value at the beginning of a text, and returns how many bytes were read and what is wrong with it.
func scanValue(text []byte) (int, *payload.Error) {
	n, err := payload.Prefix(text, payload.Limits{MaxDepth: maxScanDepth, MaxNumber: len(text)})
	wrong, _ := errors.AsType[*payload.Error](err)
	return n, wrong
}

// search looks through texts for values. What it reads in vain is taken from its budget, so that no text takes more than
// a time in proportion to its length.
type search struct {
	budget int
	cut    bool
}

// in returns the first object of a text, else its first array, else nothing.
func (s *search) in(text string) string {
	array, data := "", []byte(text)
	for i := 0; s.budget >= 0; {
		step := strings.IndexAny(text[i:], "{[")
		if step < 0 {
			break
		}
		i += step
		n, wrong := scanValue(data[i:])
		if wrong == nil {
			if text[i] == '{' {
				return text[i : i+n]
			}
			array = cmp.Or(array, text[i:i+n])
			i += n
			continue
		}
		s.budget -= n + 1
		if wrong.Cut {
			// All that follows is within a value that never ends. A bare bracket at the end of a sentence does not begin a value.
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
type Shape struct{ schema *payload.Schema }

// Compile makes a schema ready. It is JSON Schema 2020-12 unless it says otherwise, and refers to nothing outside of itself.
func (s *Schema) Compile() (*Shape, error) {
	schema, err := payload.CompileSchema(s.JSON)
	if err != nil {
		return nil, fault.Newf(fault.InvalidConfig, "schema %q is not a usable JSON Schema: %s", s.Name, err).WithCause(err)
	}
	return &Shape{schema}, nil
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
	value, err := payload.Decode(raw)
	switch {
	case payload.Follows(err):
		return fault.New(fault.OutputInvalid, "the answer cannot be read: there is more than one JSON value")
	case err != nil:
		return fault.Newf(fault.OutputInvalid, "the answer cannot be read: it is not JSON: %w", err)
	}
	found := s.schema.Problems("answer", value)
	if len(found) == 0 {
		return nil
	}
	problems := make([]Problem, len(found))
	for i, p := range found {
		problems[i] = Problem{p.Path, p.Message}
	}
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
	problem = text.ClipBytes(problem, maxRepair)
	return Message{Role: User, Content: text.Of("The last answer cannot be used: %s\nCorrect it and answer again, with one complete JSON object and no explanation.", problem).In(lang)}
}
