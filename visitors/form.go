package visitors

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"time"

	"github.com/tidwall/gjson"

	"tandem/engine"
	"tandem/fault"
	"tandem/human"
	"tandem/human/form"
	"tandem/human/sheet"
	"tandem/text"
	"tandem/trigger"
)

// ticket is the one-time id of a form, sealed into the page: it is sent back with the form, and a second form with it is a repetition of
// the first. On a page that is not for everybody it is good for the visitor alone who was shown the page.
type ticket struct {
	ID      string `json:"i"`
	Page    string `json:"p"`
	Visitor string `json:"v,omitempty"`
	Issued  int64  `json:"t"`
}

// ticketLife is how long a page may stand open before its form is sent.
const ticketLife = 24 * time.Hour

// ticketName is the name of the field that carries it.
const ticketName = "form_id"

func ticketContext() []byte { return []byte("tandem form ticket") }

func (v *visit) ticketFor() ticket {
	t := ticket{Page: v.hashed("form")}
	if v.Page.Access != trigger.AccessPublic {
		t.Visitor = v.visitor()
	}
	return t
}

// newTicket makes one for the page that is shown.
func (h *Pages) newTicket(v *visit) (string, error) {
	t := v.ticketFor()
	t.ID, t.Issued = nonce(), h.now().UnixMilli()
	plain, err := json.Marshal(t)
	if err != nil {
		return "", fault.Newf(fault.Internal, "the id of a form cannot be written: %w", err)
	}
	sealed, err := h.o.Keyring.Seal(plain, ticketContext())
	return base64.RawURLEncoding.EncodeToString(sealed), err
}

// readTicket is the one-time id that a form was sent with; empty: it has none that is good.
func (h *Pages) readTicket(v *visit, given string) string {
	sealed, err := base64.RawURLEncoding.DecodeString(given)
	if err != nil || given == "" || len(given) > 1<<10 {
		return ""
	}
	plain, err := h.o.Keyring.Open(sealed, ticketContext())
	if err != nil {
		return ""
	}
	var t ticket
	want := v.ticketFor()
	if json.Unmarshal(plain, &t) != nil || t.Page != want.Page || t.Visitor != want.Visitor ||
		h.now().UnixMilli()-t.Issued > ticketLife.Milliseconds() {
		return ""
	}
	return t.ID
}

// draw draws the form of a page.
func (v *visit) draw() *sheet.Sheet { return sheet.Draw(form.Inputs(v.Page.Schema, v.lang)) }

// serveForm serves a form.
func (h *Pages) serveForm(w http.ResponseWriter, r *http.Request, v *visit) {
	if v.Page.Access != trigger.AccessPublic {
		h.greet(w, r, v)
	}
	if r.Method != http.MethodPost {
		h.showForm(w, r, http.StatusOK, v, v.draw(), nil)
		return
	}
	h.takeForm(w, r, v)
}

// showForm shows the form, empty or with what was wrong with it.
func (h *Pages) showForm(w http.ResponseWriter, r *http.Request, status int, v *visit, f *sheet.Sheet, general []string) {
	ticket, err := h.newTicket(v)
	if err != nil {
		h.fail(w, r, v, err)
		return
	}
	page := &sheet.Page{Lang: v.lang, Heading: v.Page.Title, Text: v.Page.Description, Form: f, General: general,
		Hidden: []sheet.Hidden{{Name: ticketName, Value: ticket}}}
	if page.Heading == "" {
		page.Heading = page.Tell(text.Of("Form"))
	}
	for _, c := range f.Controls {
		page.Multipart = page.Multipart || c.Kind == sheet.ControlFile
	}
	frame := v.frame()
	if u, err := url.Parse(v.Page.Redirect); err == nil && u.Host != "" {
		frame.Leads = []string{u.Scheme + "://" + u.Host}
	}
	h.render(w, r, status, frame, page)
}

