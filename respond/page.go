package respond

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"tandem/human"
	"tandem/human/form"
	"tandem/identity"
	"tandem/payload"
	"tandem/store"
	"tandem/text"
)

//go:embed page.html style.css
var assets embed.FS

// respondPages is the template of the response pages with its style. It is read when the first page is wanted.
type respondPages struct {
	load func() (*respondTemplate, error)
}

type respondTemplate struct {
	*template.Template
	style  template.CSS
	policy string
}

func newRespondPages() *respondPages {
	return &respondPages{sync.OnceValues(func() (*respondTemplate, error) {
		style, err := assets.ReadFile("style.css")
		if err != nil {
			return nil, fmt.Errorf("read the style of the response page: %w", err)
		}
		t, err := template.ParseFS(assets, "page.html")
		if err != nil {
			return nil, fmt.Errorf("read the template of the response page: %w", err)
		}
		sum := sha256.Sum256(style)
		policy := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
		return &respondTemplate{t, template.CSS(style), policy}, nil
	})}
}

// respondPage is what a page shows. One without a form is a notice.
type respondPage struct {
	Lang    string
	Style   template.CSS
	Heading string
	// Lines are what a notice says.
	Lines []string
	// Text, Facts, Risk, Content and Arguments tell what is asked.
	Text     string
	Facts    []pageFact
	Risk     string
	RiskTone string
	Content  *shownValue
	// Fork says that the execution is a fork, and what was edited.
	Fork []string
	// Cut are the values that these lines show the beginning of.
	Cut       []human.Cut
	Arguments *shownValue
	// Hash is that of the arguments, to come back with the answer.
	Hash string

	Form *answerForm
	// Own says that the form answers in the name of whom the link was made for.
	Own bool
	// Multipart says that the form carries files.
	Multipart bool
	// General are what is wrong with the answer as a whole.
	General []string
	// Recorded is what was answered.
	Recorded []pageFact
}

// pageFact is a line about a question. Machine is a time for programs; Code says that the value is JSON.
type pageFact struct {
	Label, Value, Machine string
	Code                  bool
}

// say puts a text into the language of the page.
func (p *respondPage) say(t text.Text) string { return t.In(p.Lang) }

// Say is a text that the template has, in the language of the page.
func (p *respondPage) Say(english string) string { return p.say(text.InTemplate(english)) }

// Other is the language that the page is not in.
func (p *respondPage) Other() string {
	if p.Lang == "zh" {
		return "en"
	}
	return "zh"
}

// Wrong says whether something is wrong with what was sent.
func (p *respondPage) Wrong() bool { return len(p.General) > 0 || p.Form != nil && p.Form.wrong() }

// Notice shows a page without a form, in the language of whoever asks for it.
func (h *Pages) Notice(w http.ResponseWriter, r *http.Request, status int, heading text.Text, lines ...text.Text) {
	page := &respondPage{Lang: h.languageOf(r, "", "")}
	page.Heading = page.say(heading)
	for _, line := range lines {
		page.Lines = append(page.Lines, page.say(line))
	}
	h.render(w, r, status, page)
}

// render writes a page. Nothing of it may be kept, framed or found by a search.
func (h *Pages) render(w http.ResponseWriter, r *http.Request, status int, page *respondPage) {
	t, err := h.pages.load()
	if err == nil {
		page.Style = t.style
		var out bytes.Buffer
		if err = t.ExecuteTemplate(&out, "page.html", page); err == nil {
			header := w.Header()
			header.Set("Content-Security-Policy", t.policy)
			header.Set("Cache-Control", "no-store")
			header.Set("X-Robots-Tag", "noindex, nofollow, noarchive")
			header.Set("Content-Type", "text/html; charset=utf-8")
			header.Set("Content-Language", page.Lang)
			header.Set("Vary", "Accept-Language")
			w.WriteHeader(status)
			if _, err := w.Write(out.Bytes()); err != nil {
				h.router.Log.DebugContext(r.Context(), "nobody took the answer", "error", err)
			}
			return
		}
	}
	h.router.Refuse(w, r, h.router.Problem(r.Context(), identity.Principal{}, err))
}

// form shows the form of an open question.
func (h *Pages) form(w http.ResponseWriter, r *http.Request, status int, view human.LinkView, f *answerForm, general []string) {
	page, err := h.question(r, view, f.Language)
	if err != nil {
		h.fail(w, r, f.Language, err)
		return
	}
	page.Form, page.Own, page.General, page.Hash = f, !isPublic(view), general, view.Interaction.ArgumentsHash
	for _, c := range f.Controls {
		page.Multipart = page.Multipart || c.Kind == controlFile
	}
	h.render(w, r, status, page)
}

