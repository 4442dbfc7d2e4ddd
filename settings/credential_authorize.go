package settings

import (
	"context"
	"net/http"
	"net/url"

	"tandem/api"
	"tandem/credential"
	"tandem/fault"
	"tandem/identity"
	"tandem/route"
	"tandem/store"
	"tandem/text"
)

// Accounts lets people authorize credentials with a browser, and tries them.
type Accounts interface {
	// Authorize begins an authorization and returns the address that the user who asks has to open.
	Authorize(ctx context.Context, p identity.Principal, id string) (address string, err error)
	// Begin is called when a browser has opened that address; it returns the address to go to, and a secret by which the browser is
	// recognised when it comes back. Secure says that it comes back by HTTPS.
	Begin(ctx context.Context, state string) (to, browser string, secure bool, err error)
	// Authorized is called with what the browser came back with, and returns the name of the credential.
	Authorized(ctx context.Context, back url.Values, browser string) (name string, err error)
	// Try shows a credential to its service, which changes nothing there.
	Try(ctx context.Context, p identity.Principal, id string) (credential.Trial, error)
}

// testCredential tries a credential. If the service refuses it, the answer says so; the call itself succeeds.
func (s *settings) testCredential(ctx context.Context, p identity.Principal, in *credentialInput) (*credentialTestOutput, error) {
	if s.o.Accounts == nil {
		return nil, fault.New(fault.Unsupported, "this server opens no credentials")
	}
	c, err := s.credential(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	// A token that is renewed for this is not a change that the caller has asked for.
	got, err := s.o.Accounts.Try(store.WithoutEntries(ctx), p, c.ID)
	if err != nil {
		return nil, err
	}
	if d := store.AuditDraftOf(ctx); d != nil {
		d.ObjectID, d.Detail = c.ID, store.AuditDetail(map[string]any{"name": c.Name, "type": c.Type, "ok": got.OK, "error_code": got.Code})
	}
	return &credentialTestOutput{api.CredentialTest{OK: got.OK, Testable: got.Tried, Detail: got.Detail, ErrorCode: string(got.Code),
		CheckedTime: s.NowMS()}}, nil
}

// Where browsers go that authorize a credential, and where they come back to. They are outside of the prefix, since other sites lead there.
const (
	AccountBeginPath      = "/credentials/authorize"
	AccountAuthorizedPath = "/credentials/authorized"
)

// browserCookie is the cookie by which a browser is recognised when it comes back.
const browserCookie = "tandem_authorize"

func (s *settings) authorizeCredential(ctx context.Context, p identity.Principal, in *credentialInput) (*authorizeOutput, error) {
	if s.o.Accounts == nil {
		return nil, fault.New(fault.Unsupported, "this server authorizes no credentials")
	}
	c, err := s.credential(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	address, err := s.o.Accounts.Authorize(route.Audited(ctx, "credential.authorize", c.ID, nil, nil), p, c.ID)
	if err != nil {
		return nil, err
	}
	return &authorizeOutput{api.MCPAuthorization{URL: address}}, nil
}

// beginAccount sends a browser to the authorization server. It sets a cookie, so that no other browser can come back in its place.
func (s *settings) beginAccount(w http.ResponseWriter, r *http.Request) {
	if s.o.Accounts == nil || r.URL.Query().Get("state") == "" {
		s.nothingHere(w, r)
		return
	}
	to, browser, secure, err := s.o.Accounts.Begin(r.Context(), r.URL.Query().Get("state"))
	if err != nil {
		s.notAuthorized(w, r, err)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: browserCookie, Value: browser, Path: AccountAuthorizedPath, MaxAge: 15 * 60, HttpOnly: true,
		Secure: secure, SameSite: http.SameSiteLaxMode})
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, to, http.StatusFound)
}

// authorizedAccount is the page that a browser comes back to.
func (s *settings) authorizedAccount(w http.ResponseWriter, r *http.Request) {
	if s.o.Accounts == nil || r.URL.Query().Get("state") == "" {
		s.nothingHere(w, r)
		return
	}
	browser := ""
	if cookie, err := r.Cookie(browserCookie); err == nil {
		browser = cookie.Value
	}
	ctx, stop := context.WithTimeout(s.WithOrigin(r.Context()), toolPatience)
	defer stop()
	name, err := s.o.Accounts.Authorized(ctx, r.URL.Query(), browser)
	if err != nil {
		s.notAuthorized(w, r, err)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: browserCookie, Path: AccountAuthorizedPath, MaxAge: -1})
	s.o.Notice(w, r, http.StatusOK, text.Of("Authorized"), text.Of("The credential %q can be used now. You can close this page.", name))
}

func (s *settings) notAuthorized(w http.ResponseWriter, r *http.Request, err error) {
	told := s.Problem(r.Context(), identity.Principal{}, err)
	s.o.Notice(w, r, told.Status, text.Of("Not authorized"), text.As(told.Detail))
}

// nothingHere is the page for somebody who was not sent to such an address.
func (s *settings) nothingHere(w http.ResponseWriter, r *http.Request) {
	s.o.Notice(w, r, http.StatusOK, text.Of("There is nothing to see here"), text.Of("Authorization servers lead people back to this page."))
}
