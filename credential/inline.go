package credential

import (
	"cmp"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"tandem/payload"
	"tandem/text"
)

// Inline is a place where a secret stands that belongs into a credential. It never holds the secret.
type Inline struct {
	// Path is where, from the root of what was searched: headers.Authorization, servers[2].url.
	Path string
	// What is the secret in words: "a token of GitHub".
	What text.Text
	// Certain says that it is one. What is not certain may be an innocent value under a telling name.
	Certain bool
}

// maxInline bounds how many are told.
const maxInline = 100

// FindInline looks for secrets in a JSON document that others read: a workflow, a template, the record of a tool server. It knows
// what tokens of common services look like, private keys, passwords in addresses, and the names under which people write
// secrets. Placeholders, references to credentials and the words that examples use instead of a secret are none.
func FindInline(document json.RawMessage) []Inline {
	value, err := payload.Decode(document)
	if err != nil {
		return nil // its reader says so
	}
	f := &inlineFinder{}
	f.walk("", "", false, value)
	return f.found
}

type inlineFinder struct{ found []Inline }

// walk looks at a value under a name; query says that it is one of the parameters of a query.
func (f *inlineFinder) walk(path, name string, query bool, value any) {
	if len(f.found) >= maxInline {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		names := make([]string, 0, len(v))
		for key := range v {
			names = append(names, key)
		}
		slices.Sort(names)
		for _, key := range names {
			called := key
			if _, ok := v[key].(string); ok && foldedName(key) == "value" {
				called = cmp.Or(pairName(v), key)
			}
			f.walk(payload.JoinKey(path, key), called, isQuery(name), v[key])
		}
	case []any:
		if first, ok := firstOfPair(v); ok {
			f.walk(payload.JoinIndex(path, 1), first, query, v[1])
			return
		}
		for i, item := range v {
			f.walk(payload.JoinIndex(path, i), name, query, item)
		}
	case string:
		what, certain := inlineText(name, v)
		if what.IsZero() {
			what, certain = insideText(v)
		}
		if what.IsZero() && query && isQueryName(name) {
			if sure, likely := machineMade(v); sure || likely {
				what, certain = text.Of("the parameter %q of a query", name), sure
			}
		}
		if !what.IsZero() {
			f.found = append(f.found, Inline{path, what, certain})
		}
	}
}

// pairName is the name of a value that is written as an object with a name and a value; empty for other objects.
func pairName(object map[string]any) string {
	for _, key := range []string{"name", "key", "field", "header", "parameter", "Name", "Key"} {
		if name, ok := object[key].(string); ok {
			return name
		}
	}
	return ""
}

// firstOfPair is the name of a value that is written as a list of a name and a value.
func firstOfPair(list []any) (string, bool) {
	if len(list) != 2 {
		return "", false
	}
	name, ok := list[0].(string)
	_, written := list[1].(string)
	return name, ok && written && secretField(name)
}

// insideText looks for secrets in a text that is JSON, or the fields of a form.
func insideText(written string) (what text.Text, certain bool) {
	written = strings.TrimSpace(written)
	if strings.HasPrefix(written, "{") || strings.HasPrefix(written, "[") {
		// A placeholder that stands for a value without quotation marks is not JSON; it is not a secret either.
		value, err := payload.Decode([]byte(bareFilled.ReplaceAllString(written, `${1}null`)))
		if err != nil {
			return text.Text{}, false
		}
		inner := &inlineFinder{}
		inner.walk("", "", false, value)
		for _, found := range inner.found {
			if what.IsZero() || found.Certain && !certain {
				what, certain = text.Of("%s, in a text", found.What), found.Certain
			}
		}
		return what, certain
	}
	if !formText.MatchString(written) {
		return text.Text{}, false
	}
	return pairSecret(func(name string) text.Text { return text.Of("the field %q of a form", name) }, written)
}

// pairSecret looks for a secret among the pairs of a query, a fragment or a form.
func pairSecret(naming func(name string) text.Text, written string) (what text.Text, certain bool) {
	for _, m := range queryPair.FindAllStringSubmatch(written, 50) {
		sure, likely := false, false
		if secretField(m[1]) {
			sure, likely = strength(m[2])
		} else if isQueryName(m[1]) {
			sure, likely = machineMade(m[2])
		}
		if sure || likely {
			return naming(m[1]), sure
		}
	}
	return text.Text{}, false
}

