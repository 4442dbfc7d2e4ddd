package visitors

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tandem/credential"
	"tandem/engine"
	"tandem/fault"
	"tandem/human"
	"tandem/human/sheet"
	"tandem/identity"
	"tandem/route"
	"tandem/store"
	"tandem/text"
	"tandem/trigger"
)

// Options is what the pages need. Everything but Language must be there.
type Options struct {
	Router       *route.Router
	Triggers     *trigger.Service
	Deliveries   store.Triggers
	Interactions store.Interactions
	Users        store.Users
	Blobs        store.Blobs
	Desk         *human.Desk
	Keyring      *credential.Keyring
	Executions   Executions
	ByHand       ByHand
	// LoginPath is the page on which people log in.
	LoginPath string
	// Language is that of the installation, zh or en; empty: en.
	Language string
	Now      func() time.Time
}

// Executions is what the pages have to know of executions.
type Executions interface {
	// Deliver records what a visitor has sent and starts its execution. Unless reply is [trigger.ReplyAtOnce] it waits for what comes of
	// that, at most so long.
	Deliver(ctx context.Context, e *trigger.Entrance, event trigger.Event, reply trigger.Reply, wait time.Duration) (Ending, error)
	// SendAnswer sends what a node has answered.
	SendAnswer(w http.ResponseWriter, r *http.Request, workspace string, a trigger.Answer) error
	// Tell tells how an execution stands.
	Tell(ctx context.Context, workspace, execution string) (Told, error)
	// Follow hands over what happens to an execution after a position, until it has ended, send fails or the context ends. Send is called
	// at once, and now and then with nothing, so that a connection that is gone is noticed.
	Follow(ctx context.Context, workspace, execution, after string, send func([]Piece) error) error
}

// Ending is what has come of something that a visitor has sent.
type Ending struct {
	Delivery store.TriggerDelivery
	Repeated bool
	Status   engine.Status
	// Outputs are those of an execution that has ended well, Answer is what a node has answered; nil: nothing. TooLarge says that the
	// outputs are too large to be told.
	Outputs  map[string]json.RawMessage
	TooLarge bool
	Answer   *trigger.Answer
}

// Told is how an execution stands, as far as it is a visitor's business.
type Told struct {
	Status engine.Status
	// Answer is what the execution has said to the visitor.
	Answer string
}

// Piece is something that happens to an execution: output for the visitor while it is made, or that the execution stands differently.
type Piece struct {
	// ID is the position behind it; empty for output, which is not recorded.
	ID string
	// Text is the output; nil: the execution stands differently.
	Text json.RawMessage
}

// maxDrain is how much of a form that is too large is read to its end, so that a browser gets to see why.
const maxDrain = 64 << 20

// maxMessageBody bounds the body of a request of a chat that is not a form.
const maxMessageBody = 256 << 10

// Pages serves them. It is safe for concurrent use.
type Pages struct {
	o       Options
	router  *route.Router
	pages   *sheet.Pages
	chat    func() (*chatTemplate, error)
	limits  *limits
	streams *streams
}

// Register registers the pages.
func Register(o Options) {
	h := &Pages{o: o, router: o.Router, pages: sheet.NewPages(), limits: newLimits(), streams: newStreams()}
	h.chat = loadChat(h.pages)
	h.runPages()
	// The order does not matter: each has its own address.
	for path, serve := range map[string]func(http.ResponseWriter, *http.Request, *visit){
		trigger.FormsPath: h.serveForm, trigger.ChatPath: h.serveChat,
	} {
		kind := trigger.PageForm
		if path == trigger.ChatPath {
			kind = trigger.PageChat
		}
		handler := func(w http.ResponseWriter, r *http.Request) { h.enter(w, r, kind, path, serve) }
		handlers := map[string]http.HandlerFunc{http.MethodGet: handler, http.MethodPost: handler}
		o.Router.ToStrangers(path, "{workflow}", maxDrain, handlers)
		o.Router.ToStrangers(path, "{workflow}/{path...}", maxDrain, handlers)
	}
}

// visit is a request of a visitor to a page.
type visit struct {
	*trigger.Entrance
	workspace string
	// base is the address of all pages of the workflow of this type, without a slash at the end: cookies are for it.
	base string
	lang string
	// secret is the one in the visitor's cookie; empty: there is none yet.
	secret string
	// user is who is logged in, on a page for users.
	user    identity.Principal
	address string
}

