package visitors

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/engine"
	"tandem/fault"
	"tandem/human"
	"tandem/human/form"
	"tandem/human/sheet"
	"tandem/identity"
	"tandem/payload"
	"tandem/store"
	"tandem/text"
)

// stateOf is where a turn stands.
func stateOf(t Told) string {
	switch {
	case t.Status == engine.StatusSuccess:
		return stateDone
	case t.Status.Final():
		return stateFailed
	case t.Status == engine.StatusWaitingForHuman || t.Status == engine.StatusPaused:
		return stateWaiting
	}
	return stateRunning
}

// maxQuestions is how many questions of one execution are looked at.
const maxQuestions = 100

// questionsOf are the questions of an execution, and of those that came of it, that are put to the visitor. All others are not the
// visitor's business.
func (h *Pages) questionsOf(ctx context.Context, p identity.Principal, v *visit, execution string) ([]question, error) {
	page, err := h.o.Interactions.List(ctx, p, store.InteractionQuery{Execution: execution, Family: true,
		Approvers: []string{human.Visitor}, Page: store.Page{Size: maxQuestions}})
	if err != nil {
		return nil, err
	}
	var list []question
	for _, i := range page.Interactions {
		if !human.AsksVisitor(i) || i.Root != execution {
			continue
		}
		request, err := human.ReadRequest(i)
		if err != nil {
			return nil, err
		}
		request = request.In(v.lang, i.Purpose)
		q := question{ID: i.ID, Title: request.Title}
		if q.Title == "" {
			q.Title = request.Description
		}
		switch i.Status {
		case store.InteractionPending:
			f := formOf(v, i, request)
			q.Open, q.Plain = true, plainEntry(f) >= 0
		case store.InteractionCompleted:
			q.Answer = answerOf(formOf(v, i, request), i.Response)
		}
		list = append(list, q)
	}
	return list, nil
}

// formOf is the form of a question, in the language of the visitor. Notes are left out: a visitor writes what there is to say as a message.
func formOf(v *visit, i store.Interaction, r human.Request) *form.Form {
	r.Language = v.lang
	f := human.FormOf(i, r)
	f.Entries = slices.DeleteFunc(f.Entries, func(e form.Entry) bool { return e.Group == "" && e.Name == form.NameNotes })
	return f
}

// plainEntry is the one entry of a form that a message in the chat fills in by itself; -1: there is none.
func plainEntry(f *form.Form) int {
	at := -1
	for n := range f.Entries {
		e := &f.Entries[n]
		switch text := e.Kind == form.Line || e.Kind == form.Area; {
		case text && !e.Decides && at < 0:
			at = n
		default:
			return -1
		}
	}
	return at
}

// answerOf is what was answered, as people read it.
func answerOf(f *form.Form, response json.RawMessage) string {
	var said []string
	for n := range f.Entries {
		e := &f.Entries[n]
		value := gjson.ParseBytes(response)
		if e.Group != "" {
			value = value.Get(gjson.Escape(e.Group))
		}
		value = value.Get(gjson.Escape(e.Name))
		if !value.Exists() || value.Type == gjson.Null {
			continue
		}
		words := ""
		for _, c := range e.Choices {
			if e.Picked(c, json.RawMessage(value.Raw)) {
				words = strings.TrimPrefix(words+", "+c.Label, ", ")
			}
		}
		switch {
		case words != "":
		case e.Kind == form.File:
			words = value.Get("name").String()
		default:
			words = payload.Text(json.RawMessage(value.Raw))
		}
		if words == "" {
			continue
		}
		if e.Label != "" && !e.Decides && len(f.Entries) > 1 {
			words = e.Label + ": " + words
		}
		said = append(said, words)
	}
	return strings.Join(said, "\n")
}

// asked finds a question of the visitor's conversation. Whatever else there is under the id, or nothing, is not found: a visitor learns of
// no other question.
func (h *Pages) asked(ctx context.Context, v *visit, id string) (store.Interaction, human.Request, error) {
	p := systemOf(v.workspace)
	unknown := fault.Say(fault.NotFound, text.Of("There is no such question in this conversation."))
	i, err := h.o.Interactions.Get(ctx, p, id)
	if errors.Is(err, store.ErrNotFound) || err == nil && !human.AsksVisitor(i) {
		return i, human.Request{}, unknown
	}
	if err != nil {
		return i, human.Request{}, err
	}
	d, err := h.o.Deliveries.DeliveryOf(ctx, p, i.Root)
	if errors.Is(err, store.ErrNotFound) || err == nil &&
		(d.Conversation != v.conversation() || d.WorkflowID != v.Trigger.WorkflowID || d.Node != v.Trigger.Node) {
		return i, human.Request{}, unknown
	}
	if err != nil {
		return i, human.Request{}, err
	}
	r, err := human.ReadRequest(i)
	return i, r.In(v.lang, i.Purpose), err
}

