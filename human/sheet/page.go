package sheet

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"tandem/payload"
	"tandem/text"
)

//go:embed page.html style.css
var assets embed.FS

// Pages are the template of pages with its style. It is read when the first page is wanted. They are safe for concurrent use.
type Pages struct {
	load func() (*pageTemplate, error)
}

type pageTemplate struct {
	*template.Template
	style template.CSS
	hash  string
}

// NewPages makes them.
func NewPages() *Pages {
	return &Pages{sync.OnceValues(func() (*pageTemplate, error) {
		style, err := assets.ReadFile("style.css")
		if err != nil {
			return nil, fmt.Errorf("read the style of pages: %w", err)
		}
		t, err := template.ParseFS(assets, "page.html")
		if err != nil {
			return nil, fmt.Errorf("read the template of pages: %w", err)
		}
		return &pageTemplate{t, template.CSS(style), Hash(style)}, nil
	})}
}

// Hash is how a content security policy names a style or a script that stands in a page.
func Hash(content []byte) string {
	sum := sha256.Sum256(content)
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// Style is that of all pages.
func (p *Pages) Style() (template.CSS, error) {
	t, err := p.load()
	if err != nil {
		return "", err
	}
	return t.style, nil
}

// Page is what a page shows. One without a form is a notice.
type Page struct {
	Lang    string
	Style   template.CSS
	Heading string
	// Lines are what a notice says.
	Lines []string
	// Text, Facts, Risk, Content and Arguments tell what is asked.
	Text     string
	Facts    []Fact
	Risk     string
	RiskTone string
	Content  *Value
	// Fork says that the execution is a fork, and what was edited.
	Fork []string
	// Cut are the values that these lines show the beginning of.
	Cut       []Cut
	Arguments *Value
	// Hash is that of the arguments, to come back with the answer.
	Hash string

	Form *Sheet
	// Own says that the form answers in the name of whom the link was made for.
	Own bool
	// Multipart says that the form carries files.
	Multipart bool
	// General are what is wrong with the answer as a whole.
	General []string
	// Recorded is what was answered.
	Recorded []Fact
	// Hidden are what the form carries besides what is filled in, Action where it is sent; empty: to the address of the page.
	Hidden []Hidden
	Action string
	// Password asks for one under this label, instead of a form.
	Password string
}

// Hidden is a value that a form carries unseen.
type Hidden struct{ Name, Value string }

// Cut is a value of which a page shows the beginning, and where all of it is.
type Cut struct {
	ID, Name string
	// Original says that it is what something was before it was edited.
	Original bool
}

// ActionURL is where the form is sent.
func (p *Page) ActionURL() string {
	if p.Action != "" {
		return p.Action
	}
	return "?lang=" + p.Lang
}

// Fact is a line about a question. Machine is a time for programs; Code says that the value is JSON.
type Fact struct {
	Label, Value, Machine string
	Code                  bool
}

// Tell puts a text into the language of the page.
func (p *Page) Tell(t text.Text) string { return t.In(p.Lang) }

// Say is a text that the template has, in the language of the page.
func (p *Page) Say(english string) string { return p.Tell(text.InTemplate(english)) }

// Other is the language that the page is not in.
func (p *Page) Other() string {
	if p.Lang == text.Chinese {
		return text.English
	}
	return text.Chinese
}

// Wrong says whether something is wrong with what was sent.
func (p *Page) Wrong() bool { return len(p.General) > 0 || p.Form != nil && p.Form.Wrong() }

// Frame says where a page may be shown and where its form may lead.
type Frame struct {
	// Ancestors are the origins that may show the page inside a page of theirs; none: nobody may.
	Ancestors []string
	// Leads are the origins that sending the form may lead to besides this one.
	Leads []string
}

// Policy is the content security policy of a page: its own style and scripts, by their hashes, and nothing else.
func (f Frame) Policy(style string, scripts ...string) string {
	policy := "default-src 'none'; style-src " + style + "; form-action " + strings.Join(append([]string{"'self'"}, f.Leads...),
		" ") + "; base-uri 'none'; frame-ancestors "
	if len(f.Ancestors) == 0 {
		policy += "'none'"
	} else {
		policy += strings.Join(f.Ancestors, " ")
	}
	if len(scripts) > 0 {
		policy += "; connect-src 'self'; script-src " + strings.Join(scripts, " ")
	}
	return policy
}

// Head sets the headers of a page: nothing of it may be kept or found by a search, and it is shown inside no other page unless the frame
// says so.
func (f Frame) Head(header http.Header, language, style string, scripts ...string) {
	header.Set("Content-Security-Policy", f.Policy(style, scripts...))
	if len(f.Ancestors) > 0 {
		header.Del("X-Frame-Options") // it cannot name origins; the policy does
	}
	header.Set("Cache-Control", "no-store")
	header.Set("X-Robots-Tag", "noindex, nofollow, noarchive")
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Language", language)
	header.Set("Vary", "Accept-Language")
}

// Render writes a page. An error says that nothing was written.
func (p *Pages) Render(w http.ResponseWriter, status int, frame Frame, page *Page) error {
	t, err := p.load()
	if err != nil {
		return err
	}
	page.Style = t.style
	var out bytes.Buffer
	if err := t.ExecuteTemplate(&out, "page.html", page); err != nil {
		return err
	}
	frame.Head(w.Header(), page.Lang, t.hash)
	w.WriteHeader(status)
	_, _ = w.Write(out.Bytes()) // nobody took it, which the server counts
	return nil
}

// Question writes what is asked and its form as a part of another page.
func (p *Pages) Question(out io.Writer, page *Page) error {
	t, err := p.load()
	if err != nil {
		return err
	}
	return t.ExecuteTemplate(out, "question", page)
}

// AddFact adds a line, unless it is empty.
func (p *Page) AddFact(label, value string) {
	if value != "" {
		p.Facts = append(p.Facts, Fact{Label: label, Value: value})
	}
}

// Moment is a time in words, always in UTC and saying so.
func (p *Page) Moment(at time.Time) string {
	return at.UTC().Format(p.Tell(text.Of("2 January 2006, 15:04 UTC")))
}

// Left is how much time there is, in words.
func (p *Page) Left(d time.Duration) string {
	count := func(n int, one, many text.Text) string {
		if n == 1 {
			return p.Tell(one)
		}
		return p.Tell(many.With(n))
	}
	switch {
	case d < time.Minute:
		return p.Tell(text.Of("less than a minute left"))
	case d < 2*time.Hour:
		return count(int(d/time.Minute), text.Of("1 minute left"), text.Of("%d minutes left"))
	case d < 48*time.Hour:
		return count(int(d/time.Hour), text.Of("1 hour left"), text.Of("%d hours left"))
	}
	return count(int(d/(24*time.Hour)), text.Of("1 day left"), text.Of("%d days left"))
}

// How much of a value is shown: what a question is about, what is approved, and what a workflow has come to.
const (
	MaxShown    = 64 << 10
	MaxApproved = 1 << 20
	MaxResult   = 1 << 20
	maxRows     = 200
)

// Value is a value as people read it: rows where it is a flat object, a text, or JSON.
type Value struct {
	Rows []Fact
	Text string
	Code string
	// Cut says that it is not all of it.
	Cut bool
}

// Show makes a value readable; nil when there is none.
func (p *Page) Show(raw json.RawMessage, limit int) *Value {
	v := gjson.ParseBytes(raw)
	switch {
	case !v.Exists() || v.Type == gjson.Null:
		return nil
	case v.Type == gjson.String:
		text, isCut := cut(visible(v.Str), limit)
		return &Value{Text: text, Cut: isCut}
	case v.IsObject():
		if s := p.rows(v, limit); s != nil {
			return s
		}
	case !v.IsArray():
		return &Value{Text: v.Raw}
	}
	text, isCut := cut(indented(string(raw)), limit)
	return &Value{Code: text, Cut: isCut}
}

// rows shows an object line by line; nil when it is empty. What is nested in it is JSON.
func (p *Page) rows(v gjson.Result, limit int) *Value {
	s := &Value{}
	v.ForEach(func(name, value gjson.Result) bool {
		if len(s.Rows) == maxRows || limit <= 0 {
			s.Cut = true
			return false
		}
		shown, nested := value.Raw, value.IsObject() || value.IsArray()
		switch {
		case value.Type == gjson.String:
			shown = visible(value.Str)
		case value.Type == gjson.True:
			shown = p.Tell(text.Of("yes"))
		case value.Type == gjson.False:
			shown = p.Tell(text.Of("no"))
		case value.Type == gjson.Null:
			shown = "–"
		case nested:
			shown = indented(value.Raw)
		}
		shown, isCut := cut(shown, limit)
		label, _ := cut(name.Str, 200)
		limit -= len(shown)
		s.Cut = s.Cut || isCut
		s.Rows = append(s.Rows, Fact{Label: label, Value: shown, Code: nested})
		return true
	})
	if len(s.Rows) == 0 {
		return nil
	}
	return s
}

// indented is JSON as people read it.
func indented(raw string) string { return visible(payload.Indented([]byte(raw))) }

// visible writes out the characters that turn the direction of what stands around them: nobody is to approve something else than
// they read.
func visible(text string) string {
	if !strings.ContainsFunc(text, turns) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if turns(r) {
			fmt.Fprintf(&b, "\\u%04x", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func turns(r rune) bool {
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// cut shortens a text to so many bytes, between characters, and says whether something was left out.
func cut(shown string, limit int) (string, bool) {
	return text.ClipBytes(shown, limit), len(shown) > limit
}