// frame says which sites may show the page.
func (v *visit) frame() sheet.Frame { return sheet.Frame{Ancestors: v.Page.Origins} }

// enter finds the page and lets the visitor in.
func (h *Pages) enter(w http.ResponseWriter, r *http.Request, kind trigger.PageType, path string,
	serve func(http.ResponseWriter, *http.Request, *visit)) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "same-origin") // so that a browser says where a form comes from
	v, err := h.find(r, kind, path)
	if err != nil {
		h.fail(w, r, v, err)
		return
	}
	if len(v.Page.Origins) > 0 {
		w.Header().Set("Cross-Origin-Resource-Policy", "cross-origin")
	}
	if r.Method == http.MethodPost {
		if err := h.sameSite(r, v); err != nil {
			h.fail(w, r, v, err)
			return
		}
	}
	switch v.Page.Access {
	case trigger.AccessPassword:
		if !h.passed(w, r, v) {
			return
		}
	case trigger.AccessUsers:
		if !h.admitted(w, r, v) {
			return
		}
	}
	serve(w, r, v)
}

// find finds the page that a request is for.
func (h *Pages) find(r *http.Request, kind trigger.PageType, path string) (*visit, error) {
	ctx := r.Context()
	v := &visit{lang: h.language(r, "", ""), address: h.router.AddressOf(ctx)}
	slug, below, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), path), "/")
	v.base = path + slug
	slug, err := url.PathUnescape(slug)
	if err != nil {
		return v, trigger.Unknown()
	}
	workspace, workflow, ok := trigger.ParseSlug(slug)
	if !ok {
		return v, trigger.Unknown()
	}
	if below, err = url.PathUnescape(below); err != nil {
		return v, trigger.Unknown()
	}
	v.workspace = workspace
	if v.Entrance, err = h.o.Triggers.Enter(ctx, kind, workspace, workflow, below); err != nil {
		v.Entrance = nil
		return v, err
	}
	v.lang, v.secret = h.language(r, "", v.Page.Language), h.visitorOf(r)
	return v, nil
}

// sameSite refuses what a page of another site sends where that would be done in somebody's name. A public form is nobody's: anyone who has
// its one-time id may send it.
func (h *Pages) sameSite(r *http.Request, v *visit) error {
	if v.Page.Type == trigger.PageForm && v.Page.Access == trigger.AccessPublic {
		return nil
	}
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		return fault.Say(fault.Forbidden, text.Of("a page of another site may not send this")).WithCause(err)
	}
	return nil
}

// language is that of a page: as it was chosen on it, else as the reader has set it, else as the browser says, else that of the workflow,
// else that of the installation.
func (h *Pages) language(r *http.Request, reader, workflow string) string {
	return text.Language(r.URL.Query().Get("lang"), reader, text.Accepted(r.Header.Get("Accept-Language")), workflow, h.o.Language)
}

// render writes a page.
func (h *Pages) render(w http.ResponseWriter, r *http.Request, status int, frame sheet.Frame, page *sheet.Page) {
	if err := h.pages.Render(w, status, frame, page); err != nil {
		h.router.Refuse(w, r, h.router.Problem(r.Context(), identity.Principal{}, err))
	}
}

// isData says that a request is one of the page's script, which reads problem documents and not pages.
func isData(r *http.Request) bool {
	q := r.URL.Query()
	return q.Get("view") != "" || q.Get("do") == doSend || q.Get("do") == doAnswer || q.Get("do") == doNew
}

