package store

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxWord bounds a word, in bytes; no one looks for longer ones.
const maxWord = 64

// Words takes a text apart for a full-text search: runs of letters and digits in lower case, and of Chinese, Japanese
// and Korean, which put no space between words, every two neighbours. The last of such a run also stands alone, so that one
// character is found as the beginning of a word. Drivers index these words, callers look for them.
func Words(text string) []string {
	var list []string
	var word strings.Builder
	last := rune(-1) // the character before, in a run without spaces
	flush := func() {
		if word.Len() > 0 {
			if word.Len() <= maxWord {
				list = append(list, word.String())
			}
			word.Reset()
		}
		if last >= 0 {
			list = append(list, string(last))
			last = -1
		}
	}
	for _, r := range text {
		switch {
		case dense(r):
			if word.Len() > 0 {
				flush()
			}
			if last >= 0 {
				list = append(list, string(last)+string(r))
			}
			last = r
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r):
			if last >= 0 {
				flush()
			}
			word.WriteRune(unicode.ToLower(r))
		default:
			flush()
		}
	}
	flush()
	return list
}

// Query returns the words of a search text: [Words] without the lone ends of runs that have other words, each once, at
// most max.
func Query(text string, max int) []string {
	all := Words(text)
	seen := map[string]bool{}
	var list []string
	for i, w := range all {
		if LoneCharacter(w) && i > 0 && strings.HasSuffix(all[i-1], w) && !LoneCharacter(all[i-1]) {
			continue
		}
		if !seen[w] && len(list) < max {
			seen[w] = true
			list = append(list, w)
		}
	}
	return list
}

// LoneCharacter says whether a word is one character of a script without spaces: it is looked for as the beginning of words.
func LoneCharacter(word string) bool {
	r, n := utf8.DecodeRuneInString(word)
	return n == len(word) && dense(r)
}

// dense says whether a character belongs to a script without spaces between words.
func dense(r rune) bool {
	return r > 0x2e7f && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}
