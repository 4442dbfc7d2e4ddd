package respond

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"slices"
	"time"

	"tandem/credential"
	"tandem/fault"
	"tandem/human"
	"tandem/human/lineage"
	"tandem/human/sheet"
	"tandem/identity"
	"tandem/route"
	"tandem/store"
	"tandem/text"
)

// Path is before the token of a response page. It stands outside of the prefix: the address is sent to people.
const Path = "/respond/"

const (
	// MaxBody is how large a form may be: a file and what is written beside it.
	MaxBody = sheet.MaxBody
	// maxRespondDrain is how much of a form that is too large is read to its end, so that a browser gets to see why.
	maxRespondDrain = 64 << 20
	// uploadTimeout is how long a form may take to arrive.
	uploadTimeout = 5 * time.Minute
	// maxRespondToken is longer than any that is made.
	maxRespondToken = 200
)

// How often an address may send a public form: so many at once, then one per interval.
const (
	PublicBurst    = 10
	PublicInterval = 6 * time.Second
	publicAddress  = 10_000
)

// Options is what the response pages need. Everything but Language must be there.
type Options struct {
	Router  *route.Router
	Desk    *human.Desk
	Blobs   store.Blobs
	Users   store.Users
	Keyring *credential.Keyring
	// Language is that of the installation, zh or en; empty: en.
	Language string
	Now      func() time.Time
}

// Pages serves the response pages.
type Pages struct {
	o      Options
	router *route.Router
	pages  *sheet.Pages
	public *route.AddressLimiter
}

// New registers the pages by which people answer who have a link. The token in the address is all they need, and all
// it opens is one question. Looking at a page changes nothing, however often a scanner of links does so.
func New(o Options) *Pages {
	h := &Pages{o: o, router: o.Router, pages: sheet.NewPages(),
		public: route.NewAddressLimiter(publicAddress, PublicInterval, PublicBurst)}
	// The page answers for itself what is too large for it: a person reads that.
	o.Router.ToStrangers(Path, "{token}", maxRespondDrain, map[string]http.HandlerFunc{http.MethodGet: h.show, http.MethodPost: h.takeAnswer})
	return h
}

// show shows the form, or why there is none.
func (h *Pages) show(w http.ResponseWriter, r *http.Request) {
	view, err := h.view(r)
	if err != nil {
		h.fail(w, r, h.language(r, human.LinkView{}), err)
		return
	}
	lang := h.language(r, view)
	view.Request = view.Request.In(lang, view.Interaction.Purpose)
	if view.State != human.LinkOpen {
		h.closed(w, r, lang, view, http.StatusGone)
		return
	}
	if id := r.URL.Query().Get("whole"); id != "" {
		h.whole(w, r, lang, view, id)
		return
	}
	h.form(w, r, http.StatusOK, view, newForm(lang, view.Interaction, view.Request), nil)
}

// whole sends all of a value of which the page shows the beginning. Strangers are shown none.
func (h *Pages) whole(w http.ResponseWriter, r *http.Request, lang string, view human.LinkView, id string) {
	values := view.Request.CutValues()
	at := slices.IndexFunc(values, func(v lineage.Cut) bool { return v.ID == id })
	if at < 0 {
		h.fail(w, r, lang, fault.Newf(fault.NotFound, "the question shows no value %q", id))
		return
	}
	content := io.NopCloser(bytes.NewReader(values[at].Value))
	if hash := values[at].Hash; hash != "" {
		var err error
		if content, _, err = h.o.Blobs.Get(r.Context(), identity.System(view.Interaction.Workspace), hash); err != nil {
			h.fail(w, r, lang, err)
			return
		}
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Content-Disposition": `attachment; filename="` + id + `.json"`, "X-Content-Type-Options": "nosniff",
		"Content-Security-Policy": "default-src 'none'; sandbox", "Cache-Control": "no-store",
		"X-Robots-Tag": "noindex, nofollow, noarchive",
	} { // order does not matter: each is set
		w.Header().Set(name, value)
	}
	_, err := io.Copy(w, content)
	if err := errors.Join(err, content.Close()); err != nil {
		h.router.Log.DebugContext(r.Context(), "a value was not sent to its end", "interaction",
			view.Interaction.ID, "value", id, "error", err)
	}
}

