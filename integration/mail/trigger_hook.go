package mail

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/fault"
	"tandem/node"
	"tandem/payload"
	"tandem/trigger"
)

const (
	// providerWebhook takes mail that a service hands in.
	providerWebhook = "webhook"
	// typeSecret is the type of credential whose secret such a service shows.
	typeSecret = "webhook_secret"
	// tokenHeader and tokenParameter are where a secret is shown, unless the credential says otherwise.
	tokenHeader    = "X-Webhook-Token"
	tokenParameter = "token"
)

var _ trigger.Receiver = (*emailSource)(nil)

// goodHookPath says whether mail can be handed in at a path.
func goodHookPath(path string) bool {
	return len(path) <= 200 && regexp.MustCompile(`^(/[A-Za-z0-9_.~-]*[A-Za-z0-9_~-])+$`).MatchString(path)
}

// hookSecret is what a service has to show.
type hookSecret struct {
	Secret    string `json:"secret"`
	Header    string `json:"header"`
	Parameter string `json:"parameter"`
}

// openHookSecret reads the credential of a trigger.
func openHookSecret(ctx context.Context, t trigger.Trigger) (hookSecret, error) {
	s := hookSecret{Header: tokenHeader, Parameter: tokenParameter}
	id := gjson.GetBytes(t.Config, "credential_id").String()
	if id == "" {
		return s, fault.New(fault.CredentialMissing, "credential_id: a service that hands in mail needs a credential of the type webhook_secret")
	}
	opened, err := t.Open(ctx, id, typeSecret)
	if err != nil {
		return s, err
	}
	defer opened.Release()
	if err := payload.Read(opened.Data, &s); err != nil || s.Secret == "" {
		return s, fault.Newf(fault.CredentialInvalid, "credential %q has no secret; set it again", id)
	}
	if s.Header == "" {
		s.Header = tokenHeader
	}
	if s.Parameter == "" {
		s.Parameter = tokenParameter
	}
	return s, nil
}

// shown says whether a request shows the secret: as the password of HTTP, in the header or in the parameter that the credential names. It
// takes the same time whatever is shown.
func (s hookSecret) shown(r *trigger.Request) bool {
	header := r.Header.Get(s.Header)
	if strings.EqualFold(s.Header, "Authorization") {
		header = strings.TrimPrefix(header, "Bearer ")
	}
	_, password, _ := (&http.Request{Header: r.Header}).BasicAuth()
	want, right := sha256.Sum256([]byte(s.Secret)), 0
	for _, given := range []string{header, password, r.Query.Get(s.Parameter)} {
		got := sha256.Sum256([]byte(given))
		right |= subtle.ConstantTimeCompare(want[:], got[:])
	}
	return right == 1
}

// refusedHook is the one refusal of everything that is wrong with the proof of a caller: an outsider learns nothing of the trigger. What
// may pass is returned.
func refusedHook(cause error) error {
	if cause != nil && fault.From(cause).Retryable {
		return cause
	}
	refused := fault.New(fault.Unauthorized, "the request does not show the secret of this trigger; send it as the password of the address, in a header or in a parameter, or sign it as Mailgun does")
	if cause != nil {
		refused = refused.WithDetail(fault.From(cause).Message)
	}
	return refused
}

// Route implements [trigger.Receiver]. A mailbox that is read takes no requests.
func (*emailSource) Route(t trigger.Trigger) (trigger.Route, error) {
	cfg, err := node.Configuration[emailConfig](t.Config)
	if err != nil || cfg.Provider != providerWebhook {
		return trigger.Route{}, err
	}
	if !goodHookPath(cfg.Path) {
		return trigger.Route{}, fault.Newf(fault.InvalidConfig, "webhook_path: %q is not a path; write it like /mail, with letters, digits, dots and hyphens", cfg.Path)
	}
	return trigger.Route{Path: cfg.Path, Methods: []string{http.MethodPost}}, nil
}

