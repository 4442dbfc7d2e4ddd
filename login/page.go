package login

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"errors"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/text"
)

// Path is the page on which people log in, ProviderPath where they are sent to the provider from, and ReturnPath where they come back.
const (
	Path         = "/login"
	ProviderPath = "/login/oidc"
	ReturnPath   = "/login/oidc/callback"
)

//go:embed page.html
var pageText string // read-only

// fragmentScript logs in with the code, or the token, in the part of the address that is not sent to the server: the link that a first
// start shows.
const fragmentScript = `(function () {
  var m = /[#&](code|token)=([^&]+)/.exec(location.hash);
  var f = document.getElementById("login");
  if (!m || !f) return;
  history.replaceState(null, "", location.pathname);
  f.elements[m[1]].value = decodeURIComponent(m[2]);
  f.submit();
})();`

const pageStyle = `body{font:16px/1.5 system-ui,sans-serif;margin:0 auto;max-width:32rem;padding:2rem 1rem;color:#1a1a1a;background:#fff}
input,button,.button{font:inherit;padding:.5rem .75rem;border:1px solid #767676;border-radius:.4rem;box-sizing:border-box}
input{width:100%;margin:.25rem 0 1rem}button,.button{background:#1f4fd8;border-color:#1f4fd8;color:#fff;text-decoration:none;display:inline-block}
code{display:block;overflow-wrap:anywhere;padding:.75rem;border:1px solid #ccc;border-radius:.4rem}.wrong{color:#b00020}
@media (prefers-color-scheme:dark){body{color:#eee;background:#161616}input{background:#222;color:#eee}.wrong{color:#ff8a80}}`

// pageContent is what a page shows.
type pageContent struct {
	Lang    string
	Heading string
	Lines   []string
	// Wrong says what did not work.
	Wrong string
	// Action and Button make a form that has nothing to fill in; Secret is shown to be copied.
	Action, Button string
	Secret         string
	// Again leads back to the form, under this label.
	Again string
	// Token asks for one, under this label; Provider is where people are sent instead, under this label.
	Token    string
	Provider string
	// Next is the page that the person who logs in has come from; empty: none.
	Next string
}

// Style and Script are those of every page; the policy of the page names their hashes.
func (pageContent) Style() template.CSS { return template.CSS(pageStyle) }

// Script is that of the form that asks for a token.
func (pageContent) Script() template.JS { return template.JS(fragmentScript) }

// ProviderPath is where people are sent to the provider from.
func (pageContent) ProviderPath() string { return ProviderPath }

func hashSource(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// page shows a page in the language of the browser, else in that of the installation.
func (d *desk) page(w http.ResponseWriter, r *http.Request, status int, tell func(say func(text.Text) string) pageContent) {
	lang := text.Language(text.Accepted(r.Header.Get("Accept-Language")), d.o.Language)
	content := tell(func(t text.Text) string { return t.In(lang) })
	content.Lang = lang
	var out bytes.Buffer
	t, err := template.New("page").Parse(pageText)
	if err == nil {
		err = t.Execute(&out, content)
	}
	if err != nil {
		d.Refuse(w, r, d.Problem(r.Context(), identity.Principal{}, fault.Newf(fault.Internal, "the page cannot be shown: %w", err)))
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src "+hashSource(pageStyle)+"; script-src "+hashSource(fragmentScript)+"; base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "same-origin") // so that a browser says where the form comes from
	h.Set("Cache-Control", "no-store")
	h.Set("X-Robots-Tag", "noindex, nofollow, noarchive")
	h.Set("Content-Language", lang)
	h.Set("Vary", "Accept-Language")
	h.Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	if _, err := w.Write(out.Bytes()); err != nil {
		d.Log.DebugContext(r.Context(), "nobody took the answer", "error", err)
	}
}

// pages registers the pages on which people log in.
func (d *desk) pages() {
	d.Public("GET "+Path, func(w http.ResponseWriter, r *http.Request) {
		d.form(w, r, http.StatusOK, r.URL.Query().Get("next"), "")
	})
	d.Public("POST "+Path, d.takeToken)
	if d.provider != nil {
		d.Public("GET "+ProviderPath, d.sendToProvider)
		d.Public("GET "+ReturnPath, d.backFromProvider)
	}
}

// form asks for a token, or shows the way to the provider.
func (d *desk) form(w http.ResponseWriter, r *http.Request, status int, next, wrong string) {
	d.page(w, r, status, func(say func(text.Text) string) pageContent {
		c := pageContent{Heading: say(text.Of("Log in")), Wrong: wrong, Token: say(text.Of("Token")),
			Button: say(text.Of("Log in")), Next: d.safeNext(next)}
		if d.provider != nil {
			c.Provider = say(text.Of("Log in with your organisation"))
		}
		return c
	})
}

// maxForm bounds the form with a token.
const maxForm = 1 << 12

// takeToken takes the form. A page of another site cannot send it: the door of every request sees to that.
func (d *desk) takeToken(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxForm))
	values, perr := url.ParseQuery(string(body))
	if err == nil && perr == nil && strings.TrimSpace(values.Get("code")) != "" {
		d.takeCode(w, r, values)
		return
	}
	if err != nil || perr != nil || strings.TrimSpace(values.Get("token")) == "" {
		d.form(w, r, http.StatusUnprocessableEntity, values.Get("next"), "")
		return
	}
	ctx := d.WithOrigin(r.Context())
	p, err := d.Identify(ctx, bearer(values.Get("token")))
	var b begun
	switch {
	case err != nil:
	case p.LogsIn():
		err = fault.New(fault.Forbidden, "this is the code of a login link; open the link")
	default:
		b, err = d.withToken(ctx, p)
	}
	if err != nil {
		told := d.Problem(ctx, identity.Principal{}, err)
		d.form(w, r, told.Status, values.Get("next"), told.Detail)
		return
	}
	d.SetSession(w, r, b.secret)
	http.Redirect(w, r, cmp.Or(d.safeNext(values.Get("next")), "/"), http.StatusSeeOther)
}