// view finds what a link leads to.
func (h *Pages) view(r *http.Request) (human.LinkView, error) {
	token := r.PathValue("token")
	if len(token) > maxRespondToken {
		h.router.Log.InfoContext(r.Context(), "an answer was refused", "why", "no link is that long")
		return human.LinkView{}, fault.New(fault.NotFound, "this is not a link")
	}
	leave, err := h.router.Links.Enter(r.Context(), h.router.AddressOf(r.Context()), identity.HashSecret(Path+token))
	if err != nil {
		return human.LinkView{}, err
	}
	view, err := h.o.Desk.ViewLink(r.Context(), token)
	leave(err == nil, err == nil || fault.CodeOf(err) == fault.NotFound)
	return view, err
}

// takeAnswer takes an answer.
func (h *Pages) takeAnswer(w http.ResponseWriter, r *http.Request) {
	view, err := h.view(r)
	if err != nil {
		h.fail(w, r, h.language(r, human.LinkView{}), err)
		return
	}
	lang := h.language(r, view)
	view.Request = view.Request.In(lang, view.Interaction.Purpose)
	if view.State != human.LinkOpen {
		status := http.StatusGone
		if view.State == human.LinkEnded {
			status = http.StatusConflict
		}
		if view.State != human.LinkExpired { // that the desk has said
			h.router.Log.InfoContext(r.Context(), "an answer was refused", "workspace", view.Interaction.Workspace, "interaction",
				view.Interaction.ID, "who", view.Link.Recipient, "why", "the link is "+view.State)
		}
		h.closed(w, r, lang, view, status)
		return
	}
	if isPublic(view) && !h.public.Allow(h.router.AddressOf(r.Context()), h.o.Now()) {
		h.fail(w, r, lang, fault.New(fault.RateLimited, "too many forms came from this address").With("retry_after",
			int(PublicInterval/time.Second)))
		return
	}
	if err := patient(w); err != nil {
		h.fail(w, r, lang, err)
		return
	}
	f := newForm(lang, view.Interaction, view.Request)
	sent, err := h.readSentForm(r, f, view.Interaction)
	if sent.close != nil {
		defer sent.close()
	}
	if err != nil {
		h.refuse(w, r, view, f, err)
		return
	}
	data, err := f.Data(sent.pressed)
	if err == nil {
		err = view.Request.Check(view.Interaction.Purpose, data)
	}
	if err == nil && !f.Wrong() {
		err = f.StoreFiles(r.Context(), h.o.Blobs, view.Interaction.Workspace)
	}
	if err == nil && !f.Wrong() {
		view.Interaction, err = h.o.Desk.RespondLink(r.Context(), r.PathValue("token"),
			human.Submission{Data: data, ArgumentsHash: sent.hash, Channel: human.InApp})
		if err == nil {
			h.recorded(w, r, view, f, sent.pressed)
			return
		}
	}
	h.refuse(w, r, view, f, err)
}

// refuse shows the form again with all that is wrong with it, or says why there is none any more. The link is not used up.
func (h *Pages) refuse(w http.ResponseWriter, r *http.Request, view human.LinkView, f *sheet.Sheet, err error) {
	var general []string
	status := http.StatusUnprocessableEntity
	if err != nil {
		told := fault.From(err)
		switch told.Code.Class() {
		case fault.ClassInvalid:
			if general = f.Blame(human.ProblemsOf(err)); len(general) == 0 && !f.Wrong() {
				general = []string{human.InLanguage(f.Language, told)}
			}
		case fault.ClassConflict:
			// Somebody was faster, or what is asked has changed: look again.
			again, err := h.view(r)
			if err != nil {
				h.fail(w, r, f.Language, err)
				return
			}
			if again.State != human.LinkOpen {
				h.closed(w, r, f.Language, again, http.StatusConflict)
				return
			}
			again.Request = again.Request.In(f.Language, again.Interaction.Purpose)
			view, status, general = again, http.StatusConflict, []string{human.InLanguage(f.Language, told)}
		case fault.ClassLimit:
			if told.Code != fault.TooLarge {
				h.fail(w, r, f.Language, err)
				return
			}
			status, general = http.StatusRequestEntityTooLarge, []string{f.Say(text.Of("What was sent is too large: a file may have 10 MiB at most."))}
		default:
			h.fail(w, r, f.Language, err)
			return
		}
	}
	if err := h.keep(r.Context(), view, f); err != nil {
		h.fail(w, r, f.Language, err)
		return
	}
	h.form(w, r, status, view, f, general)
}

