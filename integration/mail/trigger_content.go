package mail

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"tandem/builtin/fileref"
	"tandem/builtin/values"
	"tandem/store"
	"tandem/text"
)

const (
	// maxHTML is how much of the HTML of a mail is handed on, maxHeaders how many bytes of its headers.
	maxHTML    = 1 << 20
	maxHeaders = 64 << 10
)

// incoming is a mail that may start something.
type incoming struct {
	header header
	mail   Mail
	// html and files are there for a whole mail; whole says that it is one, and not the beginning that decides whether the rest is read.
	html  string
	files []attachment
	whole bool
	// cut says that the mail, its text or its HTML was too large.
	cut  bool
	hash string
}

// attachment is a part of a mail that is not its text.
type attachment struct {
	name, contentType string
	content           func() []byte
	// cut says that the mail ended in the middle of it.
	cut bool
}

// readIncoming reads a mail of which maybe only a part is there. False: it is not a mail.
func readIncoming(raw []byte, size int64, whole bool, trust Trust) (*incoming, bool) {
	h, body := splitMail(raw)
	if len(h) == 0 {
		return nil, false
	}
	l := &incoming{header: h, mail: parseMail(h, body, trust), whole: whole, cut: size > int64(len(raw))}
	if !whole {
		return l, true
	}
	sum := sha256.Sum256(raw)
	l.hash = hex.EncodeToString(sum[:])
	w := &partWalk{into: l, last: -1}
	w.walk(h, body, "", 0)
	if l.cut && w.last >= 0 {
		l.files[w.last].cut = true
	}
	if len(l.html) > maxHTML {
		l.html, l.cut = text.Head(l.html, maxHTML), true
	}
	l.cut = l.cut || len(l.mail.Text) > maxText-4 // a text is cut between letters
	return l, true
}

// partWalk collects the HTML and the attachments of a mail.
type partWalk struct {
	into  *incoming
	parts int
	// last is the attachment that is the last part so far; below zero: the last part is not an attachment.
	last int
}

func (w *partWalk) walk(h header, body []byte, within string, depth int) {
	if w.parts++; depth > maxDepth || w.parts > maxParts {
		w.into.cut = true
		return
	}
	kind, parameters := contentType(h)
	disposition, _, _ := strings.Cut(h.get("Content-Disposition"), ";")
	disposition = strings.ToLower(strings.TrimSpace(disposition))
	name := fileName(h)
	switch {
	case strings.HasPrefix(kind, "multipart/"):
		for _, part := range splitParts(body, parameters["boundary"]) {
			inner, content := splitMail(part)
			w.walk(inner, content, kind, depth+1)
		}
	case within == "multipart/report" && strings.HasPrefix(kind, "message/"):
		w.last = -1
	case kind == "text/plain" && name == "" && disposition != "attachment":
		w.last = -1
	case kind == "text/html" && name == "" && disposition != "attachment":
		w.last = -1
		if w.into.html == "" {
			w.into.html = strings.ToValidUTF8(decodeText(decodeBody(h, body[:min(len(body), maxMail)]), parameters["charset"]), "\uFFFD")
		}
	default:
		if name == "" && kind == "message/rfc822" {
			name = "message.eml"
		}
		w.last = len(w.into.files)
		w.into.files = append(w.into.files, attachment{name: cmp.Or(fileref.CleanName(name), "file"+extensionOf(kind)), contentType: kind,
			content: func() []byte { return decodeBody(h, body) }})
	}
}

// fileName is what the header of a part calls the file, in whichever of the usual ways; empty: it does not.
func fileName(h header) string {
	for _, place := range [][2]string{{"Content-Disposition", "filename"}, {"Content-Type", "name"}} {
		value, parameter := h.get(place[0]), place[1]
		if value == "" {
			continue
		}
		if name := extendedParameter(value, parameter); name != "" {
			return name
		}
		if _, parameters, err := mime.ParseMediaType(value); err == nil && parameters[parameter] != "" {
			return decodeHeader(parameters[parameter])
		}
		if m := regexp.MustCompile(`(?i);\s*` + parameter + `\s*=\s*("[^"]*"|[^;]+)`).FindStringSubmatch(value); m != nil {
			return decodeHeader(strings.Trim(strings.TrimSpace(m[1]), `"`))
		}
	}
	return ""
}

