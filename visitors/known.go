package visitors

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"tandem/fault"
	"tandem/human/sheet"
	"tandem/identity"
	"tandem/route"
	"tandem/text"
)

// The cookies: by which a visitor is known, and which says that the password was entered. Both are for the pages of one workflow.
const (
	visitorCookie = "tandem_visitor"
	passCookie    = "tandem_pass"
	visitorLife   = 365 * 24 * time.Hour
	passLife      = 12 * time.Hour
	// maxCookie is longer than any that is made.
	maxCookie = 200
	maxForm   = 1 << 12
)

// visitorOf is the secret in the cookie of a visitor; empty: there is none.
func (h *Pages) visitorOf(r *http.Request) string {
	c, err := r.Cookie(visitorCookie)
	if err != nil || len(c.Value) < 20 || len(c.Value) > maxCookie {
		return ""
	}
	return c.Value
}

// setCookie gives the visitor a cookie. Where other sites may show the page, the browser has to send it inside of them, too, which it does
// on encrypted connections only; it is then kept apart for each of these sites.
func (h *Pages) setCookie(w http.ResponseWriter, r *http.Request, v *visit, name, value string, life time.Duration) {
	c := &http.Cookie{Name: name, Value: value, Path: v.base, HttpOnly: true, SameSite: http.SameSiteLaxMode,
		MaxAge: int(life / time.Second)}
	if c.Secure = h.router.Encrypted(r); c.Secure && len(v.Page.Origins) > 0 {
		c.SameSite, c.Partitioned = http.SameSiteNoneMode, true
	}
	http.SetCookie(w, c)
}

// greet makes a visitor known who is not.
func (h *Pages) greet(w http.ResponseWriter, r *http.Request, v *visit) {
	if v.secret == "" {
		v.secret = nonce()
		h.setCookie(w, r, v, visitorCookie, v.secret, visitorLife)
	}
}

// hashed is a hash of what belongs to a visit, in a form that tells nothing of its parts.
func (v *visit) hashed(what string, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(append([]string{"tandem " + what, v.workspace, v.Trigger.WorkflowID, v.Trigger.Node,
		v.user.User}, parts...), "\x00")))
	return hex.EncodeToString(sum[:16])
}

// conversation is the id of the visitor's conversation. It follows from the visitor's secret, and nobody can tell the secret from it.
func (v *visit) conversation() string { return "conv_" + v.hashed("conversation", v.secret) }

// visitor tells visitors apart where something is counted: by the user, by the cookie, else by the address.
func (v *visit) visitor() string {
	if v.user.User == "" && v.secret == "" {
		return "address " + v.address
	}
	return v.hashed("visitor", v.secret)
}

// passed says whether the visitor has entered the password; otherwise it asks for it, or takes it, and answers.
func (h *Pages) passed(w http.ResponseWriter, r *http.Request, v *visit) bool {
	secret, err := v.Secret(r.Context())
	if err != nil {
		h.fail(w, r, v, err)
		return false
	}
	if c, err := r.Cookie(passCookie); err == nil && v.goodPass(secret, c.Value, h.now()) {
		return true
	}
	switch {
	case isData(r):
		h.fail(w, r, v, fault.Say(fault.Unauthorized, text.Of("Enter the password again: reload the page.")))
	case r.Method == http.MethodPost && r.URL.Query().Get("do") == doEnter:
		h.takePassword(w, r, v, secret)
	default:
		h.askPassword(w, r, v, http.StatusUnauthorized, nil)
	}
	return false
}

// doEnter is what is done by sending the password.
const doEnter = "enter"

// askPassword asks for it.
func (h *Pages) askPassword(w http.ResponseWriter, r *http.Request, v *visit, status int, wrong []string) {
	page := &sheet.Page{Lang: v.lang, Heading: v.Page.Title, General: wrong, Action: "?do=" + doEnter + "&lang=" + v.lang}
	if page.Heading == "" {
		page.Heading = page.Tell(text.Of("Password needed"))
	}
	page.Password = page.Tell(text.Of("Password"))
	h.render(w, r, status, v.frame(), page)
}