// question tells what is asked.
func (h *Pages) question(r *http.Request, view human.LinkView, lang string) (*respondPage, error) {
	i, request := view.Interaction, view.Request
	page := &respondPage{Lang: lang, Text: request.Description, Fork: slices.Concat(human.AgainLines(lang, request.Again), human.ForkLines(lang, request.Fork)), Cut: request.CutValues()}
	page.Heading = cmp.Or(request.Title, page.say(text.Of("Your answer is needed")))
	page.Content, page.Arguments = page.show(request.Content, maxShown), page.show(request.Arguments, maxApproved)
	switch request.Risk {
	case "high":
		page.Risk, page.RiskTone = page.say(text.Of("High risk")), "high"
	case "medium":
		page.Risk, page.RiskTone = page.say(text.Of("Medium risk")), "medium"
	}
	if !isPublic(view) { // strangers do not learn who works here
		name, err := h.requester(r.Context(), i)
		if err != nil {
			return nil, err
		}
		page.fact(page.say(text.Of("Asked on behalf of")), name)
	}
	page.fact(page.say(text.Of("For")), request.UserMention)
	if request.Review != nil {
		page.fact(page.say(text.Of("Review")), page.reviewType(request.Review.Type))
	}
	page.fact(page.say(text.Of("Workflow")), cmp.Or(i.WorkflowName, i.WorkflowID))
	if until := earliest(i.TimeoutAt, view.Link.Expires); until > 0 {
		at := time.UnixMilli(until).UTC()
		when := page.say(text.Of("%s (%s)", page.moment(at), page.left(at.Sub(h.o.Now()))))
		page.Facts = append(page.Facts, pageFact{Label: page.say(text.Of("Answer by")), Value: when, Machine: at.Format(time.RFC3339)})
	}
	if i.MinApprovals > 1 {
		page.fact(page.say(text.Of("Approvals needed")), fmt.Sprint(i.MinApprovals))
	}
	return page, nil
}

func (p *respondPage) fact(label, value string) {
	if value != "" {
		p.Facts = append(p.Facts, pageFact{Label: label, Value: value})
	}
}

// reviewType is what is looked at in a review, in words.
func (p *respondPage) reviewType(name string) string {
	known, ok := map[string]text.Text{
		"quality_assurance": text.Of("quality assurance"), "security_review": text.Of("security review"), "compliance_check": text.Of("compliance check"),
		"code_review": text.Of("code review"), "content_moderation": text.Of("content moderation"), "financial_audit": text.Of("financial audit"),
		"legal_review": text.Of("legal review"), "medical_review": text.Of("medical review"), "safety_inspection": text.Of("safety inspection"),
	}[name]
	if !ok {
		return strings.ReplaceAll(name, "_", " ")
	}
	return p.say(known)
}

