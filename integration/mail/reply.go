package mail

import (
	"bytes"
	"encoding/base64"
	"io"
	"mime"
	"mime/quotedprintable"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/simplifiedchinese"

	"tandem/fault"
	"tandem/hypertext"
	"tandem/text"
)

const (
	// maxMail is how much of a mail is read; what follows is left out.
	maxMail = 2 << 20
	// maxDepth and maxParts bound how parts are nested, and how many are looked at.
	maxDepth, maxParts = 10, 200
	// maxFields and maxField bound a header and the bytes of one of its fields.
	maxFields, maxField = 1000, 32 << 10
	// maxThreads is how many earlier messages a mail refers to, the latest.
	maxThreads = 100
	// maxText is how much a person says.
	maxText = 256 << 10
)

// Mail is a mail that was read.
type Mail struct {
	// ID is its Message-ID, without brackets. Threads are those that it refers to, the nearest first.
	ID      string
	Threads []string
	// Token is the reply token that it brings back, as part of a Message-ID or as a marker.
	Token string
	// From is the address of the sender, if there is exactly one; Name what they call themselves.
	From, Name string
	Subject    string
	// Text is what it says, quotations included. Attachments are not part of it.
	Text      string
	Automatic bool
	// Verified says that the receiving server vouches for From.
	Verified bool
	// Own says that it is a message of ours, not a reply to one.
	Own bool
	// Answers says that it refers to another mail or reports about one.
	Answers bool
	// Report says that a server wrote it to tell what became of a mail.
	Report bool
}

// Concerns says whether a mail is a reply to a message of ours, as far as one can see.
func (m Mail) Concerns() bool {
	return !m.Own && (m.Token != "" || slices.ContainsFunc(m.Threads, isOurs))
}

// ParseMail reads a mail, which may have been cut off. It understands what it can: what is broken in a mail does not make it
// unreadable.
func ParseMail(raw []byte, trust Trust) (Mail, error) {
	h, body := splitMail(raw[:min(len(raw), maxMail)])
	if len(h) == 0 {
		return Mail{}, fault.New(fault.InvalidInput, "this is not a mail: it has no header")
	}
	return parseMail(h, body, trust), nil
}

// parseMail reads a mail whose header was split off.
func parseMail(h header, body []byte, trust Trust) Mail {
	r := &reader{}
	text := r.text(h, body, "", 0)
	m := Mail{Subject: strings.Join(strings.Fields(decodeHeader(h.get("Subject"))), " "), Text: text}
	if ids := messageIDs(h.get("Message-Id")); len(ids) > 0 {
		m.ID = ids[0]
	}
	parser := mail.AddressParser{WordDecoder: wordDecoder()}
	if list, err := parser.ParseList(h.get("From")); err == nil && len(list) == 1 {
		m.From, m.Name = strings.ToLower(list[0].Address), oneLine(list[0].Name)
	}
	answered := messageIDs(strings.Join(h.all("In-Reply-To"), " "))
	references := messageIDs(strings.Join(h.all("References"), " "))
	slices.Reverse(references) // the nearest comes last
	m.Threads = slices.Concat(answered, references)
	m.Answers = len(m.Threads) > 0 || r.report
	m.Threads = append(m.Threads, r.reported...)
	m.Threads = unique(m.Threads)[:min(maxThreads, len(unique(m.Threads)))]
	m.Token = findToken(m.Threads, m.Subject, m.Text)
	m.Own = isOurs(m.ID) && h.get(interactionHeader) != ""
	m.Automatic = automatic(h, m.From, m.Subject, r.report)
	m.Report = r.report
	m.Verified = trust.genuine(h, m.From)
	return m
}

func unique(list []string) []string {
	var kept []string
	seen := map[string]bool{}
	for _, s := range list {
		if !seen[s] {
			seen[s] = true
			kept = append(kept, s)
		}
	}
	return kept
}

// field is one line of a header, unfolded.
type field struct{ name, value string }

// header is that of a mail or a part, in the order it was written.
type header []field

func (h header) all(name string) []string {
	var values []string
	for _, f := range h {
		if strings.EqualFold(f.name, name) {
			values = append(values, f.value)
		}
	}
	return values
}

func (h header) get(name string) string {
	for _, f := range h {
		if strings.EqualFold(f.name, name) {
			return f.value
		}
	}
	return ""
}

