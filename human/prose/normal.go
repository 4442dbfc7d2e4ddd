package prose

import (
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// normalizer brings lines into the form that the tables are written in.
type normalizer struct {
	lookalike, simplified map[rune]rune
	shortcodes            map[string]string
	shortcode, emphasis   *regexp.Regexp
	faces                 *strings.Replacer
}

func newNormalizer(w *wordFile) normalizer {
	var faces []string
	for _, face := range w.pairs("faces") {
		faces = append(faces, face[0], " "+face[1]+" ")
	}
	return normalizer{
		lookalike:  w.couples("lookalikes"),
		simplified: w.couples("traditional"),
		shortcodes: w.longForms("shortcodes"),
		shortcode:  w.expression("shortcode"),
		emphasis:   regexp.MustCompile("[*_`]+"),
		faces:      strings.NewReplacer(faces...),
	}
}

// line is a line in lower case, plain width and simplified characters, without what cannot be seen. Hidden says that it had
// characters that serve to deceive readers.
func (n *normalizer) line(line string) (normal string, hidden bool) {
	line = norm.NFKC.String(line)
	var b strings.Builder
	b.Grow(len(line))
	for _, r := range line {
		switch visibility(r) {
		case deceives:
			hidden = true
			continue
		case invisible:
			continue
		}
		if r == '…' || r == '⋯' {
			b.WriteString("...")
			continue
		}
		r = plainMark(r)
		if to, ok := n.lookalike[r]; ok {
			hidden = true
			r = to
		} else if to, ok := n.simplified[r]; ok {
			r = to
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.Join(strings.Fields(n.signs(b.String())), " "), hidden
}

// signs writes the signs of chats and faces made of marks as emoji, and takes marks of emphasis away.
func (n *normalizer) signs(s string) string {
	if !strings.ContainsAny(s, ":[;(^*_") {
		return s
	}
	s = n.shortcode.ReplaceAllStringFunc(s, func(code string) string {
		if emoji, ok := n.shortcodes[code]; ok {
			return emoji
		}
		return code
	})
	return n.emphasis.ReplaceAllStringFunc(n.faces.Replace(s), func(m string) string {
		if len(m) > 3 {
			return m // a rule
		}
		return " "
	})
}

// seen is whether and how a character can be seen.
type seen uint8

const (
	visible seen = iota
	// invisible are parts of emoji and what only formats.
	invisible
	// deceives are tags, marks that turn the direction around and strokes through letters.
	deceives
)

func visibility(r rune) seen {
	switch {
	case r >= 0xE0000 && r <= 0xE007F, r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069:
		return deceives
	case r == 0x200D, r == 0xFE0F, r == 0xFE0E, r == 0x20E3, r == 0x2642, r == 0x2640, r >= 0x1F3FB && r <= 0x1F3FF:
		return invisible // joiners, variants, sexes, skin tones
	case unicode.Is(unicode.Mn, r):
		return deceives
	case unicode.Is(unicode.Cf, r), r == 0x115F, r == 0x1160, r == 0x3164:
		return invisible
	}
	return visible
}

// plainMark is a space for whatever separates, and one apostrophe for all.
func plainMark(r rune) rune {
	if unicode.IsSpace(r) || unicode.IsControl(r) {
		return ' '
	}
	switch r {
	case '’', '‘', '`', '´', 'ʼ':
		return '\''
	}
	return r
}

func wordSet(list string) map[string]bool {
	out := map[string]bool{}
	for _, s := range strings.Fields(list) {
		out[s] = true
	}
	return out
}

func runeSet(list string) map[rune]bool {
	out := map[rune]bool{}
	for _, r := range list {
		out[r] = true
	}
	return out
}

func phraseFields(list string) []string {
	var out []string
	for _, p := range strings.FieldsFunc(list, func(r rune) bool { return r == '|' || r == '\n' }) {
		if p = strings.TrimSpace(p); p != "" {
			out = append(out, p)
		}
	}
	return out
}
