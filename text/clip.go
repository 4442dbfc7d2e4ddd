package text

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Mark stands where the rest of a text was left out.
const Mark = "…"

// Head is the first bytes of a text, whole characters only.
func Head(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:max(most, 0)]
}

// First is the first characters of a text.
func First(s string, most int) string {
	n := 0
	for i := range s {
		if n == most {
			return s[:i]
		}
		n++
	}
	return s
}

// ClipBytes is [Head], with a mark behind it if something was left out.
func ClipBytes(s string, most int) string { return marked(s, Head(s, most)) }

// Clip is [First], with a mark behind it if something was left out.
func Clip(s string, most int) string { return marked(s, First(s, most)) }

// Fit makes a text fit into so many characters, the mark included.
func Fit(s string, most int) string {
	return FitIn(s, most, func(r rune) (string, int) { return string(r), 1 })
}

// UTF16 is the size of a text in UTF-16, in which several services count.
func UTF16(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}

// FitUTF16 makes a text fit into a size in UTF-16, the mark included.
func FitUTF16(s string, most int) string {
	return FitUTF16As(s, most, func(r rune) string { return string(r) })
}

// FitUTF16As is [FitUTF16] for a text that is written in another way: write says how a character is.
func FitUTF16As(s string, most int, write func(rune) string) string {
	return FitIn(s, most, func(r rune) (string, int) {
		piece := write(r)
		return piece, UTF16(piece)
	})
}

// FitIn makes a text fit into a limit that is counted in units of its own, the mark included, which counts as one: write says how a
// character is written there and how much that takes. What is not UTF-8 becomes the replacement character.
func FitIn(s string, limit int, write func(rune) (string, int)) string {
	var b strings.Builder
	n, fits := 0, 0 // fits is the length of what fits together with a mark
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		piece, size := write(r)
		if n += size; n > limit {
			return b.String()[:fits] + Mark
		}
		b.WriteString(piece)
		if n < limit {
			fits = b.Len()
		}
	}
	return b.String()
}

func marked(s, part string) string {
	if len(part) == len(s) {
		return s
	}
	return part + Mark
}
