package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"tandem/api"
	"tandem/credential"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/identity"
	"tandem/payload"
	"tandem/route"
	"tandem/store"
	"tandem/story"
	"tandem/text"
)

// callbackPath is before the token of a call back. It stands outside of the prefix: the address is given to strangers.
const callbackPath = "/callbacks/"

// maxCallbackToken is longer than any token that is made.
const maxCallbackToken = 4 << 10

// Callback is what a call back is for: one activation that waits for a signal. All of it is in the token, sealed with the
// master key, so nothing is stored and a token is good after a restart. A token cannot be guessed or changed: it has a
// random key of 256 bits in it. The names are short because the token is part of an address.
type Callback struct {
	Workspace  string              `json:"w"`
	Execution  string              `json:"e"`
	Activation engine.ActivationID `json:"a"`
	Generation uint32              `json:"g"`
	Signal     string              `json:"s"`
	// Expires is when it is too late, in Unix milliseconds; 0: never.
	Expires int64 `json:"x"`
}

// callbackContext makes sure that a sealed call back cannot be taken for anything else that is sealed.
func callbackContext() []byte { return []byte("tandem callback") }

// CallbackURL is the address of a call back on a server that is reached under base.
func CallbackURL(base string, ring *credential.Keyring, c Callback) (string, error) {
	plain, err := json.Marshal(c)
	if err != nil {
		return "", fault.Newf(fault.Internal, "a call back cannot be written: %w", err)
	}
	sealed, err := ring.Seal(plain, callbackContext())
	if err != nil {
		return "", err
	}
	return strings.TrimRight(base, "/") + callbackPath + base64.RawURLEncoding.EncodeToString(sealed), nil
}

// callbacks registers where services call back. They have no token of a user: the address is what they are known by.
func (s *Server) callbacks() {
	s.ToStrangers(callbackPath, "{token}", route.MaxBody, map[string]http.HandlerFunc{
		http.MethodGet: s.callback, http.MethodPost: s.callback, http.MethodPut: s.callback, http.MethodPatch: s.callback,
	})
}

func (s *Server) callback(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if err := s.receive(w, r); err != nil {
		s.Refuse(w, r, s.Problem(r.Context(), identity.Principal{}, err))
		return
	}
	s.Send(w, r, "application/json", []byte(`{"received":true}`+"\n"))
}

func callbackUnknown() error {
	return route.Refused(http.StatusNotFound, fault.NotFound, text.Of("this is not an address that a service was given to call; use the callback_url or wait_url as it was given, to its last letter"))
}

func callbackGone() error {
	return route.Refused(http.StatusGone, fault.NotFound, text.Of("nobody waits for this call back any more: its time is over, or the node or its execution has ended"))
}

func callbackTwice() error {
	return route.Refused(http.StatusConflict, fault.Conflict, text.Of("this call back was received already; its address is good for one"))
}

// receive hands a call back to the activation that waits for it, or that will wait as soon as its own call is answered.
// When it returns without an error the call back is on disk.
func (s *Server) receive(w http.ResponseWriter, r *http.Request) error {
	if r.Method == http.MethodHead {
		return wrongMethod(http.MethodGet, http.MethodPost) // a HEAD request, which only checks the link, does not use it up
	}
	token := r.PathValue("token")
	leave, err := s.Calls.Enter(r.Context(), s.AddressOf(r.Context()), identity.HashSecret(callbackPath+token))
	if err != nil {
		return err
	}
	c, err := s.openCallback(token)
	leave(err == nil, true)
	if err != nil {
		return err
	}
	if c.Signal == waitSignal {
		return s.endWait(w, r, c)
	}
	if r.Method != http.MethodGet && r.Method != http.MethodPost {
		return wrongMethod(http.MethodGet, http.MethodPost)
	}
	body, err := s.ReadBody(w, r, route.MaxKeys)
	if err != nil {
		return err
	}
	value, err := callbackValue(r, body)
	if err != nil {
		return err
	}
	ctx, p := r.Context(), identity.System(c.Workspace)
	reading, err := s.stories.ReadExecution(ctx, p, c.Execution)
	if errors.Is(err, store.ErrNotFound) {
		return callbackGone()
	}
	if err != nil {
		return err
	}
	if err := awaits(ctx, reading, c, s.o.Now()); err != nil {
		return err
	}
	audited := store.Audited(ctx, store.AuditEntry{
		Workspace: c.Workspace, Means: identity.Means{Kind: identity.ByCallback}, Action: "execution.callback", Object: "execution", ObjectID: c.Execution,
		Detail: store.AuditDetail(map[string]string{"activation_id": string(c.Activation)}),
	})
	_, err = s.o.Host.Act(audited, p, host.Request{
		Execution: c.Execution, Action: host.ActionSignal, Node: host.NodeOf(reading.Graph, c.Activation), Activation: c.Activation,
		Signal: c.Signal, Value: value,
		Dedup: "callback:" + c.Signal + ":" + string(c.Activation), Single: true, By: "callback",
	})
	if fault.CodeOf(err) == fault.Conflict {
		return callbackTwice()
	}
	return err
}

