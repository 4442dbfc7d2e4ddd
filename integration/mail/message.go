package mail

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"html/template"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	gomail "github.com/wneessen/go-mail"

	"tandem/fault"
	"tandem/human"
	"tandem/human/form"
	"tandem/payload"
	"tandem/text"
)

const (
	// interactionHeader names the question that a message is about.
	interactionHeader = "X-Tandem-Interaction"
	// idPrefix begins the Message-IDs of this package: tandem.MESSAGE@domain. With a token, tandem.MESSAGE.TOKEN@domain, one stands only
	// among the references of a message, and comes back among those of a reply.
	idPrefix = "tandem."
	// maxShown is how much of what a question is about is put into a mail.
	maxShown = 16 << 10
	// maxTitle is how long a subject is, in bytes; the rest is in the mail.
	maxTitle = 200
	// maxButtons is how many options get a button; the page has them all.
	maxButtons = 8
)

// note is what is kept of a sent message.
type note struct {
	ID      string `json:"message_id"`
	Subject string `json:"subject"`
}

// letter is a message before it is written down.
type letter struct {
	from, replyTo *mail.Address
	to            []*mail.Address
	message       human.Message
	priority      string // low, normal, high
	// read says that somebody reads what is replied.
	read bool
	now  time.Time
}

// messageID makes the id of a message. It is the same whenever the message is sent, so that servers and people see one mail. Its token may
// be another each time, so the id of the mail itself is made without it.
func messageID(workspace, id, token, domain string) string {
	sum := sha256.Sum256([]byte(workspace + "\x00" + id))
	local := idPrefix + hex.EncodeToString(sum[:12])
	if tokenForm(token) {
		local += "." + token
	}
	return local + "@" + domain
}

// isOurs says whether a Message-ID was made by this package.
func isOurs(id string) bool {
	rest, ok := strings.CutPrefix(id, idPrefix)
	if !ok {
		return false
	}
	local, _, found := strings.Cut(rest, "@")
	hash, _, _ := strings.Cut(local, ".")
	_, err := hex.DecodeString(hash)
	return found && len(hash) == 24 && err == nil
}

// tokenForm says whether a token can stand in an address and in a marker.
func tokenForm(token string) bool {
	return token != "" && len(token) <= 128 && !strings.ContainsFunc(token, func(r rune) bool {
		return r != '-' && r != '_' && (r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r))
	})
}

// findToken finds the reply token that a mail brings back: that of the message it answers, or one in a marker.
func findToken(threads []string, subject, text string) string {
	for _, id := range threads {
		if !isOurs(id) {
			continue
		}
		local, _, _ := strings.Cut(strings.TrimPrefix(id, idPrefix), "@")
		if _, token, found := strings.Cut(local, "."); found && tokenForm(token) {
			return token
		}
	}
	marker := regexp.MustCompile(`\[ref:\s*([A-Za-z0-9_-]{1,128})\s*\]`)
	for _, place := range []string{subject, text} {
		if m := marker.FindStringSubmatch(place); m != nil {
			return m[1]
		}
	}
	return ""
}

// oneLine makes a text that can stand in a header: nothing in it ends a line, and nothing turns the direction of reading.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "\uFFFD"), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && r != '\u200d' || r == '\u2028' || r == '\u2029'
	}), " ")
}

