package credential

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"tandem/payload"
)

// forms returns a secret in the encodings in which programs commonly send and print it. Each is at least minPattern long.
func forms(secret string) []string {
	out := []string{secret, html.EscapeString(secret)}
	escaped := jsonForms(secret)
	out = append(out, escaped...)
	for _, e := range escaped {
		if e != secret {
			out = append(out, jsonForms(e)...) // JSON inside a string of JSON
		}
	}
	out = append(out, inner(strconv.Quote(secret)), inner(strconv.QuoteToASCII(secret)))
	out = append(out, urlForms(secret)...)
	digits := hex.EncodeToString([]byte(secret))
	out = append(out, digits, strings.ToUpper(digits))
	for offset := range 3 {
		out = append(out, base64Forms(secret, offset)...)
	}
	out = slices.DeleteFunc(out, func(form string) bool { return len(form) < minPattern })
	slices.Sort(out)
	return slices.Clip(slices.Compact(out))
}

// inner drops the quotes.
func inner(quoted string) string { return quoted[1 : len(quoted)-1] }

// jsonForms are the ways in which a text stands in JSON: with the fewest escapes, and as Go's encoder writes it, for the web and without.
func jsonForms(s string) []string {
	plain := inner(string(payload.Quote(s)))
	out := []string{plain, strings.ReplaceAll(plain, "/", `\/`)}
	if raw, err := payload.Encode(s); err == nil {
		out = append(out, inner(string(raw)))
	}
	if raw, err := json.Marshal(s); err == nil {
		out = append(out, inner(string(raw)))
	}
	if ascii := asciiJSON(plain, `\u%04x`); ascii != plain {
		out = append(out, ascii, asciiJSON(plain, `\u%04X`), strings.ReplaceAll(ascii, "/", `\/`))
	}
	return out
}

// asciiJSON escapes what is beyond ASCII, as many languages do by default.
func asciiJSON(s, format string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r < utf8.RuneSelf:
			b.WriteRune(r)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, format+format, high, low)
		default:
			fmt.Fprintf(&b, format, r)
		}
	}
	return b.String()
}

// urlForms are the ways in which a value stands in an address: as Go writes queries and paths, as browsers do, and with
// as few escapes as userinfo and paths allow.
func urlForms(s string) []string {
	query := url.QueryEscape(s)
	browser := strings.NewReplacer("+", "%20", "%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*").Replace(query)
	user := strings.TrimPrefix(url.UserPassword("", s).String(), ":")
	out := []string{query, strings.ReplaceAll(query, "+", "%20"), browser, url.PathEscape(s), (&url.URL{Path: s}).EscapedPath(), user}
	for _, form := range out {
		out = append(out, lowerEscapes(form))
	}
	return out
}

// lowerEscapes writes %2F as %2f.
func lowerEscapes(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], strings.ToLower(s[i+1:i+3]))
			i += 2
		}
	}
	return string(b)
}

// base64Forms are what base64 makes of a secret that is preceded by offset bytes (modulo 3), as in the "user:password"
// of basic authentication: the characters that depend on the secret alone, and the same up to the end of the data.
func base64Forms(secret string, offset int) []string {
	padded := append(make([]byte, offset), secret...)
	first := (8*offset + 5) / 6
	var out []string
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		whole := encoding.EncodeToString(padded)[first:]
		alone := whole[:8*len(padded)/6-first]
		ended := strings.TrimRight(whole, "=")
		for _, form := range []string{alone, ended, whole} {
			out = append(out, form)
			if strings.ContainsAny(form, "+/=") {
				escaped := url.QueryEscape(form)
				out = append(out, escaped, lowerEscapes(escaped), strings.ReplaceAll(form, "/", `\/`))
			}
		}
	}
	return out
}