// extendedParameter reads a parameter that is written with its character set, in one piece or several (RFC 2231). The package mime reads
// UTF-8 only.
func extendedParameter(value, parameter string) string {
	pieces := map[int]string{}
	encoded := map[int]bool{}
	for _, m := range regexp.MustCompile(`(?i);\s*`+parameter+`\*(\d{0,2})(\*?)\s*=\s*("[^"]*"|[^;\s]+)`).FindAllStringSubmatch(value, 50) {
		n, err := strconv.Atoi(m[1])
		if err != nil { // it is the only one
			n = 0
		}
		pieces[n], encoded[n] = strings.Trim(m[3], `"`), m[1] == "" || m[2] == "*"
	}
	charset, whole := "", strings.Builder{}
	for n := range len(pieces) {
		piece := pieces[n]
		if n == 0 && encoded[0] {
			if parts := strings.SplitN(piece, "'", 3); len(parts) == 3 {
				charset, piece = parts[0], parts[2]
			}
		}
		if encoded[n] {
			if plain, err := url.PathUnescape(piece); err == nil {
				piece = plain
			}
		}
		whole.WriteString(piece)
	}
	return decodeText([]byte(whole.String()), charset)
}

// extensionOf is the end of the name of a file that has none, by its type.
func extensionOf(contentType string) string {
	known := map[string]string{
		"application/pdf": ".pdf", "application/zip": ".zip", "application/json": ".json", "application/xml": ".xml",
		"application/msword": ".doc",
		"application/vnd.openxmlformats-officedocument.wordprocessingml.document": ".docx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": ".xlsx",
		"text/plain": ".txt", "text/csv": ".csv", "text/html": ".html", "text/calendar": ".ics",
		"text/xml": ".xml", "message/rfc822": ".eml",
		"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp", "image/svg+xml": ".svg",
	}
	return known[contentType]
}

// answersQuestion says whether a mail is a reply to a question that Tandem has asked by mail. What others call [ref:…] is not one.
func (l *incoming) answersQuestion() bool {
	return slices.ContainsFunc(l.mail.Threads, isOurs) || regexp.MustCompile(`^[A-Za-z2-7]{26}$`).MatchString(l.mail.Token)
}

// automaticReply says whether a program has answered a mail for a person, or a server reports about one. Mail that programs write by
// themselves, such as invoices and alerts, is none.
func (l *incoming) automaticReply() bool {
	word := func(name string) string {
		value, _, _ := strings.Cut(l.header.get(name), ";")
		return strings.ToLower(strings.TrimSpace(value))
	}
	submitted := word("Auto-Submitted")
	local, _, _ := strings.Cut(l.mail.From, "@")
	switch {
	case l.mail.Report, submitted == "auto-replied", submitted == "auto-notified", word("Return-Path") == "<>",
		len(l.header.all("X-Failed-Recipients")) > 0,
		local == "mailer-daemon", local == "postmaster":
		return true
	}
	for _, name := range []string{"X-Autoreply", "X-Autorespond", "X-Auto-Reply", "X-Autoresponder"} {
		if value := word(name); len(l.header.all(name)) > 0 && value != "no" && value != "none" {
			return true
		}
	}
	if precedence := word("Precedence"); precedence == "auto_reply" || precedence == "auto-reply" {
		return true
	}
	// Some programs say it in the subject alone. A person's subject may begin alike, but not that of an answer that a machine has sent.
	return automaticSubject(l.mail.Subject) && (l.mail.Answers || submitted != "" && submitted != "no")
}

// addresses are those in a field.
func (l *incoming) addresses(name string) (list []string) {
	parser := mail.AddressParser{WordDecoder: wordDecoder()}
	for _, value := range l.header.all(name) {
		parsed, err := parser.ParseList(value)
		if err != nil { // it is not written as it should be, and still says something
			if value = oneLine(decodeHeader(value)); value != "" {
				list = append(list, value)
			}
			continue
		}
		for _, a := range parsed {
			list = append(list, strings.ToLower(a.Address))
		}
	}
	return list
}

