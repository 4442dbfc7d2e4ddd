package identity

import (
	"fmt"
	"strings"
)

// MinChosenSecret is how long a secret must be that somebody has chosen instead of having it made.
const MinChosenSecret = 16

// ChooseSecret is the remedy for a weak secret.
const ChooseSecret = "make one with: openssl rand -hex 32"

// Weakness says why a secret that somebody has chosen could be guessed, in words that follow the name of the secret and do not
// repeat any of it; empty: nothing speaks against it. It finds what people choose, not what they know: a line of a song passes.
func Weakness(secret string) string {
	const different, own = 8, 6
	switch folded := strings.ToLower(secret); {
	case len(secret) < MinChosenSecret:
		return fmt.Sprintf("is shorter than %d characters", MinChosenSecret)
	case kinds(folded) < different:
		return fmt.Sprintf("has fewer than %d different characters", different)
	case repeats(folded):
		return "says the same over and over"
	case steps(folded) > len(folded)/2:
		return "is a row of characters that follow each other"
	case kinds(withoutWords(folded)) < own || len(withoutWords(folded)) < own:
		return "is made of words that are tried first"
	}
	return ""
}

// kinds counts the different characters.
func kinds(text string) int {
	seen := map[byte]bool{}
	for i := range len(text) {
		seen[text[i]] = true
	}
	return len(seen)
}

// repeats says that a text is a shorter one several times.
func repeats(text string) bool {
	for period := 1; period <= len(text)/2; period++ {
		if text[period:] == text[:len(text)-period] {
			return true
		}
	}
	return false
}

// steps counts the characters that are the same as the one before, or next to it, in the alphabet or on a keyboard.
func steps(text string) int {
	const rows = "1234567890 qwertyuiop asdfghjkl zxcvbnm"
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

// withoutWords is what is left of a text without the words that everybody thinks of, and the signs between them.
func withoutWords(text string) string {
	for _, word := range []string{
		"password", "passwort", "passw0rd", "p@ssw0rd", "p@ssword", "passphrase", "secret", "token", "changeme", "change", "please", "letmein", "welcome", "default", "example", "sample",
		"placeholder", "admin", "root", "user", "tandem", "test", "demo", "qwerty", "asdf", "1234567890", "123456789", "12345678", "123456", "12345", "1234", "abcdef", "abcd", "iloveyou",
		"webhook", "apikey", "master", "your", "here", "super", "very", "this", "the", "key", "api", "dev",
	} {
		text = strings.ReplaceAll(text, word, " ")
	}
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r > '~' {
			return r
		}
		return -1
	}, text)
}