// takePassword looks at it. Who guesses is slowed down.
func (h *Pages) takePassword(w http.ResponseWriter, r *http.Request, v *visit, secret string) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxForm))
	if err != nil {
		h.fail(w, r, v, err)
		return
	}
	values, err := url.ParseQuery(string(body))
	if err != nil {
		values = url.Values{}
	}
	given := identity.HashSecret("page password\x00" + v.base + "\x00" + values.Get("password"))
	leave, err := h.router.Pages.Enter(r.Context(), v.address, given)
	if err != nil {
		h.fail(w, r, v, err)
		return
	}
	want, got := sha256.Sum256([]byte(secret)), sha256.Sum256([]byte(values.Get("password")))
	right := subtle.ConstantTimeCompare(want[:], got[:]) == 1
	leave(right, true)
	if !right {
		v.Refuse(r.Context(), fault.New(fault.Unauthorized, "a wrong password was entered"))
		h.askPassword(w, r, v, http.StatusUnauthorized, []string{text.Of("The password is wrong.").In(v.lang)})
		return
	}
	h.setCookie(w, r, v, passCookie, v.pass(secret, h.now().Add(passLife)), passLife)
	http.Redirect(w, r, r.URL.EscapedPath()+"?lang="+v.lang, http.StatusSeeOther)
}

// pass is the cookie of a visitor who knows the password, until a time. Another secret of the credential makes all of them worthless.
func (v *visit) pass(secret string, until time.Time) string {
	at := strconv.FormatInt(until.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write([]byte(strings.Join([]string{"tandem page pass", v.workspace, v.Trigger.WorkflowID, v.Trigger.Node, at}, "\x00"))) // a hash takes everything
	return at + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func (v *visit) goodPass(secret, cookie string, now time.Time) bool {
	at, _, _ := strings.Cut(cookie, ".")
	seconds, err := strconv.ParseInt(at, 10, 64)
	until := time.Unix(seconds, 0)
	return err == nil && len(cookie) <= maxCookie && now.Before(until) && hmac.Equal([]byte(v.pass(secret, until)), []byte(cookie))
}

// limits counts what visitors send, in windows that slide.
type limits struct {
	mu    sync.Mutex
	times map[string][]time.Time
	swept time.Time
}

const (
	// maxCounted is how many visitors and addresses are counted at once.
	maxCounted = 50_000
	// perAddress is how much more an address may send than a visitor: there may be several behind it, and a visitor without a cookie is a
	// new one each time.
	perAddress = 5
)

func newLimits() *limits { return &limits{times: map[string][]time.Time{}} }

// countVisit counts something that a visitor sends; an error says that it is too much, and when it no longer is.
func (l *limits) countVisit(v *visit, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	page := v.workspace + "/" + v.Trigger.WorkflowID + "/" + v.Trigger.Node + "/"
	kinds := []struct {
		key  string
		most int
	}{{page + "visitor " + v.visitor(), v.Page.Limit}, {page + "address " + v.address, perAddress * v.Page.Limit}}
	l.sweep(now)
	for _, k := range kinds {
		list := l.times[k.key]
		for len(list) > 0 && !list[0].After(now.Add(-v.Page.Window)) {
			list = list[1:]
		}
		l.times[k.key] = list
		if len(list) >= k.most {
			wait := list[len(list)-k.most].Add(v.Page.Window).Sub(now)
			return fault.Say(fault.RateLimited, text.Of("Too much was sent in a short time; try again in %d seconds.", route.Seconds(wait))).With("retry_after", route.Seconds(wait))
		}
	}
	for _, k := range kinds {
		l.times[k.key] = append(l.times[k.key], now)
	}
	return nil
}

// sweep forgets those who have sent nothing for a day, which is longer than any window, and everybody when there are too many.
func (l *limits) sweep(now time.Time) {
	if len(l.times) >= maxCounted {
		clear(l.times)
	}
	if now.Sub(l.swept) < time.Hour {
		return
	}
	l.swept = now
	for key, list := range l.times { // order does not matter: each is looked at by itself
		if len(list) == 0 || list[len(list)-1].Before(now.Add(-24*time.Hour)) {
			delete(l.times, key)
		}
	}
}

// nonce is an id that is used once.
func nonce() string { return strings.ToLower(rand.Text()) }