func earliest(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// moment is a time in words, always in UTC and saying so.
func (p *respondPage) moment(at time.Time) string {
	return at.UTC().Format(p.say(text.Of("2 January 2006, 15:04 UTC")))
}

// left is how much time there is, in words.
func (p *respondPage) left(d time.Duration) string {
	count := func(n int, one, many text.Text) string {
		if n == 1 {
			return p.say(one)
		}
		return p.say(many.With(n))
	}
	switch {
	case d < time.Minute:
		return p.say(text.Of("less than a minute left"))
	case d < 2*time.Hour:
		return count(int(d/time.Minute), text.Of("1 minute left"), text.Of("%d minutes left"))
	case d < 48*time.Hour:
		return count(int(d/time.Hour), text.Of("1 hour left"), text.Of("%d hours left"))
	}
	return count(int(d/(24*time.Hour)), text.Of("1 day left"), text.Of("%d days left"))
}

// recorded says what was answered.
func (h *Pages) recorded(w http.ResponseWriter, r *http.Request, view human.LinkView, f *answerForm, pressed string) {
	page := &respondPage{Lang: f.Language, Heading: f.say(text.Of("Your answer was recorded"))}
	page.Recorded = append(page.Recorded, pageFact{Label: f.say(text.Of("Question")), Value: cmp.Or(view.Request.Title, view.Request.Description)})
	for _, b := range f.Buttons {
		if b.Value != "" && (b.Value == pressed || string(b.raw) == pressed) {
			page.Recorded = append(page.Recorded, pageFact{Label: f.say(text.Of("Answer")), Value: b.Label})
		}
	}
	for _, c := range f.Controls {
		if text := c.told(f); text != "" {
			page.Recorded = append(page.Recorded, pageFact{Label: c.Label, Value: text})
		}
	}
	if view.Interaction.Status == store.InteractionPending {
		page.Lines = append(page.Lines, f.say(text.Of("Others have to answer too before it goes on.")))
	} else {
		page.Lines = append(page.Lines, f.say(text.Of("It goes on accordingly. You may close this page.")))
	}
	h.render(w, r, http.StatusOK, page)
}

// closed says that there is nothing to answer any more, and why.
func (h *Pages) closed(w http.ResponseWriter, r *http.Request, lang string, view human.LinkView, status int) {
	page := &respondPage{Lang: lang}
	ended := view.Interaction.Status != store.InteractionPending
	switch {
	case view.State == human.LinkUsed && !ended:
		page.Heading = page.say(text.Of("You have answered already"))
		page.Lines = []string{page.say(text.Of("This link was used, and your answer is recorded. Others have to answer too."))}
	case view.State == human.LinkUsed:
		page.Heading = page.say(text.Of("This link was used"))
		page.Lines = []string{page.say(text.Of("The answer that was given with it is recorded."))}
	case ended:
		page.Heading = page.say(text.Of("This question is closed"))
	default:
		page.Heading = page.say(text.Of("This link has expired"))
		page.Lines = []string{page.say(text.Of("Ask whoever sent it for a new one."))}
	}
	if ended {
		page.Lines = append(page.Lines, page.ending(view))
	}
	h.render(w, r, status, page)
}

// ending tells how a question ended. Who said what is not for everybody who had a link.
func (p *respondPage) ending(view human.LinkView) string {
	i := view.Interaction
	at := p.moment(time.UnixMilli(i.Updated))
	switch i.Status {
	case store.InteractionTimeout:
		return p.say(text.Of("Nobody answered in time: it ended on %s.", at))
	case store.InteractionCancelled:
		return p.say(text.Of("It was withdrawn on %s.", at))
	case store.InteractionError:
		return p.say(text.Of("It ended with an error on %s.", at))
	}
	if action := gjson.GetBytes(i.Response, "action").String(); action != "" && !isPublic(view) {
		label := action
		for _, o := range view.Request.Options {
			if o.Value == action {
				label = form.Caption(o, p.Lang)
			}
		}
		return p.say(text.Of("It was answered on %s: %s.", at, label))
	}
	return p.say(text.Of("It was answered on %s.", at))
}

// fail says why there is no page. What only operators may know is in the log.
func (h *Pages) fail(w http.ResponseWriter, r *http.Request, lang string, err error) {
	told := h.router.Problem(r.Context(), identity.Principal{}, err)
	if after := told.Headers.Get("Retry-After"); after != "" {
		w.Header().Set("Retry-After", after)
	}
	page := &respondPage{Lang: lang}
	switch told.Status {
	case http.StatusNotFound:
		page.Heading = page.say(text.Of("There is no such link"))
		page.Lines = []string{page.say(text.Of("It may not be complete. Copy all of it from the message that it came in."))}
	case http.StatusForbidden:
		page.Heading = page.say(text.Of("You may not answer this"))
		page.Lines = []string{page.say(text.Of("Whom the link was made for is not among those who may answer any more."))}
	case http.StatusTooManyRequests:
		page.Heading = page.say(text.Of("Please wait a moment"))
		page.Lines = []string{page.say(text.Of("Too much came from your network. Try again in a while; nothing was recorded."))}
	default:
		page.Heading = page.say(text.Of("This did not work"))
		page.Lines = []string{page.say(text.Of("Your answer was not recorded. Try again in a while."))}
	}
	h.render(w, r, told.Status, page)
}

// How much of a value is shown: what a question is about, and what is approved.
const (
	maxShown    = 64 << 10
	maxApproved = 1 << 20
	maxRows     = 200
)

// shownValue is a value as people read it: rows where it is a flat object, a text, or JSON.
type shownValue struct {
	Rows []pageFact
	Text string
	Code string
	// Cut says that it is not all of it.
	Cut bool
}

// show makes a value readable; nil when there is none.
func (p *respondPage) show(raw json.RawMessage, limit int) *shownValue {
	v := gjson.ParseBytes(raw)
	switch {
	case !v.Exists() || v.Type == gjson.Null:
		return nil
	case v.Type == gjson.String:
		text, isCut := cut(visible(v.Str), limit)
		return &shownValue{Text: text, Cut: isCut}
	case v.IsObject():
		if s := p.rows(v, limit); s != nil {
			return s
		}
	case !v.IsArray():
		return &shownValue{Text: v.Raw}
	}
	text, isCut := cut(indented(string(raw)), limit)
	return &shownValue{Code: text, Cut: isCut}
}

// rows shows an object line by line; nil when it is empty. What is nested in it is JSON.
func (p *respondPage) rows(v gjson.Result, limit int) *shownValue {
	s := &shownValue{}
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
			shown = p.say(text.Of("yes"))
		case value.Type == gjson.False:
			shown = p.say(text.Of("no"))
		case value.Type == gjson.Null:
			shown = "–"
		case nested:
			shown = indented(value.Raw)
		}
		shown, isCut := cut(shown, limit)
		label, _ := cut(name.Str, 200)
		limit -= len(shown)
		s.Cut = s.Cut || isCut
		s.Rows = append(s.Rows, pageFact{Label: label, Value: shown, Code: nested})
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