// What secrets look like. All are read-only.
var (
	// knownSecrets are forms that nothing else has. Each is looked for anywhere in a text, code and prompts included.
	knownSecrets = []struct {
		what text.Text
		form *regexp.Regexp
	}{
		{text.Of("a private key"), regexp.MustCompile(`-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----\s*(?:\\[nr]|\s)*[A-Za-z0-9+/=]{16}`)},
		{text.Of("a key of a model service"), regexp.MustCompile(`\bsk-[A-Za-z0-9_-]{20,}`)},
		{text.Of("a token of GitHub"), regexp.MustCompile(`\b(?:gh[opusr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,})`)},
		{text.Of("a token of GitLab"), regexp.MustCompile(`\bgl(?:pat|ptt|dt|rt|soat)-[A-Za-z0-9_-]{20,}`)},
		{text.Of("a token of Slack"), regexp.MustCompile(`\bxox[abeoprs]-[A-Za-z0-9-]{16,}|\bxapp-[A-Za-z0-9-]{16,}`)},
		{text.Of("a webhook of Slack"), regexp.MustCompile(`hooks\.slack\.com/services/T[A-Za-z0-9]+/B[A-Za-z0-9]+/[A-Za-z0-9]{16,}`)},
		{text.Of("a webhook of Discord"), regexp.MustCompile(`discord(?:app)?\.com/api/webhooks/[0-9]+/[A-Za-z0-9_-]{30,}`)},
		{text.Of("a key of AWS"), regexp.MustCompile(`\b(?:AKIA|ASIA)[0-9A-Z]{16}\b`)},
		{text.Of("a key of Google"), regexp.MustCompile(`\bAIza[0-9A-Za-z_-]{35}|\bya29\.[0-9A-Za-z_-]{20,}|\bGOCSPX-[0-9A-Za-z_-]{20,}`)},
		{text.Of("a key of Stripe"), regexp.MustCompile(`\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|\bwhsec_[A-Za-z0-9]{24,}`)},
		{text.Of("a key of SendGrid"), regexp.MustCompile(`\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}`)},
		{text.Of("a token of Hugging Face"), regexp.MustCompile(`\bhf_[A-Za-z0-9]{30,}`)},
		{text.Of("a token of a package registry"), regexp.MustCompile(`\bnpm_[A-Za-z0-9]{36}\b|\bpypi-[A-Za-z0-9_-]{50,}`)},
		{text.Of("a token of Telegram"), regexp.MustCompile(`(?:\b|\bbot)[0-9]{8,10}:AA[A-Za-z0-9_-]{33}\b`)},
		{text.Of("a token of this server"), regexp.MustCompile(`\btdm_[A-Za-z0-9_-]{40,}`)},
		{text.Of("a signed token (JWT)"), regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{16,}`)},
	}
	// knownBegins is in every text that knownSecrets can find something in; looking for it first is cheap.
	knownBegins = []string{"PRIVATE KEY", "sk-", "gh", "gl", "xox", "xapp-", "hooks.slack", "webhooks/", "AKIA", "ASIA", "AIza", "ya29.",
		"GOCSPX-", "k_live_", "k_test_", "whsec_", "SG.", "hf_", "npm_", "pypi-", ":AA", "tdm_", "eyJ"}

	addressPassword = regexp.MustCompile(`\b([a-zA-Z][a-zA-Z0-9+.-]*)://[^\s/@:'"<>]*:([^\s/@'"<>]+)@[^\s/@]`)
	mysqlPassword   = regexp.MustCompile(`^[^\s:/@]+:([^\s@]+)@(?:tcp|unix)\(`)
	pairPassword    = regexp.MustCompile(`(?i)(?:^|[\s;])(?:password|pwd)\s*=\s*'?([^\s;']+)`)
	pairOther       = regexp.MustCompile(`(?i)(?:^|[\s;])(?:host|hostaddr|server|data source|user|user id|uid|dbname|database)\s*=`)
	queryPair       = regexp.MustCompile(`(?:^|[?&#])([A-Za-z0-9_.-]+)=([^&#\s]+)`)
	// formText is what the fields of a form look like in one text; bareFilled is a placeholder outside of quotation marks.
	formText   = regexp.MustCompile(`^[A-Za-z0-9_.\[\]-]+=[^&\s]*(?:&[A-Za-z0-9_.\[\]-]+=[^&\s]*)*$`)
	bareFilled = regexp.MustCompile(`([:,\[]\s*)\{\{[^}"]*\}\}`)
	authScheme = regexp.MustCompile(`(?i)^(bearer|basic|token|apikey|api-key|key|bot|digest|negotiate|signature)\s+`)
	// filledLater is what a placeholder looks like, ours and that of shells and others.
	filledLater = regexp.MustCompile(`\{\{[^}]*\}\}|\$\{[^}]*\}|\$[A-Z_]{2,}|%[A-Z_]{2,}%|<[^>]*>`)
	// standIn is what examples have instead of a secret.
	standIn = regexp.MustCompile(`(?i)x{4,}|\*{3,}|\.{3}|…|example|sample|placeholder|redacted|changeme|change-me|change_me|your|dummy|^(?:none|null|true|false|secret|password|passwd|token|string|test|todo)$`)
)

// inlineText says what secret a text is, or holds; empty: none. Name is that of the field it stands in.
func inlineText(name, written string) (what text.Text, certain bool) {
	if len(written) < 6 {
		return text.Text{}, false
	}
	if what := knownSecret(written); !what.IsZero() {
		return what, true
	}
	for _, find := range []func(written string) (what text.Text, certain bool){passwordInAddress, passwordInSource, secretInQuery} {
		if what, certain := find(written); !what.IsZero() {
			return what, certain
		}
	}
	return secretInField(name, written)
}

// knownSecret is a secret in a text that is recognised by its form.
func knownSecret(written string) text.Text {
	if !slices.ContainsFunc(knownBegins, func(begin string) bool { return strings.Contains(written, begin) }) {
		return text.Text{}
	}
	for _, known := range knownSecrets {
		for _, hit := range known.form.FindAllString(written, 20) {
			if !standIn.MatchString(hit) && distinct(hit) >= 8 {
				return known.what
			}
		}
	}
	return text.Text{}
}

// oneLine says that a text has no lines or columns.
func oneLine(text string) bool { return !strings.ContainsAny(strings.TrimSpace(text), "\n\t") }

// passwordInAddress is a password in an address in a text. It is certain where the text is the address.
func passwordInAddress(written string) (what text.Text, certain bool) {
	for _, m := range addressPassword.FindAllStringSubmatch(written, 20) {
		if isLiteral(m[2]) {
			return text.Of("a password in an address"), oneLine(written) && strings.HasPrefix(strings.TrimSpace(written), m[1]+"://")
		}
	}
	return text.Text{}, false
}

// passwordInSource is a password in the name of a data source, as MySQL writes it or in pairs.
func passwordInSource(written string) (what text.Text, certain bool) {
	inSource := text.Of("a password in a data source name")
	if m := mysqlPassword.FindStringSubmatch(written); m != nil && isLiteral(m[1]) {
		return inSource, true
	}
	if m := pairPassword.FindStringSubmatch(written); m != nil && oneLine(written) && isLiteral(m[1]) && pairOther.MatchString(written) {
		return inSource, true
	}
	return text.Text{}, false
}

// secretInQuery is a secret among the parameters of an address.
func secretInQuery(written string) (what text.Text, certain bool) {
	if !strings.Contains(written, "://") && !strings.HasPrefix(written, "/") && !strings.HasPrefix(written, "?") {
		return text.Text{}, false
	}
	return pairSecret(func(name string) text.Text { return text.Of("the parameter %q of an address", name) }, written)
}

// secretInField is what stands in a field under whose name people write secrets.
func secretInField(name, written string) (what text.Text, certain bool) {
	if !secretField(name) {
		return text.Text{}, false
	}
	value, scheme := strings.TrimSpace(written), false
	if m := authScheme.FindString(value); m != "" {
		value, scheme = strings.TrimSpace(value[len(m):]), true
	}
	sure, likely := strength(value)
	if scheme && likely && len(value) >= 8 && !strings.ContainsAny(value, " ") {
		sure = true // nothing else is written like that
	}
	if !sure && !likely {
		return text.Text{}, false
	}
	return text.Of("what stands in %q", name), sure
}

// secretField recognises the names under which people write secrets, in any spelling.
func secretField(name string) bool {
	folded := foldedName(name)
	if slices.Contains([]string{
		"authorization", "proxy_authorization", "api_key", "apikey", "token", "bearer", "password", "passwd", "pwd", "passphrase", "secret",
		"client_secret", "private_key", "secret_key", "access_key",
		"subscription_key", "cookie", "auth", "auth_key", "authkey",
	}, folded) {
		return true
	}
	return slices.ContainsFunc([]string{"_token", "_secret", "_password", "_passwd", "_api_key", "_apikey", "_secret_key", "_access_key",
		"_private_key", "_passphrase"}, func(end string) bool { return strings.HasSuffix(folded, end) })
}

// isQuery recognises the names of objects that hold the parameters of a query.
func isQuery(name string) bool {
	return slices.Contains([]string{"query_params", "query", "query_parameters", "dynamic_query_params"}, foldedName(name))
}

// isQueryName recognises names under which a query carries a secret, and as often something else: a key of a map, the code of a country.
// Only what looks as if it was made by a machine is one there.
func isQueryName(name string) bool {
	folded := foldedName(name)
	return slices.Contains([]string{"key", "appkey", "appid_key", "skey", "sig", "sign", "signature", "hmac", "mac", "sas", "code", "pass",
		"jwt", "session", "session_id", "sessionid", "sid", "ticket", "ak", "sk", "credential"}, folded) ||
		slices.ContainsFunc([]string{"_key", "_sig", "_sign", "_signature", "_hmac", "_credential"},
			func(end string) bool { return strings.HasSuffix(folded, end) })
}

// foldedName is a name in lower case with underscores, without the "x" before names of headers.
func foldedName(name string) string {
	var b strings.Builder
	lower := false
	for _, r := range name {
		switch {
		case r == '-' || r == '.' || r == ' ':
			r = '_'
		case unicode.IsUpper(r) && lower:
			b.WriteByte('_')
		}
		lower = unicode.IsLower(r) || unicode.IsDigit(r)
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.TrimPrefix(b.String(), "x_")
}

// isLiteral says that a text is written out, and is not what examples have in its place.
func isLiteral(text string) bool {
	rest := strings.TrimSpace(filledLater.ReplaceAllString(text, ""))
	return rest != "" && !standIn.MatchString(rest)
}

// strength says whether a text under a telling name is a secret: surely, when it looks as if it was made by a machine; likely, when it is
// not a word.
func strength(text string) (sure, likely bool) {
	rest := strings.TrimSpace(filledLater.ReplaceAllString(text, ""))
	if !isLiteral(text) || len(rest) < 6 || rest != strings.TrimSpace(text) && len(rest) < 16 {
		return false, false
	}
	if strings.ContainsFunc(rest, unicode.IsSpace) || strings.HasPrefix(rest, "nodes.") || strings.HasPrefix(rest, "cred_") {
		return false, false
	}
	letters, others := false, false
	for _, r := range rest {
		if unicode.IsLetter(r) {
			letters = true
		} else if r != '_' && r != '-' && r != '.' && r != ':' && r != '/' {
			others = true
		}
	}
	likely = letters && others && distinct(rest) >= 4
	return likely && len(rest) >= 16 && distinct(rest) >= 8, likely
}

// The lengths from which a text that a machine has made may be a secret, and surely is one.
const (
	likelyMade = 16
	surelyMade = 20
)

// uuid is what ids of records look like; some keys do, too. fileName is what a text with the name of a file ends with. Both are read-only.
var (
	uuid     = regexp.MustCompile(`(?i)^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	fileName = regexp.MustCompile(`\.[A-Za-z][A-Za-z0-9]{1,4}$`)
)

// machineMade says whether a text under a name that says little is a secret: when letters, capitals and digits change too often for words.
// It is stricter than [strength]: names of files, dates, and words with numbers between them are not secrets.
func machineMade(text string) (sure, likely bool) {
	if !isLiteral(text) {
		return false, false
	}
	if plain, err := url.PathUnescape(text); err == nil {
		text = plain
	}
	text = strings.TrimSpace(filledLater.ReplaceAllString(text, ""))
	if fileName.MatchString(text) || strings.ContainsFunc(text, unicode.IsSpace) || strings.HasPrefix(text, "cred_") {
		return false, false
	}
	made := 0
	for run := range strings.FieldsFuncSeq(text, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		if n := changes(run); len(run) >= 6 && n >= 2 && 4*n >= len(run) {
			made += len(run)
		}
	}
	return made >= surelyMade && !uuid.MatchString(text), made >= likelyMade
}

// changes counts where a text goes from small letters to capitals or digits and back; a capital before small letters begins a word, and
// does not count.
func changes(text string) (n int) {
	class := func(c byte) int {
		switch {
		case c >= '0' && c <= '9':
			return 0
		case c >= 'a' && c <= 'z':
			return 1
		}
		return 2
	}
	for i := 1; i < len(text); i++ {
		if before, now := class(text[i-1]), class(text[i]); before != now && !(before == 2 && now == 1) {
			n++
		}
	}
	return n
}

// distinct counts the different bytes.
func distinct(text string) int {
	var seen [256]bool
	n := 0
	for i := range len(text) {
		if !seen[text[i]] {
			seen[text[i]] = true
			n++
		}
	}
	return n
}
