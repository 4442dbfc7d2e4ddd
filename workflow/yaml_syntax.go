package workflow

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The library reads in linear time and memory, with two exceptions that are bounded before it begins: it compares each
// tag directive with all others, and its tree takes some 250 to 500 bytes per node, however short the text.
const (
	yamlMaxMarks         = 600_000
	yamlMaxTagDirectives = 16
)

// parseYAML makes the library's tree of a file with one document.
func parseYAML(data string, limits limits) (*yaml.Node, *flaw) {
	if strings.Count(data, "%TAG") > yamlMaxTagDirectives {
		return nil, &flaw{code: ProblemTooLarge, message: "the file has too many %TAG directives; remove them, tags have no meaning here"}
	}
	if yamlMarks(data) > yamlMaxMarks {
		return nil, &flaw{code: ProblemTooLarge, message: "the file has more values, or commas and colons in its texts, than YAML may have; write it as JSON"}
	}
	data = withoutVersion(data)
	input := &lineReader{data: data}
	decoder := yaml.NewDecoder(input)
	var document, next yaml.Node
	err := decodeYAML(decoder, &document)
	if errors.Is(err, io.EOF) || err == nil && len(document.Content) == 0 {
		return nil, &flaw{ProblemSyntax, "", emptyFile, 1, 1}
	}
	if err != nil {
		return nil, yamlFlaw(err, input, limits)
	}
	switch err := decodeYAML(decoder, &next); {
	case errors.Is(err, io.EOF):
		return document.Content[0], nil
	case err != nil:
		return nil, yamlFlaw(err, input, limits)
	}
	return nil, &flaw{ProblemSyntax, "", "a second document begins here; a file holds one workflow, put the other in a file of its own",
		int32(next.Line), int32(next.Column)}
}

// yamlMarks counts the signs that can begin a node or two; a comment can double what a node takes. Texts have some of
// them as well, but far fewer than a file of nothing but nodes.
func yamlMarks(data string) int {
	marks := 0
	for i := range len(data) {
		switch data[i] {
		case ',', ':', '[', '{', '#':
			marks++
		case '-', '?':
			if i+1 == len(data) || data[i+1] <= ' ' {
				marks++
			}
		}
	}
	return marks
}

// withoutVersion makes a comment of the directive %YAML 1.2, which the library refuses though it reads such files.
func withoutVersion(data string) string {
	at := 0
	for at < len(data) {
		line, _, _ := strings.Cut(data[at:], "\n")
		switch text := strings.TrimSpace(line); {
		case strings.HasPrefix(line, "%YAML 1."):
			return data[:at] + "#" + data[at+1:]
		case text != "" && text[0] != '#':
			return data
		}
		at += len(line) + 1
	}
	return data
}

// decodeYAML reads the next document. A panic of the library must not be one of ours: files come from strangers.
func decodeYAML(decoder *yaml.Decoder, document *yaml.Node) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%v", cause)
		}
	}()
	return decoder.Decode(document)
}

// lineReader hands a text out by lines, so that how much was taken tells where the library stopped. Its own errors name
// the line where the block around a mistake begins, or none.
type lineReader struct {
	data string
	read int
}

func (r *lineReader) Read(to []byte) (int, error) {
	rest := r.data[r.read:]
	if rest == "" {
		return 0, io.EOF
	}
	n := min(len(rest), len(to))
	if end := strings.IndexByte(rest[:n], '\n'); end >= 0 {
		n = end + 1
	}
	copy(to, rest[:n])
	r.read += n
	return n, nil
}

// line is the number of the last line that was taken.
func (r *lineReader) line() int {
	return strings.Count(r.data[:max(r.read-1, 0)], "\n") + 1
}

// yamlFlaw makes a flaw of the library's error.
func yamlFlaw(err error, input *lineReader, limits limits) *flaw {
	line, problem := yamlError(err)
	f := &flaw{code: ProblemSyntax}
	var at errorPlace
	f.message, at = yamlRemedy(problem)
	switch {
	case strings.HasPrefix(problem, "exceeded max depth"):
		f.code, f.message, at = ProblemTooLarge, fmt.Sprintf(tooDeep, limits.depth), atToken
	case at == atStop:
		line = stopLine(input, problem)
	case at == atBracket:
		line++
		if stop := input.line(); stop > line {
			f.message += fmt.Sprintf("; look at the lines up to %d", stop)
		}
	}
	last := strings.Count(strings.TrimRight(input.data, " \t\r\n"), "\n") + 1
	line = min(max(line, 1), last)
	f.line, f.col = int32(line), firstColumn(input.data, line)
	return f
}

// yamlError takes the line, 0 when there is none, and the bare problem from an error such as "yaml: line 3: did not …".
func yamlError(err error) (line int, problem string) {
	problem = strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(problem, "line "); ok {
		if digits, after, ok := strings.Cut(rest, ": "); ok {
			if n, err := strconv.Atoi(digits); err == nil {
				return n, after
			}
		}
	}
	return 0, problem
}