// takeForm takes a form that was sent.
func (h *Pages) takeForm(w http.ResponseWriter, r *http.Request, v *visit) {
	if err := patient(w, v.Page.Wait); err != nil {
		h.fail(w, r, v, err)
		return
	}
	f := v.draw()
	values, closeFiles, err := h.readSheet(r, v, f, ticketName)
	defer closeFiles()
	if err != nil {
		if fault.CodeOf(err) == fault.InvalidInput {
			h.showForm(w, r, http.StatusUnprocessableEntity, v, f, []string{human.InLanguage(v.lang, fault.From(err))})
			return
		}
		h.fail(w, r, v, err)
		return
	}
	id := h.readTicket(v, values.Get(ticketName))
	if id == "" {
		h.showForm(w, r, http.StatusConflict, v, f, []string{text.Of("The page was open for too long, or is not the one that was shown to you. Look at what you have written, and send it again.").In(v.lang)})
		return
	}
	fields, general, err := readInputs(v, f)
	if err != nil {
		h.fail(w, r, v, err)
		return
	}
	if fields == nil {
		h.showForm(w, r, http.StatusUnprocessableEntity, v, f, general)
		return
	}
	if err := h.limits.countVisit(v, h.now()); err != nil {
		v.Refuse(r.Context(), err)
		h.fail(w, r, v, err)
		return
	}
	if err := f.StoreFiles(r.Context(), h.o.Blobs, v.workspace); err != nil {
		h.fail(w, r, v, err)
		return
	}
	h.startForm(w, r, v, id, fields)
}

// readSheet reads what was sent into the controls of a form. Its files are not stored yet. Hidden are the names that the page sends along.
func (h *Pages) readSheet(r *http.Request, v *visit, f *sheet.Sheet, hidden ...string) (values url.Values, closeFiles func(), err error) {
	closeFiles = func() {}
	body := &io.LimitedReader{R: r.Body, N: sheet.MaxBody + 1}
	values, files, err := sheet.ReadForm(r, body)
	if files != nil {
		closeFiles = func() {
			if err := files.RemoveAll(); err != nil {
				h.router.Log.WarnContext(r.Context(), "what a form brought stays in the temporary directory", "error", err)
			}
		}
	}
	if body.N == 0 {
		// A browser shows the answer only once all of its form was taken.
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			h.router.Log.DebugContext(r.Context(), "a form that was too large broke off", "error", err)
		}
		return nil, closeFiles, fault.Newf(fault.TooLarge, "the form has more than %d MiB", sheet.MaxBody>>20)
	}
	if known, ok := errors.AsType[*fault.Error](err); ok {
		return nil, closeFiles, known // there was no room for it
	}
	if err != nil {
		return nil, closeFiles, fault.Say(fault.InvalidInput, text.Of("The form could not be read; send it again.")).WithCause(err)
	}
	f.Fill(values)
	for _, c := range f.Controls {
		if c.Kind == sheet.ControlFile {
			if err := takeFile(v, c, files); err != nil {
				return nil, closeFiles, err
			}
		}
	}
	return values, closeFiles, f.Unknown(values, files, hidden...)
}

// takeFile takes the file of a control, if one was sent.
func takeFile(v *visit, c *sheet.Control, files *multipart.Form) (err error) {
	c.File, c.Value = nil, ""
	if files == nil || len(files.File[c.ID]) == 0 || files.File[c.ID][0].Filename == "" {
		return nil
	}
	sent := files.File[c.ID][0]
	most := min(int64(sheet.MaxFile), max(v.Page.MaxFile, 0))
	if v.Page.Type == trigger.PageChat {
		most = sheet.MaxFile
	}
	if sent.Size > most {
		c.Error = text.Of("The file has more than %d MiB.", most>>20).In(v.lang)
		return nil
	}
	c.Upload = sent
	c.File, err = sheet.DescribeUpload(sent)
	return err
}

// readInputs is what was filled in, by name; nil: something is wrong with it, which stands at the controls, and in general.
func readInputs(v *visit, f *sheet.Sheet) (fields map[string]json.RawMessage, general []string, err error) {
	data, err := f.Data("")
	if err != nil {
		return nil, nil, err
	}
	fields, err = form.ReadInputs(v.Page.Schema, data)
	if problems, wrong := errors.AsType[form.Problems](err); wrong {
		general = f.Blame(problems)
	} else if err != nil {
		return nil, nil, err
	}
	if len(general) > 0 || f.Wrong() {
		return nil, general, nil
	}
	return fields, nil, nil
}

