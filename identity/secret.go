package identity

import (
	"regexp"
	"strings"

	"tandem/text"
)

// MinChosenSecret is how long a secret must be that somebody has chosen instead of having it made.
const MinChosenSecret = 16

// ChooseSecret is the remedy for a weak secret.
func ChooseSecret() text.Text { return text.Of("make one with: openssl rand -hex 32") }

// Weakness says why a secret that somebody has chosen could be guessed, in words that follow the name of the secret and do not
// repeat any of it; empty: nothing speaks against it. It finds what people choose, not what they know: a line of a song passes.
func Weakness(secret string) text.Text {
	const different, own = 8, 6
	switch folded := strings.ToLower(secret); {
	case len(secret) < MinChosenSecret:
		return text.Of("is shorter than %d characters", MinChosenSecret)
	case kinds(folded) < different:
		return text.Of("has fewer than %d different characters", different)
	case repeats(folded):
		return text.Of("says the same over and over")
	case steps(folded) > len(folded)/2:
		return text.Of("is a row of characters that follow each other")
	case kinds(withoutWords(folded)) < own || len(withoutWords(folded)) < own, kinds(withoutWords(unmasked(folded))) < own:
		return text.Of("is made of words that are tried first")
	}
	return text.Text{}
}

// kinds counts the different characters.
func kinds(text string) int {
	seen := map[byte]bool{}
	for i := range len(text) {
		seen[text[i]] = true
	}
	return len(seen)
}

// repeats says that a text is a shorter one several times, or has little else in it.
func repeats(text string) bool {
	const part = 3
	parts := map[string]bool{}
	for i := part; i <= len(text); i++ {
		parts[text[i-part:i]] = true
	}
	if 2*len(parts) < len(text)-part+1 {
		return true
	}
	for period := 1; period <= len(text)/2; period++ {
		if text[period:] == text[:len(text)-period] {
			return true
		}
	}
	return false
}

// unmasked is a text with the letters that people write as digits and signs.
func unmasked(text string) string {
	return strings.NewReplacer("0", "o", "1", "i", "3", "e", "4", "a", "5", "s", "7", "t", "@", "a", "$", "s",
		"!", "i", "+", "t").Replace(text)
}

// steps counts the characters that are the same as the one before, or next to it, in the alphabet or on a keyboard: in its rows, down its
// columns, or to and fro between two rows.
func steps(text string) int {
	const rows = "1234567890 qwertyuiop asdfghjkl zxcvbnm 1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik 9ol 0p 1q2w3e4r5t6y7u8i9o0p qawsedrftgyhujikolp azsxdcfvgbhnjmk"
	n := 0
	for i := 1; i < len(text); i++ {
		a, b := text[i-1], text[i]
		near := int(a) - int(b)
		if near >= -1 && near <= 1 || strings.Contains(rows, string([]byte{a, b})) || strings.Contains(rows, string([]byte{b, a})) {
			n++
		}
	}
	return n
}

// year is what people put behind a word that is too short. read-only
var year = regexp.MustCompile(`(?:19|20)[0-9]{2}`)

// withoutWords is what is left of a text without the words that everybody thinks of, and the signs between them.
func withoutWords(text string) string {
	for _, word := range []string{
		"password", "passwort", "passw0rd", "p@ssw0rd", "p@ssword", "passphrase", "secret", "token", "changeme", "change", "please",
		"letmein", "welcome", "default", "example", "sample",
		"placeholder", "admin", "root", "user", "tandem", "test", "demo", "qwerty", "asdf", "1234567890", "123456789", "12345678", "123456",
		"12345", "1234", "abcdef", "abcd", "iloveyou",
		"webhook", "apikey", "master", "your", "here", "super", "very", "this", "the", "key", "api", "dev", "login", "access", "private",
		"production", "staging", "localhost", "local", "server", "service", "company", "operator",
		"guest", "hello", "world", "dragon", "monkey", "football", "baseball", "sunshine", "princess", "shadow", "superman", "batman",
		"freedom", "whatever", "trustno1", "hunter2", "summer", "winter", "spring", "autumn",
		"monday", "friday", "january", "december", "zxcvbn", "qazwsx", "1q2w3e4r", "q1w2e3r4", "abc123", "abc",
	} {
		text = strings.ReplaceAll(text, word, " ")
	}
	text = year.ReplaceAllString(text, " ")
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r > '~' {
			return r
		}
		return -1
	}, text)
}
