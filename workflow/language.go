package workflow

import "strings"

// Language is the language of a conversion function.
type Language string

// The languages.
const (
	LanguageExpression Language = "expression"
	LanguagePython     Language = "python"
	LanguageJavaScript Language = "javascript"
)

// LanguageOf tells the language of a conversion function by its form: a def or a lambda is Python, a function or an
// arrow is JavaScript, anything else an expression. An arrow inside a call (any(list, x => x.ok)) is part of an
// expression. Comments tell nothing.
func LanguageOf(source string) Language {
	text := afterComments(source)
	if startsWithWord(text, "lambda") || startsWithWord(text, "(lambda") {
		return LanguagePython
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		if startsWithWord(line, "def") || startsWithWord(line, "async def") {
			return LanguagePython
		}
	}
	for line := range strings.Lines(text) {
		if startsWithWord(line, "function") || startsWithWord(line, "async function") {
			return LanguageJavaScript
		}
	}
	if startsWithWord(text, "(function") || startsWithWord(text, "(async function") {
		return LanguageJavaScript
	}
	inner, bracketed := strings.CutPrefix(text, "(")
	if arrowOutside(text) || bracketed && arrowOutside(inner) {
		return LanguageJavaScript
	}
	return LanguageExpression
}

// afterComments cuts space and the comments of both languages off the beginning.
func afterComments(text string) string {
	for {
		text = strings.TrimSpace(text)
		switch {
		case strings.HasPrefix(text, "#"), strings.HasPrefix(text, "//"):
			_, text, _ = strings.Cut(text, "\n")
		case strings.HasPrefix(text, "/*"):
			_, text, _ = strings.Cut(text, "*/")
		default:
			return text
		}
	}
}

func startsWithWord(text, word string) bool {
	rest, ok := strings.CutPrefix(text, word)
	return ok && !letter(rest, 0)
}

// arrowOutside looks for => that no bracket encloses.
func arrowOutside(text string) bool {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '"', '\'', '`':
			for i++; i < len(text) && text[i] != c; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '/':
			if rest := text[i:]; strings.HasPrefix(rest, "//") || strings.HasPrefix(rest, "/*") {
				i += len(rest) - len(afterComments(rest)) - 1
			}
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		case '=':
			if depth <= 0 && strings.HasPrefix(text[i:], "=>") {
				return true
			}
		}
		if depth < 0 {
			return false
		}
	}
	return false
}