// compose writes the mail. What it returns besides is what replies refer to.
func (l letter) compose() (raw []byte, n note, err error) {
	m := l.message
	domain := domainOf(l.from.Address)
	n = note{ID: messageID(m.Workspace, m.ID, "", domain), Subject: l.subject()}
	var earlier []string
	for _, body := range m.Earlier {
		var e note
		if json.Unmarshal(body, &e) != nil || !isOurs(e.ID) ||
			strings.ContainsFunc(e.ID, func(r rune) bool { return r <= ' ' || r == '<' || r == '>' }) || e.ID == n.ID {
			continue
		}
		if len(earlier) == 0 && e.Subject != "" {
			// The same subject keeps a conversation together.
			n.Subject = oneLine(e.Subject)
		}
		earlier = append(earlier, "<"+e.ID+">")
	}
	subject := n.Subject
	if len(earlier) > 0 {
		subject = "Re: " + subject
	}
	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	msg.FromMailAddress(l.from)
	msg.ToMailAddress(l.to...)
	if l.replyTo != nil {
		msg.ReplyToMailAddress(l.replyTo)
	}
	msg.Subject(subject)
	msg.SetMessageIDWithValue(n.ID)
	msg.SetDateWithValue(l.now)
	references := earlier
	if len(earlier) > 0 {
		msg.SetGenHeaderPreformatted(gomail.HeaderInReplyTo, earlier[len(earlier)-1])
		if len(earlier) > 20 { // the first and the latest keep a conversation together
			references = slices.Concat(earlier[:1], earlier[len(earlier)-19:])
		}
	}
	if l.marked() {
		references = append(slices.Clone(references), "<"+messageID(m.Workspace, m.ID, m.ReplyToken, domain)+">")
	}
	if len(references) > 0 {
		msg.SetGenHeaderPreformatted(gomail.HeaderReferences, strings.Join(references, "\r\n "))
	}
	msg.SetGenHeader("Auto-Submitted", "auto-generated")
	// Programs that answer for people should leave it alone.
	msg.SetGenHeader(gomail.HeaderXAutoResponseSuppress, "OOF, AutoReply")
	msg.SetGenHeader(interactionHeader, oneLine(m.Interaction.ID))
	switch l.priority {
	case "high":
		msg.SetImportance(gomail.ImportanceHigh)
	case "low":
		msg.SetImportance(gomail.ImportanceLow)
	}
	page := l.page()
	var plain, rich bytes.Buffer
	page.writeText(&plain)
	if err := pageTemplate().Execute(&rich, page); err != nil {
		return nil, note{}, fault.New(fault.Internal, "the mail could not be written").WithCause(err)
	}
	msg.SetBodyString(gomail.TypeTextPlain, plain.String())
	msg.AddAlternativeString(gomail.TypeTextHTML, rich.String())
	var out bytes.Buffer
	if _, err := msg.WriteTo(&out); err != nil {
		return nil, note{}, fault.New(fault.Internal, "the mail could not be written").WithCause(err)
	}
	return out.Bytes(), n, nil
}

// marked says that a reply can be told by a token, and that somebody reads it.
func (l letter) marked() bool { return l.read && tokenForm(l.message.ReplyToken) }

func (l letter) subject() string {
	m := l.message
	title := oneLine(m.Request.Title)
	if title == "" {
		title = oneLine(m.Request.Description)
	}
	if title == "" {
		title = l.words().Question
	}
	if len(title) > maxTitle {
		title = strings.TrimSpace(text.Head(title, maxTitle)) + "…"
	}
	if l.marked() {
		title += " [ref:" + m.ReplyToken + "]"
	}
	return title
}

// words are the fixed texts of a language.
type words struct {
	Lang, Question, Content, Arguments, Options, Fields, Until, Open, Choose, Reply, ReplyHint, LinkHint,
	NoReply, OnlyPage, From, Cut string
}

func (l letter) words() words {
	language := l.message.Request.Language
	say := func(t text.Text) string { return t.In(language) }
	return words{
		Lang:      text.Language(language),
		Question:  say(text.Of("A question is waiting for you")),
		Content:   say(text.Of("Content")),
		Arguments: say(text.Of("What is to be approved")),
		Options:   say(text.Of("Options")),
		Fields:    say(text.Of("To be filled in")),
		Until:     say(text.Of("Please answer by ")),
		Open:      say(text.Of("Open and answer")),
		Choose:    say(text.Of("A button opens the page; nothing is decided before you confirm it there.")),
		Reply:     say(text.Of("You can also reply to this mail. Write your answer above the quoted text.")),
		ReplyHint: say(text.Of("Please reply to this mail. Write your answer above the quoted text.")),
		LinkHint:  say(text.Of("Link: ")),
		NoReply:   say(text.Of("Please do not reply to this mail; replies are not read.")),
		OnlyPage:  say(text.Of("This is risky, so a reply by mail does not decide it; please answer on the page or in the inbox.")),
		From:      say(text.Of("From workflow")),
		Cut:       say(text.Of("(cut off here; the page shows all of it)")),
	}
}

