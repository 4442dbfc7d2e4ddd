package prose

import (
	"maps"
	"slices"
	"strings"
	"unicode"
)

// features are what the weights are about: the words of a reply, one to four that follow each other and pairs with one between them. Each is there once,
// in the order in which it is met. Lines are written out. A word is
//
//   - a run of Latin letters, in full ("do not" for "don't"),
//   - "#" for whatever has a digit in it, "@" for an address,
//   - one Chinese character,
//   - a mark or a sign; "|" ends a line, "^" begins and "$" ends a reply.
func features(lines []string) []string {
	words := []string{"^"}
	for _, line := range lines {
		if line == "" {
			continue
		}
		if len(words) > 1 {
			words = append(words, "|")
		}
		words = appendWords(words, line)
	}
	words = append(words, "$")
	var out []string
	seen := make(map[string]bool, 5*len(words))
	add := func(feature string) {
		if !seen[feature] {
			seen[feature] = true
			out = append(out, feature)
		}
	}
	for i := range words {
		for n := 1; n <= longestFeature && i+n <= len(words); n++ {
			add(strings.Join(words[i:i+n], " "))
		}
		if i+2 < len(words) {
			add(words[i] + " _ " + words[i+2])
		}
	}
	return out
}

// longestFeature is how many words in a row a feature has at most.
const longestFeature = 4

// appendWords splits a line into words.
func appendWords(words []string, line string) []string {
	for _, field := range strings.Fields(line) {
		if strings.Contains(field, "://") || strings.Index(field, "@") > 0 {
			words = append(words, "@")
			continue
		}
		rs := []rune(field)
		for i := 0; i < len(rs); {
			j := i
			digits := false
			for j < len(rs) && (unicode.IsDigit(rs[j]) || unicode.IsLetter(rs[j]) && !isHan(rs[j]) || rs[j] == '\'' && j > i) {
				digits = digits || unicode.IsDigit(rs[j])
				j++
			}
			switch {
			case digits:
				if words[len(words)-1] != "#" {
					words = append(words, "#")
				}
			case j > i:
				words = append(words, strings.TrimRight(string(rs[i:j]), "'"))
			default:
				words = append(words, mark(rs[i]))
				j = i + 1
			}
			i = j
		}
	}
	return words
}

// mark is a mark or a sign in its Latin form.
func mark(r rune) string {
	switch r {
	case '。', '｡':
		return "."
	case '，', '、', '､':
		return ","
	case '！':
		return "!"
	case '？':
		return "?"
	case '；':
		return ";"
	case '：':
		return ":"
	case '（':
		return "("
	case '）':
		return ")"
	}
	return string(r)
}

// actsOf are the features that say what the clauses of a reply do, in brackets, alone and with what the clause before or after it does.
func actsOf(steps []step) []string {
	var out []string
	seen := map[string]bool{}
	add := func(feature string) {
		if !seen[feature] {
			seen[feature] = true
			out = append(out, feature)
		}
	}
	before := []string{"<^>"}
	for _, s := range steps {
		var does []string
		for _, c := range slices.Sorted(maps.Keys(s.does)) {
			if s.does[c] && c != neutral {
				does = append(does, "<"+string(c)+">")
			}
		}
		if s.hold != "" {
			does = append(does, "<holds "+s.hold+">")
		}
		if s.asked {
			does = append(does, "<?>")
		}
		if len(does) == 0 {
			does = append(does, "<>")
		}
		if s.contrast {
			does = append(does, "<but>")
		}
		for i, a := range does {
			add(a)
			for _, b := range before {
				add(b + " " + a)
			}
			for _, b := range does[i+1:] {
				add(a + "+" + b)
			}
		}
		before = does
	}
	for _, b := range before {
		add(b + " <$>")
	}
	return out
}
