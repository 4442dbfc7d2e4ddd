package respond

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tandem/human"
	"tandem/human/form"
	"tandem/human/lineage"
	"tandem/human/sheet"
	"tandem/identity"
	"tandem/store"
	"tandem/text"
)

// Notice shows a page without a form, in the language of the person who asks for it.
func (h *Pages) Notice(w http.ResponseWriter, r *http.Request, status int, heading text.Text, lines ...text.Text) {
	page := &sheet.Page{Lang: h.languageOf(r, "", "")}
	page.Heading = page.Tell(heading)
	for _, line := range lines {
		page.Lines = append(page.Lines, page.Tell(line))
	}
	h.render(w, r, status, page)
}

// render writes a page.
func (h *Pages) render(w http.ResponseWriter, r *http.Request, status int, page *sheet.Page) {
	if err := h.pages.Render(w, status, sheet.Frame{}, page); err != nil {
		h.router.Refuse(w, r, h.router.Problem(r.Context(), identity.Principal{}, err))
	}
}

// cuts are values that a page shows the beginning of.
func cuts(values []lineage.Cut) []sheet.Cut {
	list := make([]sheet.Cut, len(values))
	for n, v := range values {
		list[n] = sheet.Cut{ID: v.ID, Name: v.Name, Original: v.Original}
	}
	return list
}

// newForm draws the form of a question in a language.
func newForm(lang string, i store.Interaction, r human.Request) *sheet.Sheet {
	r.Language = lang
	return sheet.Draw(human.FormOf(i, r))
}

// form shows the form of an open question.
func (h *Pages) form(w http.ResponseWriter, r *http.Request, status int, view human.LinkView, f *sheet.Sheet, general []string) {
	page, err := h.question(r, view, f.Language)
	if err != nil {
		h.fail(w, r, f.Language, err)
		return
	}
	page.Form, page.Own, page.General, page.Hash = f, !isPublic(view), general, view.Interaction.ArgumentsHash
	for _, c := range f.Controls {
		page.Multipart = page.Multipart || c.Kind == sheet.ControlFile
	}
	h.render(w, r, status, page)
}

// question tells what is asked.
func (h *Pages) question(r *http.Request, view human.LinkView, lang string) (*sheet.Page, error) {
	i, request := view.Interaction, view.Request
	page := &sheet.Page{Lang: lang, Text: request.Description,
		Fork: slices.Concat(lineage.AgainLines(lang, request.Again), lineage.ForkLines(lang, request.Fork)), Cut: cuts(request.CutValues())}
	page.Heading = cmp.Or(request.Title, page.Tell(text.Of("Your answer is needed")))
	page.Content, page.Arguments = page.Show(request.Content, sheet.MaxShown), page.Show(request.Arguments, sheet.MaxApproved)
	switch request.Risk {
	case "high":
		page.Risk, page.RiskTone = page.Tell(text.Of("High risk")), "high"
	case "medium":
		page.Risk, page.RiskTone = page.Tell(text.Of("Medium risk")), "medium"
	}
	if !isPublic(view) { // strangers do not learn who works here
		name, err := h.requester(r.Context(), i)
		if err != nil {
			return nil, err
		}
		page.AddFact(page.Tell(text.Of("Asked on behalf of")), name)
	}
	page.AddFact(page.Tell(text.Of("For")), request.UserMention)
	if request.Review != nil {
		page.AddFact(page.Tell(text.Of("Review")), reviewType(page, request.Review.Type))
	}
	page.AddFact(page.Tell(text.Of("Workflow")), cmp.Or(i.WorkflowName, i.WorkflowID))
	if until := earliest(i.TimeoutAt, view.Link.Expires); until > 0 {
		at := time.UnixMilli(until).UTC()
		when := page.Tell(text.Of("%s (%s)", page.Moment(at), page.Left(at.Sub(h.o.Now()))))
		page.Facts = append(page.Facts, sheet.Fact{Label: page.Tell(text.Of("Answer by")), Value: when, Machine: at.Format(time.RFC3339)})
	}
	if i.MinApprovals > 1 {
		page.AddFact(page.Tell(text.Of("Approvals needed")), fmt.Sprint(i.MinApprovals))
	}
	return page, nil
}

// reviewType is what is looked at in a review, in words.
func reviewType(p *sheet.Page, name string) string {
	known, ok := map[string]text.Text{
		"quality_assurance": text.Of("quality assurance"), "security_review": text.Of("security review"),
		"compliance_check": text.Of("compliance check"),
		"code_review":      text.Of("code review"), "content_moderation": text.Of("content moderation"),
		"financial_audit": text.Of("financial audit"),
		"legal_review":    text.Of("legal review"), "medical_review": text.Of("medical review"),
		"safety_inspection": text.Of("safety inspection"),
	}[name]
	if !ok {
		return strings.ReplaceAll(name, "_", " ")
	}
	return p.Tell(known)
}