// Receive implements [trigger.Receiver]. A mail that does not fit is answered like one that does: the service shall not send it again.
func (s *emailSource) Receive(ctx context.Context, t trigger.Trigger, r *trigger.Request) (verdict trigger.Verdict, err error) {
	cfg, err := node.Configuration[emailConfig](t.Config)
	if err != nil {
		return verdict, err
	}
	secret, err := openHookSecret(ctx, t)
	if err != nil {
		return verdict, refusedHook(err)
	}
	handed, err := handedIn(r)
	shown := secret.shown(r)
	if !shown && (err != nil || !handed.proof.fits(secret.Secret, r.Received)) {
		return verdict, refusedHook(nil)
	}
	if err != nil {
		return verdict, err
	}
	raw := handed.raw
	sum := sha256.Sum256(raw)
	if !shown && !s.proofs.useProof(t.Workspace+"/"+t.WorkflowID+"/"+t.Node, handed.proof, sum, r.Received) {
		return verdict, refusedHook(nil)
	}
	name := "hook:" + hex.EncodeToString(sum[:])
	verdict.Reply = trigger.ReplyAtOnce
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("a mail could not be read", "workspace", t.Workspace, "workflow", t.WorkflowID, "node",
				t.Node, "panic", fmt.Sprint(p))
			verdict, err = trigger.Verdict{Reply: trigger.ReplyAtOnce, Event: trigger.Event{Key: name, Ignored: "it cannot be read"}}, nil
		}
	}()
	l, ok := readIncoming(raw, int64(len(raw)), true, Trust{})
	if !ok {
		return verdict, noMail()
	}
	l.mail.Verified = false // what the mail says of itself proves nothing, and no server is known that would have checked it
	if why := cfg.unwanted(l); why != "" {
		verdict.Event = trigger.Event{Key: name, Ignored: why}
		return verdict, nil
	}
	id := l.mail.ID
	if id == "" {
		id = name
	}
	body, err := l.payload(ctx, &cfg, id, r.Received, r.KeepFile)
	verdict.Event = trigger.Event{Key: l.key(), Payload: body}
	return verdict, err
}

// noMail is the answer to a service that sends something else than the mail itself.
func noMail() error {
	return fault.New(fault.InvalidInput, "body: it has no whole mail; let the service send the raw MIME message, as message/rfc822, as the field email (SendGrid) or body-mime (Mailgun) of a form, or as RawEmail in JSON (Postmark)")
}

// handed is what a request brings: the whole mail, and what Mailgun proves with that it is from there.
type handed struct {
	raw   []byte
	proof mailgunProof
}

// handedIn is the mail of a request, as the usual services hand it in: by itself, as a field of a form, or as a text in JSON.
func handedIn(r *trigger.Request) (h handed, err error) {
	kind, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		kind = ""
	}
	switch kind {
	case "multipart/form-data":
		h, err = mailForm(multipart.NewReader(bytes.NewReader(r.Body), parameters["boundary"]))
		if err != nil {
			return h, err
		}
	case "application/x-www-form-urlencoded":
		values, err := url.ParseQuery(string(r.Body))
		if err != nil {
			return h, fault.New(fault.InvalidInput, "body: the form cannot be read")
		}
		for name := range values { // order does not matter: each has a place of its own, and of two mails the first kind counts
			h.field(name, []byte(values.Get(name)))
		}
	case "application/json":
		body, err := payload.Normalize(r.Body, payload.Limits{})
		if err != nil {
			return h, fault.New(fault.InvalidInput, "body: the JSON cannot be read")
		}
		if raw := gjson.GetBytes(body, "RawEmail"); raw.Type == gjson.String {
			h.raw = []byte(raw.Str)
		}
	default:
		h.raw = r.Body
	}
	if len(bytes.TrimSpace(h.raw)) == 0 {
		return h, noMail()
	}
	return h, nil
}

// field takes a field of a form: the whole mail, as SendGrid and Mailgun call it, or a part of Mailgun's proof.
func (h *handed) field(name string, value []byte) {
	switch name {
	case "email":
		if len(value) > 0 {
			h.raw = value
		}
	case "body-mime":
		if len(h.raw) == 0 {
			h.raw = value
		}
	case "timestamp":
		h.proof.timestamp = string(value)
	case "token":
		h.proof.token = string(value)
	case "signature":
		h.proof.signature = string(value)
	}
}

// mailForm reads a form with files.
func mailForm(form *multipart.Reader) (h handed, err error) {
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			return h, nil
		}
		if err != nil {
			return h, fault.New(fault.InvalidInput, "body: the form cannot be read")
		}
		switch name := part.FormName(); name {
		case "email", "body-mime", "timestamp", "token", "signature":
			value, err := io.ReadAll(part) // it is a part of what is in memory already
			if err != nil {
				return h, fault.New(fault.InvalidInput, "body: the form cannot be read")
			}
			h.field(name, value)
		}
	}
}