// page is what a mail says, for both of its forms.
type page struct {
	W           words
	Greeting    string
	Lines       []string
	Title       string
	Description []string
	Content     string
	Arguments   string
	Options     []string
	Fields      []string
	Until       string
	Link        string
	Buttons     []button
	Hint        string
	Workflow    string
	Marker      string
}

type button struct {
	Label string
	// Color is one of those below, no text of anybody.
	Color template.CSS
}

func (l letter) page() page {
	m, w := l.message, l.words()
	r := m.Request
	p := page{W: w, Title: oneLine(r.Title), Greeting: oneLine(r.UserMention), Workflow: oneLine(m.Interaction.WorkflowName), Link: m.Link}
	if p.Title == "" {
		p.Title = w.Question
	}
	for _, line := range m.Lines {
		if line = oneLine(line); line != "" {
			p.Lines = append(p.Lines, line)
		}
	}
	if text := tidy(text.Head(r.Description, maxShown)); text != "" {
		p.Description = strings.Split(text, "\n")
	}
	p.Content, p.Arguments = shownJSON(r.Content, w), shownJSON(r.Arguments, w)
	if !asks(m.Kind) {
		p.Link = ""
	} else {
		for _, o := range r.Options {
			p.Options = append(p.Options, oneLine(form.Caption(o, r.Language)))
		}
		for _, f := range r.Fields {
			label := oneLine(f.Label)
			if label == "" {
				label = oneLine(f.Name)
			}
			p.Fields = append(p.Fields, label)
		}
		if m.Interaction.TimeoutAt > 0 {
			p.Until = time.UnixMilli(m.Interaction.TimeoutAt).UTC().Format("2006-01-02 15:04 UTC")
		}
	}
	if p.Link != "" {
		p.Buttons = l.buttons(p.Options)
	}
	switch {
	case !asks(m.Kind) || !l.read || m.ReplyToken == "":
		p.Hint = w.NoReply
	case r.Risk == "high": // a reply in prose does not decide it
		p.Hint = w.OnlyPage
	case p.Link != "":
		p.Hint = w.Reply
	default:
		p.Hint = w.ReplyHint
	}
	if l.marked() {
		p.Marker = "[ref:" + m.ReplyToken + "]"
	}
	return p
}

// asks says whether a kind of message wants an answer.
func asks(kind string) bool {
	return !human.Message{Kind: kind}.Ends()
}

// buttons all lead to the same page: what decides is what is confirmed there.
func (l letter) buttons(labels []string) []button {
	const neutral, good, bad template.CSS = "#3b5bdb", "#2b8a3e", "#c92a2a"
	r := l.message.Request
	if len(labels) == 0 || len(labels) > maxButtons || r.AllowMultiple {
		return []button{{l.words().Open, neutral}}
	}
	var list []button
	for i, label := range labels {
		color := neutral
		outcome, value := r.Options[i].Outcome, strings.ToLower(r.Options[i].Value)
		switch {
		case outcome == human.Confirmed || outcome == "" && slices.Contains([]string{"approve", "approved", "yes", "confirm"}, value):
			color = good
		case outcome == human.Rejected || outcome == "" && slices.Contains([]string{"reject", "rejected", "no", "deny"}, value):
			color = bad
		}
		list = append(list, button{label, color})
	}
	return list
}

// shownJSON is a value for people: a text as it is, the rest indented.
func shownJSON(raw json.RawMessage, w words) string {
	said, _ := payload.Shown(raw)
	if len(said) > maxShown {
		said = text.Head(said, maxShown) + "\n" + w.Cut
	}
	return tidy(said)
}