// keep lets the page of a refused form carry the files that came, so that nobody has to send them again. Those of strangers are
// not kept: they could fill the disk.
func (h *Pages) keep(ctx context.Context, view human.LinkView, f *sheet.Sheet) error {
	if isPublic(view) {
		return nil
	}
	if err := f.StoreFiles(ctx, h.o.Blobs, view.Interaction.Workspace); err != nil {
		return err
	}
	for _, c := range f.Controls {
		if c.File == nil {
			continue
		}
		sealed, err := h.sealKept(view.Interaction.ID, c.File)
		if err != nil {
			return err
		}
		c.Sealed, c.Value = sealed, c.File.Name
	}
	return nil
}

// patient gives a form with files time to arrive, whatever holds for other requests.
func patient(w http.ResponseWriter) error {
	control := http.NewResponseController(w)
	until := time.Now().Add(uploadTimeout)
	for _, set := range []func(time.Time) error{control.SetReadDeadline, control.SetWriteDeadline} {
		if err := set(until); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return err
		}
	}
	return nil
}

// sentForm is what came with a form besides the controls.
type sentForm struct {
	pressed, hash string
	// close removes what was put on disk meanwhile; nil: nothing was.
	close func()
}

// readSentForm reads a form into its controls. Its files are not stored yet.
func (h *Pages) readSentForm(r *http.Request, f *sheet.Sheet, i store.Interaction) (sentForm, error) {
	var sent sentForm
	body := &io.LimitedReader{R: r.Body, N: MaxBody + 1}
	values, files, err := sheet.ReadForm(r, body)
	if files != nil {
		sent.close = func() {
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
		return sent, fault.Newf(fault.TooLarge, "the form has more than %d MiB", MaxBody>>20)
	}
	if known, ok := errors.AsType[*fault.Error](err); ok {
		return sent, known // there was no room for it
	}
	if err != nil {
		return sent, fault.New(fault.InvalidInput, f.Say(text.Of("The form could not be read; send it again."))).WithCause(err)
	}
	f.Fill(values)
	sent.pressed, sent.hash = values.Get(sheet.ButtonName), values.Get(sheet.HashName)
	for _, c := range f.Controls {
		if c.Kind == sheet.ControlFile {
			if err := h.file(f, c, i, values.Get(c.ID+"-kept"), files); err != nil {
				return sent, err
			}
		}
	}
	return sent, f.Unknown(values, files)
}

// file takes the file of a control: the one that was sent, else the one that is kept.
func (h *Pages) file(f *sheet.Sheet, c *sheet.Control, i store.Interaction, kept string, files *multipart.Form) (err error) {
	c.File = h.openKept(i.ID, kept)
	if files == nil || len(files.File[c.ID]) == 0 || files.File[c.ID][0].Filename == "" {
		return nil
	}
	sent := files.File[c.ID][0]
	if sent.Size > MaxFile {
		c.File, c.Error = nil, f.Say(text.Of("The file has more than 10 MiB."))
		return nil
	}
	c.Upload = sent
	c.File, err = sheet.DescribeUpload(sent)
	return err
}

// isPublic says that anybody may send the form.
func isPublic(v human.LinkView) bool { return v.Link.Recipient == human.Anyone }

// language is the language of a page: as it was chosen on it, else as its reader has set it, else as the browser says, else as the
// question is, which is that of the execution, the workflow or the installation.
func (h *Pages) language(r *http.Request, view human.LinkView) string {
	return h.languageOf(r, view.Language, view.Request.Language)
}

// languageOf is the language of a page whose reader has set one, or of which something else says one.
func (h *Pages) languageOf(r *http.Request, reader, otherwise string) string {
	return text.Language(r.URL.Query().Get("lang"), reader, text.Accepted(r.Header.Get("Accept-Language")), otherwise, h.o.Language)
}

// requester is the name of who started the execution that asks; empty: nobody in particular.
func (h *Pages) requester(ctx context.Context, i store.Interaction) (string, error) {
	if i.User == "" || i.User == identity.System("").User {
		return "", nil
	}
	user, err := h.o.Users.Get(ctx, identity.System(i.Workspace), i.User)
	if errors.Is(err, store.ErrNotFound) {
		return i.User, nil
	}
	return cmp.Or(user.Name, user.ID), err
}