// takeCode takes the code of a login link, which is used up by it.
func (d *desk) takeCode(w http.ResponseWriter, r *http.Request, values url.Values) {
	ctx := d.WithOrigin(r.Context())
	b, err := d.withCode(ctx, values.Get("code"))
	switch {
	case errors.Is(err, errUsedUp):
		d.page(w, r, http.StatusGone, func(say func(text.Text) string) pageContent {
			return pageContent{
				Heading: say(text.Of("This link is not good any more")),
				Lines: []string{
					say(text.Of("A login link is good for one login within an hour. This one was used, or its time is over.")),
					say(text.Of("On the machine of the server, this command shows another one:")),
				},
				Secret: "tandem admin link", Again: say(text.Of("Log in with a token")),
			}
		})
	case err != nil:
		told := d.Problem(ctx, identity.Principal{}, err)
		d.form(w, r, told.Status, values.Get("next"), told.Detail)
	default:
		d.SetSession(w, r, b.secret)
		http.Redirect(w, r, cmp.Or(d.safeNext(values.Get("next")), "/"), http.StatusSeeOther)
	}
}

// errUsedUp says that the code of a link was used, or is no longer good.
var errUsedUp = errors.New("the code of the link is not good any more") // read-only

// withCode begins a session of somebody who has opened a login link. Of two who open it at once one succeeds.
func (d *desk) withCode(ctx context.Context, code string) (begun, error) {
	p, err := d.Identify(ctx, bearer(code))
	switch fault.CodeOf(err) {
	case "":
	case fault.Unauthorized:
		return begun{}, errUsedUp
	default:
		return begun{}, err
	}
	if !p.LogsIn() {
		return begun{}, errUsedUp
	}
	entry := d.EntryOf(ctx, p, "token.delete", p.Means.Token)
	entry.Detail = store.AuditDetail(map[string]string{"user_id": p.User, "why": "the login link was used"})
	err = d.o.Stores.Tokens.Delete(store.Audited(ctx, entry), identity.System(p.Workspace), p.Means.Token)
	if errors.Is(err, store.ErrNotFound) {
		return begun{}, errUsedUp
	}
	if err != nil {
		return begun{}, err
	}
	return d.begin(ctx, identity.User{Workspace: p.Workspace, ID: p.User},
		identity.Session{Method: "link", TokenMadeBy: p.Means.TokenMadeBy})
}

// safeNext is the page of this server that somebody is sent to after the login; empty: it is not a page that asks people to log in.
func (d *desk) safeNext(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Fragment != "" || path.Clean(u.Path) != u.Path ||
		strings.ContainsAny(next, "\\\r\n") || len(next) > maxForm {
		return ""
	}
	for _, prefix := range []string{"/forms/", "/chat/", "/run/"} {
		if strings.HasPrefix(u.Path, prefix) && u.RawQuery == "" {
			return next
		}
	}
	for _, place := range d.o.Places {
		if u.Path == place || strings.HasPrefix(u.Path, place+"/") {
			return next
		}
	}
	return ""
}
