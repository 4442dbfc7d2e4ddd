package mail

import (
	"net"
	"strings"

	"golang.org/x/net/publicsuffix"
)

// Trust says whose word counts for the sender of a mail.
type Trust struct {
	// Server is what the receiving server calls itself in the Authentication-Results that it writes. With Exact it has to be that; else
	// the name may be any of the same organisation (mx.example.com for imap.example.com). Empty: the server writes no name.
	Server string
	Exact  bool
	// Everyone means that senders are believed without a word of the server: it takes mail from known people only.
	Everyone bool
}

// receiverOf is what the servers of a provider call themselves.
func receiverOf(credentialType, host string) string {
	host = strings.ToLower(host)
	switch organisation(host) {
	case "gmail.com", "googlemail.com", "google.com":
		return "mx.google.com"
	case "office365.com", "outlook.com", "outlook.cn":
		return ""
	}
	switch credentialType {
	case typeGoogle:
		return "mx.google.com"
	case typeMicrosoft:
		return ""
	}
	return host
}

// vouches says whether a name in Authentication-Results is that of the receiving server.
func (t Trust) vouches(name string) bool {
	if t.Exact || t.Server == "" || name == "" {
		return strings.EqualFold(name, t.Server)
	}
	return organisation(name) == organisation(t.Server)
}

// genuine says whether the receiving server found that a mail comes from the domain in its From. Only the topmost word counts: servers
// put theirs on top, and everything below may have come with the mail.
//
// A server that neither writes Authentication-Results nor takes away those that come in lets a sender write them. Such a server needs an
// authserv_id in the credential that nobody uses.
func (t Trust) genuine(h header, from string) bool {
	if from == "" || len(h.all("From")) != 1 {
		return false
	}
	if t.Everyone {
		return true
	}
	words := h.all("Authentication-Results")
	if len(words) == 0 {
		return false
	}
	server, results, ok := parseResults(words[0])
	if !ok || !t.vouches(server) {
		return false
	}
	domain := organisation(domainOf(from))
	passed := false
	for _, r := range results {
		switch r.method {
		case "dmarc":
			if r.value != "pass" && r.value != "none" && r.value != "bestguesspass" {
				return false
			}
			passed = passed || r.value == "pass" && r.facts["header.from"] != "" && organisation(r.facts["header.from"]) == domain
		case "dkim":
			signer := r.facts["header.d"]
			if signer == "" {
				signer = domainOf(r.facts["header.i"])
			}
			passed = passed || r.value == "pass" && signer != "" && organisation(signer) == domain
		case "spf":
			sender := domainOf(r.facts["smtp.mailfrom"])
			passed = passed || r.value == "pass" && sender != "" && organisation(sender) == domain
		}
	}
	return passed
}

// organisation is the domain that somebody has registered: example.co.uk for mail.example.co.uk.
func organisation(domain string) string {
	domain = strings.ToLower(strings.TrimSuffix(strings.TrimSpace(domain), "."))
	if net.ParseIP(domain) != nil {
		return domain
	}
	if registered, err := publicsuffix.EffectiveTLDPlusOne(domain); err == nil {
		return registered
	}
	return domain
}

// result is what a server found by one method.
type result struct {
	method, value string
	facts         map[string]string
}

// parseResults reads an Authentication-Results field. One whose comments or quotes do not end is not understood: what the sender chose
// could have broken out of them.
func parseResults(text string) (server string, results []result, ok bool) {
	words, ok := resultWords(text)
	if !ok {
		return "", nil, false
	}
	for i, segment := range words {
		if i == 0 && (len(segment) == 0 || !strings.Contains(segment[0], "=")) {
			if len(segment) > 0 {
				server = segment[0]
			}
			continue
		}
		var r result
		for j, word := range segment {
			name, value, found := strings.Cut(word, "=")
			if !found {
				continue
			}
			name, value = strings.ToLower(name), strings.ToLower(value)
			if j == 0 {
				r = result{value: value, facts: map[string]string{}}
				r.method, _, _ = strings.Cut(name, "/")
			} else if r.facts != nil {
				if _, twice := r.facts[name]; twice {
					return "", nil, false
				}
				r.facts[name] = value
			}
		}
		if r.method != "" {
			results = append(results, r)
		}
	}
	return server, results, true
}

// resultWords takes comments away and splits what is left at semicolons and spaces, not inside quotes and not around equals signs.
func resultWords(text string) (segments [][]string, ok bool) {
	var segment []string
	var word strings.Builder
	depth, quoted, begun := 0, false, false
	endWord := func() {
		if begun {
			segment = append(segment, word.String())
		}
		word.Reset()
		begun = false
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case (quoted || depth > 0) && c == '\\':
			i++
			if i == len(text) {
				return nil, false
			}
			if quoted {
				word.WriteByte(text[i])
			}
		case quoted:
			if quoted = c != '"'; quoted {
				word.WriteByte(c)
			}
		case c == '(':
			depth++
		case depth > 0:
			if c == ')' {
				depth--
			}
		case c == ')':
			return nil, false
		case c == '"':
			quoted, begun = true, true
		case c == ';':
			endWord()
			segments, segment = append(segments, segment), nil
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			// Around an equals sign a space says nothing.
			rest := strings.TrimLeft(text[i:], " \t\r\n")
			if begun && !strings.HasPrefix(rest, "=") && !strings.HasSuffix(word.String(), "=") {
				endWord()
			}
		default:
			word.WriteByte(c)
			begun = true
		}
	}
	endWord()
	return append(segments, segment), depth == 0 && !quoted
}

// automatic says whether no person wrote a mail. Report says that it has a part that only reports have.
func automatic(h header, from, subject string, report bool) bool {
	word := func(name string) string {
		value, _, _ := strings.Cut(h.get(name), ";")
		return strings.ToLower(strings.TrimSpace(value))
	}
	if submitted := word("Auto-Submitted"); submitted != "" && submitted != "no" {
		return true
	}
	for _, name := range []string{"X-Autoreply", "X-Autorespond", "X-Auto-Reply", "X-Autoresponder", "X-Auto-Response-Suppress"} {
		if len(h.all(name)) > 0 && word(name) != "no" && word(name) != "none" {
			return true
		}
	}
	switch word("Precedence") {
	case "bulk", "auto_reply", "auto-reply", "list", "junk":
		return true
	}
	if report || word("Return-Path") == "<>" || len(h.all("X-Failed-Recipients")) > 0 {
		return true
	}
	if local, _, _ := strings.Cut(strings.ToLower(from), "@"); local == "mailer-daemon" || local == "postmaster" {
		return true
	}
	return automaticSubject(subject)
}

// automaticSubject says whether a subject begins as those of automatic replies and of reports do. Only what machines write in front counts;
// a reply to a question about such things begins with "Re:".
func automaticSubject(subject string) bool {
	subject = strings.ToLower(strings.TrimSpace(subject))
	for _, beginning := range []string{
		"automatic reply", "auto reply:", "auto-reply:", "autoreply:", "autosvar:", "out of office", "out of the office",
		"undeliverable:", "undelivered mail",
		"delivery status notification", "mail delivery failed", "mail delivery subsystem", "delivery failure", "failure notice",
		"returned mail:", "read:", "not read:", "automatische antwort", "réponse automatique", "respuesta automática",
		"自动回复", "自動回覆", "自动答复", "自動回復", "休假自动", "外出自动", "退信", "系统退信", "已读:", "已读：", "未读:", "未读：", "自動応答", "不在通知",
	} {
		if strings.HasPrefix(subject, beginning) {
			return true
		}
	}
	return false
}
