package login

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"strings"

	"tandem/fault"
	"tandem/identity"
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

// fragmentScript logs in with the token in the part of the address that is not sent to the server: the link that a first start shows.
const fragmentScript = `(function () {
  var m = /[#&]token=([^&]+)/.exec(location.hash);
  var f = document.getElementById("login");
  if (!m || !f) return;
  history.replaceState(null, "", location.pathname);
  f.elements.token.value = decodeURIComponent(m[1]);
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
	// Token asks for one, under this label; Provider is where people are sent instead, under this label.
	Token    string
	Provider string
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

// page shows a page in the language of the browser.
func (d *desk) page(w http.ResponseWriter, r *http.Request, status int, tell func(say func(text.Text) string) pageContent) {
	lang := "en"
	if first, _, _ := strings.Cut(r.Header.Get("Accept-Language"), ","); strings.HasPrefix(strings.ToLower(strings.TrimSpace(first)), "zh") {
		lang = "zh"
	}
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
	d.Public("GET "+Path, func(w http.ResponseWriter, r *http.Request) { d.form(w, r, http.StatusOK, "") })
	d.Public("POST "+Path, d.takeToken)
	if d.provider != nil {
		d.Public("GET "+ProviderPath, d.sendToProvider)
		d.Public("GET "+ReturnPath, d.backFromProvider)
	}
}

// form asks for a token, or shows the way to the provider.
func (d *desk) form(w http.ResponseWriter, r *http.Request, status int, wrong string) {
	d.page(w, r, status, func(say func(text.Text) string) pageContent {
		c := pageContent{Heading: say(text.Of("Log in")), Wrong: wrong, Token: say(text.Of("Token")), Button: say(text.Of("Log in"))}
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
	if err != nil || perr != nil || strings.TrimSpace(values.Get("token")) == "" {
		d.form(w, r, http.StatusUnprocessableEntity, "")
		return
	}
	ctx := d.WithOrigin(r.Context())
	p, err := d.Identify(ctx, bearer(values.Get("token")))
	var b begun
	if err == nil {
		b, err = d.withToken(ctx, p)
	}
	if err != nil {
		told := d.Problem(ctx, identity.Principal{}, err)
		d.form(w, r, told.Status, told.Detail)
		return
	}
	d.SetSession(w, r, b.secret)
	http.Redirect(w, r, "/", http.StatusSeeOther)
}
