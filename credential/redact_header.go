package credential

import (
	"slices"
	"strings"
)

// SensitiveHeader says whether a header carries a secret by its name alone, in any spelling: authorization, cookies, API
// keys, tokens, signatures, sessions.
func SensitiveHeader(name string) bool {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '-' || r == '_' || r == '.' || r == ' ' })
	for i, word := range words {
		switch word {
		case "authorization", "auth", "cookie", "cookie2", "token", "secret", "password", "passwd", "passphrase", "apikey",
			"signature", "credential", "credentials", "session", "sessionid", "jwt", "assertion":
			return true
		case "key", "keys":
			// Not every key is secret: Idempotency-Key, Sec-WebSocket-Key.
			if i > 0 && slices.Contains([]string{"api", "access", "private", "subscription", "functions", "master", "account", "app",
				"application", "shared", "service"}, words[i-1]) {
				return true
			}
		}
		if strings.HasSuffix(word, "token") || strings.HasSuffix(word, "apikey") || strings.HasSuffix(word, "secret") {
			return true
		}
	}
	return false
}

// Header returns a copy of headers for people to read: the values of sensitive ones are the mark, the others are
// redacted as text.
func (r *Redactor) Header(headers map[string][]string) map[string][]string {
	out := make(map[string][]string, len(headers))
	for name, values := range headers {
		clean := make([]string, len(values))
		sensitive := SensitiveHeader(name)
		for i, value := range values {
			if clean[i] = Mark; !sensitive {
				clean[i] = r.Text(value)
			}
		}
		name = r.Text(name) // two names may become one
		out[name] = append(out[name], clean...)
	}
	return out
}