// methodList names methods in a sentence.
func methodList(methods []string) text.Text {
	last := len(methods) - 1
	if last == 0 {
		return text.As(methods[0])
	}
	return text.Of("%s or %s", methodList(methods[:last]), methods[last])
}

// wrongMethod says with which methods an address is called.
func wrongMethod(methods ...string) error {
	out := route.Refused(http.StatusMethodNotAllowed, fault.Unsupported, text.Of("this address is called with %s", methodList(methods)))
	out.Headers.Set("Allow", strings.Join(methods, ", "))
	return out
}

func (s *Server) openCallback(token string) (Callback, error) {
	var c Callback
	if len(token) > maxCallbackToken {
		return c, callbackUnknown()
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil {
		return c, callbackUnknown()
	}
	plain, err := s.o.Keyring.Open(sealed, callbackContext())
	if err != nil || json.Unmarshal(plain, &c) != nil {
		return c, callbackUnknown()
	}
	return c, nil
}

// awaits says why no activation waits for a call back; nil when one does. It does not ask whether the call is the first
// one: only storing it shows that.
func awaits(ctx context.Context, r *story.Reading, c Callback, now time.Time) error {
	open := r.View.Open[c.Activation]
	if open != nil && !r.View.Status.Final() && c.Generation == open.Generation && (c.Expires == 0 || now.UnixMilli() < c.Expires) {
		return nil
	}
	if open != nil {
		return callbackGone()
	}
	record, found, err := r.Journal.Activation(ctx, c.Activation)
	if err != nil {
		return err
	}
	// An activation that has ended along its main key has had its call back.
	if found &&
		slices.ContainsFunc(record.Outputs, func(o engine.Output) bool { return o.Key == "result" || o.Key == "completed" }) &&
		c.Generation == record.Generation {
		return callbackTwice()
	}
	return callbackGone()
}

// callbackValue reads what a service brings: JSON, a form, a text; with GET its query.
func callbackValue(r *http.Request, body []byte) (json.RawMessage, error) {
	if r.Method == http.MethodGet {
		return formValue(r.URL.RawQuery)
	}
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		mediaType = ""
	}
	body = bytes.TrimPrefix(body, []byte("\uFEFF"))
	read, notJSON := payload.Normalize(body, payload.Limits{MaxDepth: payload.DoorDepth, Unique: true, Finite: true})
	wrong, _ := errors.AsType[*payload.Error](notJSON)
	isJSON := mediaType == "application/json" || mediaType == "text/json" || strings.HasSuffix(mediaType, "+json")
	switch {
	case len(bytes.TrimSpace(body)) == 0:
		return json.RawMessage("null"), nil
	case isJSON && notJSON != nil && wrong.Syntax:
		return nil, fault.New(fault.InvalidInput, "the body of the call back says that it is JSON and is not; correct it and call again")
	case isJSON, mediaType != "application/x-www-form-urlencoded" && !strings.HasPrefix(mediaType, "text/") && (notJSON == nil || !wrong.Syntax):
		if notJSON != nil {
			return nil, api.WrongField(cmp.Or(wrong.Path, "body"), "%s; correct it and call again", wrong.Reason)
		}
		return read, nil
	case !utf8.Valid(body) || strings.HasPrefix(mediaType, "multipart/"):
		return nil, fault.New(fault.Unsupported, "the body of the call back must be JSON, a form or a text")
	case mediaType == "application/x-www-form-urlencoded":
		return formValue(string(body))
	}
	return json.Marshal(string(body))
}

// formValue makes an object of a form: a text for each name, a list of them for one that is there several times.
func formValue(text string) (json.RawMessage, error) {
	form, err := url.ParseQuery(text)
	if err != nil {
		return nil, fault.New(fault.InvalidInput, "the form of the call back cannot be read; escape its names and values").WithCause(err)
	}
	out := make(map[string]any, len(form))
	for name, values := range form { // order does not matter: one entry per name
		if !utf8.ValidString(name) || slices.ContainsFunc(values, func(v string) bool { return !utf8.ValidString(v) }) {
			return nil, api.WrongField(strings.ToValidUTF8(name, "\uFFFD"), "it is not valid UTF-8; correct it and call again")
		}
		if len(values) == 1 {
			out[name] = values[0]
		} else {
			out[name] = values
		}
	}
	return json.Marshal(out)
}
