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
	"unicode/utf8"

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

// Say is a text in the language of the page.
func (p *respondPage) Say(zh, en string) string { return text.Beside(en, zh).In(p.Lang) }

// Other is the language that the page is not in.
func (p *respondPage) Other() string {
	if p.Lang == "zh" {
		return "en"
	}
	return "zh"
}

// Wrong says whether something is wrong with what was sent.
func (p *respondPage) Wrong() bool { return len(p.General) > 0 || p.Form != nil && p.Form.wrong() }

// Notice shows a page without a form, in the language of whoever asks for it: tell is given what chooses between the languages.
func (h *Pages) Notice(w http.ResponseWriter, r *http.Request, status int, tell func(say func(zh, en string) string) (heading string, lines []string)) {
	page := &respondPage{Lang: h.languageOf(r, "", "")}
	page.Heading, page.Lines = tell(page.Say)
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
	page.Heading = cmp.Or(request.Title, page.Say("需要您的答复", "Your answer is needed"))
	page.Content, page.Arguments = page.show(request.Content, maxShown), page.show(request.Arguments, maxApproved)
	switch request.Risk {
	case "high":
		page.Risk, page.RiskTone = page.Say("高风险", "High risk"), "high"
	case "medium":
		page.Risk, page.RiskTone = page.Say("中等风险", "Medium risk"), "medium"
	}
	if !isPublic(view) { // strangers do not learn who works here
		name, err := h.requester(r.Context(), i)
		if err != nil {
			return nil, err
		}
		page.fact(page.Say("发起人", "Asked on behalf of"), name)
	}
	page.fact(page.Say("致", "For"), request.UserMention)
	if request.Review != nil {
		page.fact(page.Say("评审类型", "Review"), page.reviewType(request.Review.Type))
	}
	page.fact(page.Say("工作流", "Workflow"), cmp.Or(i.WorkflowName, i.WorkflowID))
	if until := earliest(i.TimeoutAt, view.Link.Expires); until > 0 {
		at := time.UnixMilli(until).UTC()
		text := page.moment(at) + page.Say("（", " (") + page.left(at.Sub(h.o.Now())) + page.Say("）", ")")
		page.Facts = append(page.Facts, pageFact{Label: page.Say("请在此之前答复", "Answer by"), Value: text, Machine: at.Format(time.RFC3339)})
	}
	if i.MinApprovals > 1 {
		page.fact(page.Say("需要的批准数", "Approvals needed"), fmt.Sprint(i.MinApprovals))
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
	zh := map[string]string{
		"quality_assurance": "质量保证", "security_review": "安全评审", "compliance_check": "合规检查", "code_review": "代码评审", "content_moderation": "内容审核",
		"financial_audit": "财务审计", "legal_review": "法律评审", "medical_review": "医学评审", "safety_inspection": "安全检查",
	}[name]
	en := strings.ReplaceAll(name, "_", " ")
	return p.Say(cmp.Or(zh, en), en)
}

func earliest(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// moment is a time in words, always in UTC and saying so.
func (p *respondPage) moment(at time.Time) string {
	return at.UTC().Format(p.Say("2006年1月2日 15:04 UTC", "2 January 2006, 15:04 UTC"))
}

// left is how much time there is, in words.
func (p *respondPage) left(d time.Duration) string {
	count := func(n int, zh, one, many string) string {
		if n == 1 && p.Lang != "zh" {
			return "1 " + one + " left"
		}
		return fmt.Sprintf(p.Say("还有 %d "+zh, "%d "+many+" left"), n)
	}
	switch {
	case d < time.Minute:
		return p.Say("不到 1 分钟", "less than a minute left")
	case d < 2*time.Hour:
		return count(int(d/time.Minute), "分钟", "minute", "minutes")
	case d < 48*time.Hour:
		return count(int(d/time.Hour), "小时", "hour", "hours")
	}
	return count(int(d/(24*time.Hour)), "天", "day", "days")
}

// recorded says what was answered.
func (h *Pages) recorded(w http.ResponseWriter, r *http.Request, view human.LinkView, f *answerForm, pressed string) {
	page := &respondPage{Lang: f.Language, Heading: f.say("您的答复已记录", "Your answer was recorded")}
	page.Recorded = append(page.Recorded, pageFact{Label: f.say("问题", "Question"), Value: cmp.Or(view.Request.Title, view.Request.Description)})
	for _, b := range f.Buttons {
		if b.Value != "" && (b.Value == pressed || string(b.raw) == pressed) {
			page.Recorded = append(page.Recorded, pageFact{Label: f.say("答复", "Answer"), Value: b.Label})
		}
	}
	for _, c := range f.Controls {
		if text := c.told(f); text != "" {
			page.Recorded = append(page.Recorded, pageFact{Label: c.Label, Value: text})
		}
	}
	if view.Interaction.Status == store.InteractionPending {
		page.Lines = append(page.Lines, f.say("还需要其他人答复，之后流程才会继续。", "Others have to answer too before it goes on."))
	} else {
		page.Lines = append(page.Lines, f.say("流程将据此继续，您可以关闭此页面。", "It goes on accordingly. You may close this page."))
	}
	h.render(w, r, http.StatusOK, page)
}

// closed says that there is nothing to answer any more, and why.
func (h *Pages) closed(w http.ResponseWriter, r *http.Request, lang string, view human.LinkView, status int) {
	page := &respondPage{Lang: lang}
	ended := view.Interaction.Status != store.InteractionPending
	switch {
	case view.State == human.LinkUsed && !ended:
		page.Heading = page.Say("您已经答复过了", "You have answered already")
		page.Lines = []string{page.Say("此链接已使用，您的答复已记录。还在等待其他人的答复。", "This link was used, and your answer is recorded. Others have to answer too.")}
	case view.State == human.LinkUsed:
		page.Heading = page.Say("此链接已使用", "This link was used")
		page.Lines = []string{page.Say("通过此链接的答复已记录。", "The answer that was given with it is recorded.")}
	case ended:
		page.Heading = page.Say("此问题已结束", "This question is closed")
	default:
		page.Heading = page.Say("此链接已过期", "This link has expired")
		page.Lines = []string{page.Say("请向发送者索取新的链接。", "Ask whoever sent it for a new one.")}
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
		return fmt.Sprintf(p.Say("截至 %s 无人答复，时间已到。", "Nobody answered in time: it ended on %s."), at)
	case store.InteractionCancelled:
		return fmt.Sprintf(p.Say("已于 %s 撤回。", "It was withdrawn on %s."), at)
	case store.InteractionError:
		return fmt.Sprintf(p.Say("已于 %s 因错误而结束。", "It ended with an error on %s."), at)
	}
	if action := gjson.GetBytes(i.Response, "action").String(); action != "" && !isPublic(view) {
		label := action
		for _, o := range view.Request.Options {
			if o.Value == action {
				label = form.Caption(o, p.Lang)
			}
		}
		return fmt.Sprintf(p.Say("已于 %s 答复：%s。", "It was answered on %s: %s."), at, label)
	}
	return fmt.Sprintf(p.Say("已于 %s 答复。", "It was answered on %s."), at)
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
		page.Heading = page.Say("没有这样的链接", "There is no such link")
		page.Lines = []string{page.Say("链接可能不完整。请从收到的消息中完整地复制它。", "It may not be complete. Copy all of it from the message that it came in.")}
	case http.StatusForbidden:
		page.Heading = page.Say("您不能答复此问题", "You may not answer this")
		page.Lines = []string{page.Say("此链接的收件人已不在可以答复的人之列。", "Whom the link was made for is not among those who may answer any more.")}
	case http.StatusTooManyRequests:
		page.Heading = page.Say("请稍候", "Please wait a moment")
		page.Lines = []string{page.Say("来自您的网络的提交过多，请稍后重试。您尚未提交任何内容。", "Too much came from your network. Try again in a while; nothing was recorded.")}
	default:
		page.Heading = page.Say("暂时无法处理", "This did not work")
		page.Lines = []string{page.Say("您的答复没有被记录，请稍后重试。", "Your answer was not recorded. Try again in a while.")}
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
		text, nested := value.Raw, value.IsObject() || value.IsArray()
		switch {
		case value.Type == gjson.String:
			text = visible(value.Str)
		case value.Type == gjson.True:
			text = p.Say("是", "yes")
		case value.Type == gjson.False:
			text = p.Say("否", "no")
		case value.Type == gjson.Null:
			text = "–"
		case nested:
			text = indented(value.Raw)
		}
		text, isCut := cut(text, limit)
		label, _ := cut(name.Str, 200)
		limit -= len(text)
		s.Cut = s.Cut || isCut
		s.Rows = append(s.Rows, pageFact{Label: label, Value: text, Code: nested})
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

// cut shortens a text to so many bytes, between characters.
func cut(text string, limit int) (string, bool) {
	if len(text) <= limit {
		return text, false
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + "…", true
}