// splitMail reads a header and leaves the body. Lines that are neither a field nor the continuation of one are passed over.
func splitMail(raw []byte) (h header, body []byte) {
	for len(raw) > 0 {
		line, rest, _ := bytes.Cut(raw, []byte("\n"))
		raw = rest
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(line) == 0 {
			break
		}
		if line[0] == ' ' || line[0] == '\t' {
			if len(h) > 0 && len(h[len(h)-1].value) < maxField {
				h[len(h)-1].value += " " + text.Head(string(bytes.TrimSpace(line)), maxField)
			}
			continue
		}
		if len(h) >= maxFields {
			continue
		}
		name, value, found := bytes.Cut(line, []byte(":"))
		name = bytes.TrimRight(name, " \t")
		if !found || len(name) == 0 || bytes.ContainsAny(name, " \t") {
			continue
		}
		h = append(h, field{name: string(name), value: text.Head(string(bytes.TrimSpace(value)), maxField)})
	}
	return h, raw
}

// reader walks through the parts of a mail.
type reader struct {
	parts int
	// report says that there is a part which only reports have, reported the messages it is about.
	report   bool
	reported []string
}

// text is what a part says to people. Within is the kind of multipart around it.
func (r *reader) text(h header, body []byte, within string, depth int) string {
	if r.parts++; depth > maxDepth || r.parts > maxParts {
		return ""
	}
	kind, parameters := contentType(h)
	disposition, names, err := mime.ParseMediaType(h.get("Content-Disposition"))
	if err != nil {
		disposition, names = strings.ToLower(strings.TrimSpace(strings.Split(h.get("Content-Disposition"), ";")[0])), nil
	}
	attached := disposition == "attachment" || names["filename"] != "" || parameters["name"] != ""
	switch {
	case strings.HasPrefix(kind, "multipart/"):
		r.report = r.report || kind == "multipart/report"
		var texts []string
		for _, part := range splitParts(body, parameters["boundary"]) {
			inner, content := splitMail(part)
			text := r.text(inner, content, kind, depth+1)
			if strings.TrimSpace(text) == "" {
				continue
			}
			texts = append(texts, text)
			if kind == "multipart/alternative" || kind == "multipart/related" {
				break // the others say the same, or belong to it
			}
		}
		return text.Head(strings.Join(texts, "\n\n"), maxText)
	case kind == "message/delivery-status", kind == "message/disposition-notification":
		r.report = true
	case kind == "message/rfc822", kind == "message/rfc822-headers", kind == "text/rfc822-headers":
		// What somebody forwards is not theirs. What a report gives back tells what it is about.
		if within == "multipart/report" {
			inner, _ := splitMail(decodeBody(h, body))
			for _, name := range []string{"Message-Id", "In-Reply-To", "References"} {
				r.reported = append(r.reported, messageIDs(strings.Join(inner.all(name), " "))...)
			}
		}
	case attached:
	case kind == "text/html":
		return text.Head(tidy(hypertext.OfMail(decodeText(decodeBody(h, body[:min(len(body), maxMail)]), parameters["charset"]))), maxText)
	case kind == "text/plain":
		return text.Head(tidy(decodeText(decodeBody(h, body[:min(len(body), maxMail)]), parameters["charset"])), maxText)
	}
	return ""
}

func contentType(h header) (string, map[string]string) {
	value := h.get("Content-Type")
	if value == "" {
		return "text/plain", nil
	}
	kind, parameters, err := mime.ParseMediaType(value)
	if err != nil {
		kind, parameters = strings.ToLower(strings.TrimSpace(strings.Split(value, ";")[0])), map[string]string{}
		for _, name := range []string{"charset", "boundary"} {
			// A parameter that is written badly is still worth reading.
			if m := regexp.MustCompile(`(?i);\s*` + name + `\s*=\s*("[^"]*"|[^\s;]+)`).FindStringSubmatch(value); m != nil {
				parameters[name] = strings.Trim(m[1], `"`)
			}
		}
	}
	if !strings.Contains(kind, "/") {
		kind = "text/plain"
	}
	return kind, parameters
}