// fail says why something cannot be had. What only operators may know is in the log.
func (h *Pages) fail(w http.ResponseWriter, r *http.Request, v *visit, err error) {
	ctx := r.Context()
	if refused := route.BodyRefused(ctx); refused != nil {
		err = refused
	}
	told := h.router.Problem(ctx, identity.Principal{}, err)
	if told.Status == http.StatusNotFound && v.Entrance == nil {
		if many := h.router.Pages.Failed(v.address, identity.HashSecret(r.URL.Path)); many != nil {
			told = h.router.Problem(ctx, identity.Principal{}, many)
		}
	}
	if isData(r) {
		told.Detail = human.InLanguage(v.lang, fault.From(err))
		h.router.Refuse(w, r, told)
		return
	}
	if after := told.Headers.Get("Retry-After"); after != "" {
		w.Header().Set("Retry-After", after)
	}
	page := &sheet.Page{Lang: v.lang}
	switch told.Status {
	case http.StatusNotFound:
		page.Heading = page.Tell(text.Of("There is no such page"))
		page.Lines = []string{page.Tell(text.Of("Check the address. What was here may have been taken away."))}
	case http.StatusForbidden:
		page.Heading = page.Tell(text.Of("This is not for you"))
		page.Lines = []string{page.Tell(text.Of("Your account may not use this page. Ask the person who gave you the address."))}
	case http.StatusTooManyRequests:
		page.Heading = page.Tell(text.Of("Please wait a moment"))
		page.Lines = []string{page.Tell(text.Of("Too much was sent. Try again in a while; nothing was recorded."))}
	case http.StatusRequestEntityTooLarge:
		page.Heading = page.Tell(text.Of("This is too large"))
		page.Lines = []string{page.Tell(text.Of("Nothing was recorded. Go back and send less, or smaller files."))}
	default:
		page.Heading = page.Tell(text.Of("This did not work"))
		page.Lines = []string{page.Tell(text.Of("Nothing was recorded. Try again in a while."))}
	}
	frame := sheet.Frame{}
	if v.Entrance != nil {
		frame = v.frame()
	}
	h.render(w, r, told.Status, frame, page)
}

// admitted lets users in who are logged in and have one of the roles; otherwise it answers and says no. A user of another workspace
// gets the answer for a page that does not exist.
func (h *Pages) admitted(w http.ResponseWriter, r *http.Request, v *visit) bool {
	p, err := h.router.Identify(r.Context(), route.Authorization(r))
	switch {
	case fault.CodeOf(err) == fault.Unauthorized && !isData(r) && r.Method == http.MethodGet:
		http.Redirect(w, r, h.o.LoginPath+"?next="+url.QueryEscape(r.URL.Path), http.StatusSeeOther)
		return false
	case err != nil:
		h.fail(w, r, v, err)
		return false
	case p.Workspace != v.workspace:
		v.Entrance = nil
		h.fail(w, r, v, trigger.Unknown())
		return false
	}
	roles := v.Page.Roles
	if len(roles) == 0 {
		roles = identity.Roles()
	}
	if !p.Has(identity.Admin) && !p.Has(roles...) || r.Method == http.MethodPost && !p.MayUse(identity.ScopeExecute) {
		h.fail(w, r, v, fault.Newf(fault.Forbidden, "this page is for users with the role %s", route.RoleList(roles, "or")))
		return false
	}
	return h.known(w, r, v, p, v.Page.Language)
}

// known notes who reads a page, and shows it in the language that they have set. It is false when the page says that this cannot be done.
func (h *Pages) known(w http.ResponseWriter, r *http.Request, v *visit, p identity.Principal, workflow string) bool {
	reader, err := h.o.Users.Get(r.Context(), identity.System(p.Workspace), p.User)
	if err != nil && !errors.Is(err, store.ErrNotFound) { // a token may be of somebody without an account
		h.fail(w, r, v, err)
		return false
	}
	v.user, v.lang = p, h.language(r, reader.Language(), workflow)
	return true
}

// now is the time.
func (h *Pages) now() time.Time { return h.o.Now() }

// payloadOf is what a trigger brings of a visitor besides what was sent.
func (h *Pages) payloadOf(v *visit, fields map[string]any) (json.RawMessage, error) {
	fields["language"], fields["client_ip"], fields["timestamp"] = v.lang, v.address, h.now().UTC().Format(time.RFC3339Nano)
	if v.user.User != "" {
		fields["user_id"] = v.user.User
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		return nil, fault.Newf(fault.Internal, "what was sent cannot be kept: %w", err)
	}
	return raw, nil
}

// patient gives a form with files time to arrive, whatever holds for other requests.
func patient(w http.ResponseWriter, wait time.Duration) error {
	control := http.NewResponseController(w)
	until := time.Now().Add(uploadTimeout + wait)
	for _, set := range []func(time.Time) error{control.SetReadDeadline, control.SetWriteDeadline} {
		if err := set(until); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return err
		}
	}
	return nil
}

// uploadTimeout is how long a form may take to arrive.
const uploadTimeout = 5 * time.Minute