// stopLine is the line of the token at which the library gave up. It has read that token's line and sometimes looked
// ahead to the next one, so the same problem in a text that ends before that line means that it lies further up.
func stopLine(input *lineReader, problem string) int {
	const lookahead = 2
	line, text := input.line(), input.data[:input.read]
	for range lookahead {
		cut := strings.LastIndexByte(strings.TrimSuffix(text, "\n"), '\n')
		for cut >= 0 && idle(text[strings.LastIndexByte(text[:cut], '\n')+1:cut]) {
			cut = strings.LastIndexByte(text[:cut], '\n')
		}
		if cut < 0 {
			break
		}
		text = text[:cut+1]
		shorter := &lineReader{data: text}
		err := decodeYAML(yaml.NewDecoder(shorter), &yaml.Node{})
		if err == nil {
			break
		}
		if _, same := yamlError(err); same != problem {
			break
		}
		line = shorter.line()
	}
	return line
}

// idle tells whether a line has nothing but blanks and a comment.
func idle(line string) bool {
	line = strings.TrimSpace(line)
	return line == "" || line[0] == '#'
}

// firstColumn is where the text of a line begins.
func firstColumn(data string, line int) int32 {
	for range line - 1 {
		_, data, _ = strings.Cut(data, "\n")
	}
	return int32(len(data) - len(strings.TrimLeft(data, " ")) + 1)
}

// errorPlace says what the line in an error of the library is worth.
type errorPlace uint8

const (
	atToken   errorPlace = iota // it is right, and the first when it is missing
	atBracket                   // it is that of the opening bracket, counted from 0
	atStop                      // it is that of the block around, so where reading stopped is better
)

// yamlRemedy says what an error of the library means to the author of a file.
func yamlRemedy(problem string) (message string, at errorPlace) {
	if name, ok := strings.CutPrefix(problem, "unknown anchor '"); ok {
		name, _, _ = strings.Cut(name, "'")
		return "no anchor before this place is called &" + name + "; put the value in quotes if it is a text", atStop
	}
	switch problem {
	case "mapping values are not allowed in this context":
		return "a key cannot stand here; put it on a line of its own and check its indentation, or put the text with the colon in quotes", atToken
	case "block sequence entries are not allowed in this context":
		return "a list cannot begin on the line of its key; put it on the next line, or put the text in quotes", atToken
	case "mapping keys are not allowed in this context":
		return "a \"?\" cannot stand here; put the text in quotes", atToken
	case "could not find expected ':'":
		return "this line is neither a key with a colon nor part of a text; write the colon, check the indentation, or put the text in quotes", atToken
	case "found character that cannot start any token":
		return "a value cannot begin with a tab or with @, ` or %; put it in quotes, and indent with spaces", atToken
	case "found a tab character that violates indentation", "found a tab character where an indentation space is expected":
		return "a tab stands where spaces are needed; indent with spaces only", atToken
	case "found unexpected end of stream", "found unexpected document indicator":
		return "a text in quotes is never closed; write the closing quote", atToken
	case "found unknown escape character":
		return "a text in double quotes has a backslash that begins no escape; write it as \\\\, or use single quotes", atToken
	case "did not find expected hexdecimal number", "found invalid Unicode character escape code":
		return "a text in double quotes has an escape that is not a character; write the character itself", atToken
	case "did not find expected ',' or ']'":
		return "this list lacks a comma or its closing \"]\"; write it, and put texts that hold brackets, commas or colons in quotes", atBracket
	case "did not find expected ',' or '}'":
		return "this object lacks a comma or its closing \"}\"; write it, and put texts that hold brackets, commas or colons in quotes", atBracket
	case "did not find expected key", "did not find expected '-' indicator":
		return "this line does not belong here; check its indentation and that of the lines above it, and put texts that begin with a quote wholly in quotes", atStop
	case "did not find expected node content":
		return "a value is missing here; write it, or remove the comma or bracket too many", atStop
	case "did not find expected <document start>":
		return "this does not belong to the document before it; check the indentation of this line, or remove it", atStop
	case "control characters are not allowed":
		return "the line holds a control character; remove it, or write it as \\u and four digits in double quotes", atStop
	case "found undefined tag handle":
		return "a tag has no meaning here; remove it, or put the text that begins with ! in quotes", atStop
	case "found incompatible YAML document", "found duplicate %YAML directive", "found unknown directive name":
		return "a line that begins with % has no meaning here; remove it", atStop
	case "did not find expected comment or line break":
		return "after | or > only a digit, + or - may stand; begin the text on the next line, or put it in quotes", atToken
	case "did not find expected alphabetic or numeric character":
		return "after & or * the name of an anchor must follow; write it, or put the text in quotes", atToken
	}
	return "this is not YAML that can be read (" + problem + "); correct the line or put the text in quotes", atToken
}