// splitParts cuts a body at its boundary. The last part may have been cut off.
func splitParts(body []byte, boundary string) [][]byte {
	if boundary == "" {
		return nil
	}
	var parts [][]byte
	begin := -1
	for at := 0; at < len(body); {
		end, next := len(body), len(body)
		if i := bytes.IndexByte(body[at:], '\n'); i >= 0 {
			end, next = at+i, at+i+1
		}
		line := bytes.TrimRight(body[at:end], " \t\r")
		rest, marked := bytes.CutPrefix(line, []byte("--"+boundary))
		if marked && (len(rest) == 0 || string(rest) == "--") {
			if begin >= 0 { // the end of the line in front of a boundary belongs to it
				parts = append(parts, bytes.TrimSuffix(bytes.TrimSuffix(body[begin:at], []byte("\n")), []byte("\r")))
			}
			begin = next
			if len(rest) > 0 || len(parts) >= maxParts {
				return parts
			}
		}
		at = next
	}
	if begin >= 0 {
		parts = append(parts, body[begin:])
	}
	return parts
}

// decodeBody undoes the transfer encoding, as far as it goes.
func decodeBody(h header, body []byte) []byte {
	switch strings.ToLower(strings.TrimSpace(h.get("Content-Transfer-Encoding"))) {
	case "base64":
		clean := make([]byte, 0, len(body))
		for _, c := range body {
			if 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '+' || c == '/' {
				clean = append(clean, c)
			}
		}
		decoded := make([]byte, base64.RawStdEncoding.DecodedLen(len(clean)))
		n, _ := base64.RawStdEncoding.Decode(decoded, clean) // what is broken at its end is good until there
		return decoded[:n]
	case "quoted-printable":
		var decoded bytes.Buffer
		_, err := io.Copy(&decoded, quotedprintable.NewReader(bytes.NewReader(body)))
		if err != nil && decoded.Len() == 0 {
			return body
		}
		return decoded.Bytes()
	}
	return body
}

// decodeText brings bytes into UTF-8. What is not in the character set that it claims is taken for Chinese, which is what mails
// without a true claim mostly are.
func decodeText(raw []byte, charset string) string {
	if e := encodingOf(charset); e != nil {
		if text, err := e.NewDecoder().Bytes(raw); err == nil {
			return string(text)
		}
	}
	if utf8.Valid(raw) {
		return string(raw)
	}
	if text, err := simplifiedchinese.GB18030.NewDecoder().Bytes(raw); err == nil && !bytes.ContainsRune(text, utf8.RuneError) {
		return string(text)
	}
	return strings.ToValidUTF8(string(raw), "\uFFFD")
}

// encodingOf is nil for UTF-8, for what is not known, and when nothing is said.
func encodingOf(charset string) encoding.Encoding {
	name := strings.ToLower(strings.Trim(charset, ` "'`))
	switch name {
	case "", "utf-8", "utf8", "us-ascii", "ascii":
		return nil
	case "gb2312", "gbk", "gb_2312-80", "cp936", "x-gbk", "gb18030", "csgb2312", "ms936":
		return simplifiedchinese.GB18030 // it holds all of the others
	}
	if e, err := htmlindex.Get(name); err == nil && e != encoding.Replacement {
		return e
	}
	if e, err := ianaindex.MIME.Encoding(name); err == nil {
		return e
	}
	return nil
}

func wordDecoder() *mime.WordDecoder {
	return &mime.WordDecoder{CharsetReader: func(charset string, input io.Reader) (io.Reader, error) {
		raw, err := io.ReadAll(input)
		return strings.NewReader(decodeText(raw, charset)), err
	}}
}

func decodeHeader(value string) string {
	decoded, err := wordDecoder().DecodeHeader(value)
	if err != nil {
		decoded = value
	}
	return decodeText([]byte(decoded), "")
}

// tidy ends lines alike and takes away what is not text.
func tidy(text string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	text = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r == '\u200b' || r == '\ufeff' {
			return -1
		}
		if r == '\u00a0' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \t")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// messageIDs finds the ids in a field.
func messageIDs(value string) []string {
	var ids []string
	for {
		begin := strings.IndexByte(value, '<')
		if begin < 0 {
			return ids
		}
		value = value[begin+1:]
		end := strings.IndexAny(value, "<>")
		if end < 0 {
			return ids
		}
		if id := strings.Join(strings.Fields(value[:end]), ""); value[end] == '>' && id != "" && len(id) <= 998 {
			ids = append(ids, id)
		}
		value = value[end:]
	}
}
