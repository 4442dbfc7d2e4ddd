package handed

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"tandem/payload"
)

// language is how a function is written that takes one argument.
type language struct {
	// takes begins a function and has the name of its argument; alone says of a text that the function it begins with is all that it has.
	takes *regexp.Regexp
	alone func(source string) bool
	// field is what follows the argument where it is read by the name of a field.
	field *regexp.Regexp
	// other are ways by which a function can get hold of its argument, or of what is in it, without naming it.
	other *regexp.Regexp
}

// languages in which functions are read. read-only
var languages = map[string]language{
	"python": {
		takes: regexp.MustCompile(`^(?:def\s+\w+\s*\(\s*([A-Za-z_]\w*)\s*(?::\s*\w[\w.]*(?:\[[\w.,\s\[\]]*\])?\s*)?\)|lambda\s+([A-Za-z_]\w*)\s*:)`),
		alone: aloneInPython,
		field: regexp.MustCompile(`^(?:\[\s*(?:'([^'"\\{}]*)'|"([^'"\\{}]*)")\s*\]|\.get\(\s*(?:'([^'"\\{}]*)'|"([^'"\\{}]*)")\s*[,)])`),
		other: regexp.MustCompile(`\b(?:locals|globals|vars|eval|exec|compile|dir|inspect|gc|sys|ctypes|traceback|\w*frame\w*|f_\w+|tb_\w+)\b|__`),
	},
	"javascript": {
		takes: regexp.MustCompile(`^(?:function\s*\w*\s*\(\s*([A-Za-z_]\w*)\s*\)\s*|\(\s*([A-Za-z_]\w*)\s*\)\s*=>\s*|([A-Za-z_]\w*)\s*=>\s*)`),
		alone: aloneInJavaScript,
		field: regexp.MustCompile(`^(?:\[\s*(?:'([^'"\\$]*)'|"([^'"\\$]*)")\s*\]|\??\.([A-Za-z_]\w*))(?:[^\w$]|$)`),
		other: regexp.MustCompile(`\b(?:arguments|eval|Function|this|with|caller|callee|constructor|import|require|Reflect|Proxy|hasOwnProperty|propertyIsEnumerable|` +
			`isPrototypeOf|valueOf|toString|toLocaleString)\b|__|\\[ux]`),
	},
}

// imports are lines of Python before a function.
var imports = regexp.MustCompile(`^(?:(?:(?:import|from) [^\n;]*|#[^\n]*)?\s*\n)+`) // read-only

// CodeReads is which fields of its one argument a function reads, told from its text; nil: that cannot be told. It can where the argument
// is nowhere named but to read a field of it by a name that is written there.
func CodeReads(name, source string) *payload.Reads {
	l, known := languages[name]
	if !known || l.other.MatchString(source) || strings.ContainsFunc(source, looksAlike) {
		return nil
	}
	source = strings.TrimSpace(source)
	if name == "python" {
		source = imports.ReplaceAllString(source, "")
	}
	takes := l.takes.FindStringSubmatchIndex(source)
	if takes == nil || !l.alone(source) {
		return nil
	}
	argument, body := group(source, takes), source[takes[1]:]
	var names []string
	for _, at := range regexp.MustCompile(`\b`+argument+`\b`).FindAllStringIndex(body, -1) {
		follows := body[at[1]:]
		field := l.field.FindStringSubmatchIndex(follows)
		if field == nil {
			return nil
		}
		names = append(names, group(follows, field))
	}
	return payload.ReadsNamed(names...)
}

// group is the first group of a match that has matched.
func group(text string, match []int) string {
	for i := 2; i < len(match); i += 2 {
		if match[i] >= 0 {
			return text[match[i]:match[i+1]]
		}
	}
	return ""
}

// looksAlike says that a letter may be another way to write one of a name.
func looksAlike(r rune) bool {
	return r > unicode.MaxASCII && unicode.IsLetter(r) && !unicode.Is(unicode.Han, r)
}

// aloneInPython says that nothing begins at the left margin behind the first line.
func aloneInPython(source string) bool {
	lines := strings.Split(source, "\n")
	return !slices.ContainsFunc(lines[1:], func(line string) bool { return line != "" && !strings.ContainsAny(line[:1], " \t\r#)]}") })
}

// aloneInJavaScript says that nothing follows the function: its brackets close at the end, and outside of them there is one line.
func aloneInJavaScript(source string) bool {
	depth, block := 0, false
	for i, r := range source {
		switch r {
		case '(', '[', '{':
			block = block || depth == 0 && r == '{'
			depth++
		case ')', ']', '}':
			if depth--; depth == 0 && block {
				return strings.Trim(source[i+1:], "; \t\r\n") == ""
			}
		case ';', '\n':
			if depth == 0 {
				return strings.Trim(source[i:], "; \t\r\n") == ""
			}
		}
	}
	return depth == 0
}