// startForm starts the execution of a form, or finds the one that was started with it before, and tells the visitor what the page promises.
func (h *Pages) startForm(w http.ResponseWriter, r *http.Request, v *visit, id string, fields map[string]json.RawMessage) {
	payload, err := h.payloadOf(v, map[string]any{"fields": fields})
	if err != nil {
		h.fail(w, r, v, err)
		return
	}
	ending, err := h.o.Executions.Deliver(r.Context(), v.Entrance,
		trigger.Event{Key: "form:" + id, Payload: payload}, v.Page.Reply, v.Page.Wait)
	if err == nil && ending.Repeated {
		var same bool
		if same, err = h.sentBefore(r.Context(), ending, payload); err == nil && !same {
			h.showForm(w, r, http.StatusConflict, v, v.draw(), []string{text.Of("This form was sent already, with something else in it. Fill it in again to send another one.").In(v.lang)})
			return
		}
	}
	if err != nil {
		h.fail(w, r, v, err)
		return
	}
	h.thank(w, r, v, ending)
}

// sentBefore says whether a form that was sent before had the same in it.
func (h *Pages) sentBefore(ctx context.Context, ending Ending, payload json.RawMessage) (bool, error) {
	was, err := h.o.Triggers.Payload(ctx, ending.Delivery)
	if err == nil && was == nil { // what is known of a repetition has no payload
		d := ending.Delivery
		if d, err = h.o.Deliveries.Delivery(ctx, systemOf(d.Workspace), d.ID); err == nil {
			was, err = h.o.Triggers.Payload(ctx, d)
		}
	}
	if err != nil {
		return false, err
	}
	return bytes.Equal([]byte(gjson.GetBytes(was, "fields").Raw), []byte(gjson.GetBytes(payload, "fields").Raw)), nil
}

// thank tells a visitor what has come of a form.
func (h *Pages) thank(w http.ResponseWriter, r *http.Request, v *visit, ending Ending) {
	if ending.Answer != nil {
		if err := h.o.Executions.SendAnswer(w, r, v.workspace, *ending.Answer); err != nil {
			h.fail(w, r, v, err)
		}
		return
	}
	if v.Page.Redirect != "" && v.Page.Reply == trigger.ReplyAtOnce {
		http.Redirect(w, r, v.Page.Redirect, http.StatusSeeOther)
		return
	}
	page := &sheet.Page{Lang: v.lang, Heading: text.Of("Thank you").In(v.lang)}
	switch {
	case v.Page.Reply != trigger.ReplyAtOnce && ending.Status.Final() && ending.Status != engine.StatusSuccess:
		page.Heading, page.Lines = text.Of("This did not work").In(v.lang), []string{text.Of("What you have sent was received, and something went wrong with it. The people who run this can see why.").In(v.lang)}
		h.render(w, r, http.StatusInternalServerError, v.frame(), page)
		return
	case v.Page.Reply == trigger.ReplyResult && ending.Status == engine.StatusSuccess:
		showResult(page, ending)
	}
	page.Recorded = []sheet.Fact{} // it is drawn as something that was done
	page.Text = v.Page.Thanks
	if page.Text == "" && page.Content == nil {
		page.Text = text.Of("It was received.").In(v.lang)
	}
	h.render(w, r, http.StatusOK, v.frame(), page)
}

// showResult shows what an execution has come to.
func showResult(page *sheet.Page, ending Ending) {
	if ending.TooLarge {
		page.Lines = append(page.Lines, page.Tell(text.Of("The result is too large to be shown here.")))
		return
	}
	page.Content = page.Show(result(ending.Outputs), sheet.MaxResult)
}

// result is the output of the last node; of several, an object of them by node.
func result(outputs map[string]json.RawMessage) json.RawMessage {
	if len(outputs) == 1 {
		for _, one := range outputs { // order does not matter: there is one
			return one
		}
	}
	raw, err := json.Marshal(outputs)
	if err != nil {
		return nil // made of JSON, it always is JSON
	}
	return raw
}