// writeText writes the plain form.
func (p page) writeText(out *bytes.Buffer) {
	paragraph := func(lines ...string) {
		if text := strings.TrimRight(strings.Join(lines, "\n"), "\n"); text != "" {
			out.WriteString(text + "\n\n")
		}
	}
	list := func(title string, items []string) {
		if len(items) > 0 {
			paragraph(title + ":\n- " + strings.Join(items, "\n- "))
		}
	}
	paragraph(p.Greeting)
	paragraph(p.Lines...)
	paragraph(p.Title)
	paragraph(p.Description...)
	if p.Content != "" {
		paragraph(p.W.Content+":", p.Content)
	}
	if p.Arguments != "" {
		paragraph(p.W.Arguments+":", p.Arguments)
	}
	list(p.W.Options, p.Options)
	list(p.W.Fields, p.Fields)
	if p.Until != "" {
		paragraph(p.W.Until + p.Until)
	}
	if p.Link != "" {
		paragraph(p.W.LinkHint + p.Link)
	}
	paragraph(p.Hint)
	if p.Workflow != "" {
		paragraph(p.W.From + ": " + p.Workflow)
	}
	paragraph(p.Marker)
}

// pageTemplate is the rich form. Styles are inline, since many programs drop all others; colours of text and ground are left to the
// reader's program, so that a dark one stays dark.
func pageTemplate() *template.Template {
	return template.Must(template.New("mail").Parse(`<!DOCTYPE html>
<html lang="{{.W.Lang}}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark"><meta name="supported-color-schemes" content="light dark"><title>{{.Title}}</title></head>
<body style="margin:0;padding:16px;font-family:-apple-system,'Segoe UI','PingFang SC','Microsoft YaHei',sans-serif;font-size:15px;line-height:1.5">
<div style="max-width:600px;margin:0 auto">
{{with .Greeting}}<p style="margin:0 0 12px">{{.}}</p>
{{end}}{{range .Lines}}<p style="margin:0 0 8px;font-weight:600">{{.}}</p>
{{end}}<h2 style="margin:8px 0 12px;font-size:20px;line-height:1.3">{{.Title}}</h2>
{{with .Description}}<p style="margin:0 0 12px">{{range $i, $line := .}}{{if $i}}<br>{{end}}{{$line}}{{end}}</p>
{{end}}{{with .Content}}<p style="margin:12px 0 4px;font-weight:600">{{$.W.Content}}</p>
<pre style="margin:0 0 12px;padding:8px 12px;border:1px solid #8888;border-radius:6px;white-space:pre-wrap;word-break:break-word;font-size:13px">{{.}}</pre>
{{end}}{{with .Arguments}}<p style="margin:12px 0 4px;font-weight:600">{{$.W.Arguments}}</p>
<pre style="margin:0 0 12px;padding:8px 12px;border:1px solid #8888;border-radius:6px;white-space:pre-wrap;word-break:break-word;font-size:13px">{{.}}</pre>
{{end}}{{with .Fields}}<p style="margin:12px 0 4px;font-weight:600">{{$.W.Fields}}</p>
<ul style="margin:0 0 12px;padding-left:20px">{{range .}}<li>{{.}}</li>{{end}}</ul>
{{end}}{{if not .Buttons}}{{with .Options}}<p style="margin:12px 0 4px;font-weight:600">{{$.W.Options}}</p>
<ul style="margin:0 0 12px;padding-left:20px">{{range .}}<li>{{.}}</li>{{end}}</ul>
{{end}}{{end}}{{with .Until}}<p style="margin:0 0 12px">{{$.W.Until}}{{.}}</p>
{{end}}{{with .Buttons}}<p style="margin:16px 0 8px">{{range .}}<a href="{{$.Link}}" style="display:inline-block;margin:0 8px 8px 0;padding:10px 18px;border-radius:6px;background-color:{{.Color}};color:#ffffff;text-decoration:none;font-weight:600">{{.Label}}</a>{{end}}</p>
<p style="margin:0 0 12px;font-size:13px;opacity:.75">{{$.W.Choose}}</p>
{{end}}<p style="margin:16px 0 0;font-size:13px;opacity:.75">{{.Hint}}{{with .Workflow}}<br>{{$.W.From}}: {{.}}{{end}}{{with .Marker}}<br>{{.}}{{end}}</p>
</div></body></html>
`))
}