// sent is when the mail says that it was written; zero: it does not say so.
func (l *incoming) sent() time.Time {
	at, err := mail.ParseDate(l.header.get("Date"))
	if err != nil {
		return time.Time{}
	}
	return at
}

// key is by what a mail is known again, wherever it is kept.
func (l *incoming) key() string {
	if l.mail.ID != "" {
		return "mid:" + l.mail.ID
	}
	return "sha256:" + l.hash
}

// headers are those of the mail by their names in small letters, as many as fit.
func (l *incoming) headers() map[string]any {
	out := map[string]any{}
	size := 0
	for _, f := range l.header {
		name, value := strings.ToLower(f.name), oneLine(decodeHeader(f.value))
		if size += len(name) + len(value); size > maxHeaders {
			l.cut = true
			break
		}
		name = strings.ToValidUTF8(name, "\uFFFD")
		switch before := out[name].(type) {
		case nil:
			out[name] = value
		case string:
			out[name] = []string{before, value}
		case []string:
			out[name] = append(before, value)
		}
	}
	return out
}

// payload is what the mail brings. Attachments are stored by keep.
func (l *incoming) payload(ctx context.Context, cfg *emailConfig, id string, received time.Time,
	keep func(context.Context, io.Reader) (store.Blob, error)) (json.RawMessage, error) {
	files := []json.RawMessage{}
	for _, a := range l.files {
		if !cfg.Attachments {
			break
		}
		file, err := a.keep(ctx, cfg, keep)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	headers := l.headers()
	thread := id
	if n := len(l.mail.Threads); n > 0 {
		thread = l.mail.Threads[0]
		if first := messageIDs(l.header.get("References")); len(first) > 0 {
			thread = first[0]
		}
	}
	return values.Object([]values.Member{
		values.Field("email_id", id), values.Field("sender", l.mail.From), values.Field("sender_name", l.mail.Name),
		values.Field("sender_verified", l.mail.Verified),
		values.Field("recipient", strings.Join(l.addresses("To"), ", ")), values.Field("cc", strings.Join(l.addresses("Cc"), ", ")),
		values.Field("subject", l.mail.Subject), values.Field("body_text", l.mail.Text), values.Field("body_html", l.html),
		{Key: "attachments", Value: values.Array(files)},
		values.Field("received_date", received.UTC().Format(time.RFC3339)), values.Field("email_headers", headers), values.Field("thread_id", thread), values.Field("truncated", l.cut),
	}), nil
}

// keep stores an attachment, or says why not.
func (a attachment) keep(ctx context.Context, cfg *emailConfig,
	keep func(context.Context, io.Reader) (store.Blob, error)) (json.RawMessage, error) {
	content := a.content()
	file, skipped := fileref.Value{Name: a.name, ContentType: a.contentType, Size: int64(len(content))}, ""
	switch {
	case a.cut:
		skipped = fmt.Sprintf("the mail is larger than %d bytes and ends in the middle of it", maxMessage)
	case !typeListed(cfg.Types, a.name, a.contentType):
		skipped = "its type is not among attachment_types"
	case file.Size > cfg.MaxSize:
		skipped = fmt.Sprintf("it has %d bytes, more than the %d of max_attachment_size", file.Size, cfg.MaxSize)
	}
	if skipped != "" {
		return values.Object([]values.Member{values.Field("name", file.Name), values.Field("content_type", file.ContentType),
			values.Field("size", file.Size), values.Field("skipped", skipped)}), nil
	}
	blob, err := keep(ctx, bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	file.Blob, file.SHA256 = blob.Hash, blob.Hash
	return values.Encode(file), nil
}

// typeListed says whether a file is of one of the types, which are ends of names or media types.
func typeListed(list []string, name, contentType string) bool {
	dot := strings.LastIndexByte(name, '.')
	end := strings.ToLower(name[dot+1:])
	if dot < 0 {
		end = strings.TrimPrefix(extensionOf(contentType), ".")
	}
	for _, entry := range list {
		entry = strings.ToLower(strings.TrimPrefix(strings.TrimSpace(entry), "."))
		family, all := strings.CutSuffix(entry, "/*")
		switch {
		case entry == "*", entry == "*/*", entry == end && end != "", entry == contentType, all && strings.HasPrefix(contentType, family+"/"):
			return true
		}
	}
	return false
}