func earliest(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// recorded says what was answered.
func (h *Pages) recorded(w http.ResponseWriter, r *http.Request, view human.LinkView, f *sheet.Sheet, pressed string) {
	page := &sheet.Page{Lang: f.Language, Heading: f.Say(text.Of("Your answer was recorded"))}
	page.Recorded = append(page.Recorded, sheet.Fact{Label: f.Say(text.Of("Question")),
		Value: cmp.Or(view.Request.Title, view.Request.Description)})
	for _, b := range f.Buttons {
		if b.Value != "" && (b.Value == pressed || string(b.Raw) == pressed) {
			page.Recorded = append(page.Recorded, sheet.Fact{Label: f.Say(text.Of("Answer")), Value: b.Label})
		}
	}
	for _, c := range f.Controls {
		if text := c.Told(f); text != "" {
			page.Recorded = append(page.Recorded, sheet.Fact{Label: c.Label, Value: text})
		}
	}
	if view.Interaction.Status == store.InteractionPending {
		page.Lines = append(page.Lines, f.Say(text.Of("Others have to answer too before it goes on.")))
	} else {
		page.Lines = append(page.Lines, f.Say(text.Of("It goes on accordingly. You may close this page.")))
	}
	h.render(w, r, http.StatusOK, page)
}

// closed says that there is nothing to answer any more, and why.
func (h *Pages) closed(w http.ResponseWriter, r *http.Request, lang string, view human.LinkView, status int) {
	page := &sheet.Page{Lang: lang}
	ended := view.Interaction.Status != store.InteractionPending
	switch {
	case view.State == human.LinkUsed && !ended:
		page.Heading = page.Tell(text.Of("You have answered already"))
		page.Lines = []string{page.Tell(text.Of("This link was used, and your answer is recorded. Others have to answer too."))}
	case view.State == human.LinkUsed:
		page.Heading = page.Tell(text.Of("This link was used"))
		page.Lines = []string{page.Tell(text.Of("The answer that was given with it is recorded."))}
	case ended:
		page.Heading = page.Tell(text.Of("This question is closed"))
	default:
		page.Heading = page.Tell(text.Of("This link has expired"))
		page.Lines = []string{page.Tell(text.Of("Ask the person who sent it for a new one."))}
	}
	if ended {
		page.Lines = append(page.Lines, ending(page, view))
	}
	h.render(w, r, status, page)
}

// ending tells how a question ended. Who said what is not for everybody who had a link.
func ending(p *sheet.Page, view human.LinkView) string {
	i := view.Interaction
	at := p.Moment(time.UnixMilli(i.Updated))
	switch i.Status {
	case store.InteractionTimeout:
		return p.Tell(text.Of("Nobody answered in time: it ended on %s.", at))
	case store.InteractionCancelled:
		return p.Tell(text.Of("It was withdrawn on %s.", at))
	case store.InteractionError:
		return p.Tell(text.Of("It ended with an error on %s.", at))
	}
	if action := gjson.GetBytes(i.Response, "action").String(); action != "" && !isPublic(view) {
		label := action
		for _, o := range view.Request.Options {
			if o.Value == action {
				label = form.Caption(o, p.Lang)
			}
		}
		return p.Tell(text.Of("It was answered on %s: %s.", at, label))
	}
	return p.Tell(text.Of("It was answered on %s.", at))
}

// fail says why there is no page. What only operators may know is in the log.
func (h *Pages) fail(w http.ResponseWriter, r *http.Request, lang string, err error) {
	told := h.router.Problem(r.Context(), identity.Principal{}, err)
	if after := told.Headers.Get("Retry-After"); after != "" {
		w.Header().Set("Retry-After", after)
	}
	page := &sheet.Page{Lang: lang}
	switch told.Status {
	case http.StatusNotFound:
		page.Heading = page.Tell(text.Of("There is no such link"))
		page.Lines = []string{page.Tell(text.Of("It may not be complete. Copy all of it from the message that it came in."))}
	case http.StatusForbidden:
		page.Heading = page.Tell(text.Of("You may not answer this"))
		page.Lines = []string{page.Tell(text.Of("Whom the link was made for is not among those who may answer any more."))}
	case http.StatusTooManyRequests:
		page.Heading = page.Tell(text.Of("Please wait a moment"))
		page.Lines = []string{page.Tell(text.Of("Too much came from your network. Try again in a while; nothing was recorded."))}
	default:
		page.Heading = page.Tell(text.Of("This did not work"))
		page.Lines = []string{page.Tell(text.Of("Your answer was not recorded. Try again in a while."))}
	}
	h.render(w, r, told.Status, page)
}