// showQuestion sends the form of a question, as a part of the page.
func (h *Pages) showQuestion(w http.ResponseWriter, r *http.Request, v *visit) error {
	i, request, err := h.asked(r.Context(), v, r.URL.Query().Get("id"))
	if err != nil {
		return err
	}
	if i.Status != store.InteractionPending {
		return fault.Say(fault.Conflict, text.Of("This question is no longer open."))
	}
	return h.sendQuestion(w, v, http.StatusOK, i, request, sheet.DrawAs(prefixOf(i), formOf(v, i, request)), nil)
}

// prefixOf keeps the controls of several questions on one page apart.
func prefixOf(i store.Interaction) string { return i.ID + "-" }

func (h *Pages) sendQuestion(w http.ResponseWriter, v *visit, status int, i store.Interaction, request human.Request,
	f *sheet.Sheet, general []string) error {
	page := &sheet.Page{Lang: v.lang, Heading: request.Title, Text: request.Description, Form: f, General: general, Hash: i.ArgumentsHash,
		Action: "?do=" + doAnswer + "&id=" + i.ID + "&lang=" + v.lang}
	if page.Heading == "" {
		page.Heading = page.Tell(text.Of("Your answer is needed"))
	}
	if request.Risk == "high" {
		page.Risk, page.RiskTone = page.Tell(text.Of("High risk")), "high"
	}
	page.Content = page.Show(request.Content, sheet.MaxShown)
	for _, c := range f.Controls {
		page.Multipart = page.Multipart || c.Kind == sheet.ControlFile
	}
	var out bytes.Buffer
	if err := h.pages.Question(&out, page); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(out.Bytes()) // nobody took it, which the server counts
	return nil
}

// takeAnswer takes the answer to a question: the form of it, or a message where that is all that is asked for.
func (h *Pages) takeAnswer(w http.ResponseWriter, r *http.Request, v *visit) error {
	ctx := r.Context()
	i, request, err := h.asked(ctx, v, r.URL.Query().Get("id"))
	if err != nil {
		return err
	}
	if i.Status != store.InteractionPending {
		return fault.Say(fault.Conflict, text.Of("This question is no longer open."))
	}
	if err := patient(w, 0); err != nil {
		return err
	}
	asked := formOf(v, i, request)
	f := sheet.DrawAs(prefixOf(i), asked)
	values, closeFiles, err := h.readSheet(r, v, f, "text")
	defer closeFiles()
	if err != nil {
		return err
	}
	var data json.RawMessage
	if said := strings.TrimSpace(values.Get("text")); said != "" && plainEntry(asked) >= 0 {
		at := plainEntry(asked)
		value, wrong := asked.Entries[at].Read(said)
		if wrong != nil {
			return fault.Say(fault.InvalidInput, *wrong)
		}
		data = asked.Answer(form.Values{at: value})
	} else if data, err = f.Data(values.Get(sheet.ButtonName)); err != nil {
		return h.refuseAnswer(w, v, i, request, f, err)
	}
	if f.Wrong() {
		return h.refuseAnswer(w, v, i, request, f, nil)
	}
	if err := request.Check(i.Purpose, data); err != nil {
		return h.refuseAnswer(w, v, i, request, f, err)
	}
	if err := h.limits.countVisit(v, h.now()); err != nil {
		v.Refuse(ctx, err)
		return err
	}
	if err := f.StoreFiles(ctx, h.o.Blobs, v.workspace); err != nil {
		return err
	}
	submission := human.Submission{Data: data, ArgumentsHash: values.Get(sheet.HashName), Channel: human.InApp}
	if _, err := h.o.Desk.RespondVisitor(ctx, v.workspace, i.ID, v.conversation(), submission); err != nil {
		return h.refuseAnswer(w, v, i, request, f, err)
	}
	return sendJSON(w, http.StatusOK, map[string]bool{"recorded": true})
}

// refuseAnswer sends the form again with all that is wrong with it.
func (h *Pages) refuseAnswer(w http.ResponseWriter, v *visit, i store.Interaction, request human.Request, f *sheet.Sheet, err error) error {
	var general []string
	if err != nil {
		told := fault.From(err)
		if told.Code.Class() != fault.ClassInvalid {
			return err
		}
		if general = f.Blame(human.ProblemsOf(err)); len(general) == 0 && !f.Wrong() {
			general = []string{human.InLanguage(v.lang, told)}
		}
	}
	for _, c := range f.Controls { // a file has to be chosen again: those of strangers are not kept
		c.File, c.Upload = nil, nil
	}
	return h.sendQuestion(w, v, http.StatusUnprocessableEntity, i, request, f, general)
}
