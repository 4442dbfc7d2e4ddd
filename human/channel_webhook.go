package human

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"tandem/credential"
	"tandem/fault"
	"tandem/identity"
	"tandem/outbound"
	"tandem/store"
	"tandem/text"
)

// The headers of calls in both directions.
const (
	headerTimestamp = "X-Tandem-Timestamp"
	headerSignature = "X-Tandem-Signature"
)

const (
	// webhookSkew is how far the time of a callback may be from ours: it bounds how long a recorded one can be sent again.
	webhookSkew = 5 * time.Minute
	// webhookMax is how many bytes a callback may have; a form may hold a file.
	webhookMax = 16 << 20
	// webhookCredential is the type of the credential that signs.
	webhookCredential = "webhook_secret"
)

// Caller makes guarded calls; *outbound.Client is one.
type Caller interface {
	Do(ctx context.Context, r outbound.Request) (*outbound.Response, error)
}

// NewWebhook is the channel to programs: questions go out as signed calls to an address of the settings (webhook_url), and answers come back as
// calls that are signed with the same secret. Who holds the secret speaks for whoever it names, who must be one of the approvers.
func NewWebhook(calls Caller) Channel { return &webhook{calls} }

type webhook struct{ calls Caller }

// Name implements [Channel].
func (h *webhook) Name() string { return Webhook }

// Traits implements [Particular].
func (h *webhook) Traits() Traits {
	return Traits{Credentials: []string{webhookCredential}, TakesURL: true, Place: func(settings json.RawMessage) Place {
		var s struct {
			URL string `json:"webhook_url"`
		}
		_ = json.Unmarshal(settings, &s) // settings of another form name no place
		return Place{Named: s.URL != "", Private: true}
	}}
}

// WebhookCredential is the type of the credentials that calls are signed with.
func WebhookCredential() credential.Type {
	return credential.Type{Name: webhookCredential, Label: text.Beside("Webhook secret", "Webhook 密钥"), Fields: []credential.Field{
		credential.Secret("secret", "Secret", "密钥").Needed().ChosenByPeople(),
		credential.Text("header", "Header name", "请求头名"), credential.Text("parameter", "Parameter name", "参数名"),
	}}
}

// webhookCall is the body of a call.
type webhookCall struct {
	// Event is the kind of the message.
	Event       string             `json:"event"`
	Interaction webhookInteraction `json:"interaction"`
	Request     json.RawMessage    `json:"request"`
	Link        string             `json:"link,omitempty"`
	CallbackURL string             `json:"callback_url,omitempty"`
	Lines       []string           `json:"lines,omitempty"`
	Data        map[string]any     `json:"data"`
}

// webhookInteraction is what a program learns of the record.
type webhookInteraction struct {
	ID            string                  `json:"id"`
	WorkflowID    string                  `json:"workflow_id"`
	WorkflowName  string                  `json:"workflow_name,omitempty"`
	ExecutionID   string                  `json:"execution_id"`
	NodeID        string                  `json:"node_id"`
	Type          string                  `json:"interaction_type"`
	Purpose       string                  `json:"purpose"`
	Status        store.InteractionStatus `json:"status"`
	Priority      int                     `json:"priority"`
	Approvers     []string                `json:"approvers"`
	MinApprovals  int                     `json:"min_approvals"`
	ArgumentsHash string                  `json:"arguments_hash,omitempty"`
	ResponseData  json.RawMessage         `json:"response_data,omitempty"`
	TimeoutAt     int64                   `json:"timeout_at,omitempty"`
	CreatedAt     int64                   `json:"created_at"`
}

// Send implements [Channel].
func (h *webhook) Send(ctx context.Context, m Message) (Receipt, error) {
	var settings struct {
		URL string `json:"webhook_url"`
	}
	if len(m.Request.Settings) > 0 {
		if err := json.Unmarshal(m.Request.Settings, &settings); err != nil {
			return Receipt{}, fault.Newf(fault.InvalidConfig, "settings: webhook_url is no text: %w", err)
		}
	}
	target, err := url.Parse(settings.URL)
	switch {
	case settings.URL == "":
		return Receipt{}, fault.New(fault.InvalidConfig, "webhook_url: it is empty; say where questions are sent to")
	case err != nil:
		return Receipt{}, fault.New(fault.InvalidConfig, "webhook_url: it is no address; write it like https://example.com/questions").WithCause(err)
	}
	secret, err := webhookSecret(ctx, m.Account)
	if err != nil {
		return Receipt{}, err
	}
	i := m.Interaction
	body, err := json.Marshal(webhookCall{
		Event: m.Kind, Request: i.Request, Link: m.Link, CallbackURL: m.Callback, Lines: m.Lines, Data: m.Data,
		Interaction: webhookInteraction{
			ID: i.ID, WorkflowID: i.WorkflowID, WorkflowName: i.WorkflowName, ExecutionID: i.Execution, NodeID: i.Node, Type: i.Type, Purpose: i.Purpose, Status: i.Status,
			Priority: i.Priority, Approvers: i.Approvers, MinApprovals: i.MinApprovals, ArgumentsHash: i.ArgumentsHash, ResponseData: i.Response, TimeoutAt: i.TimeoutAt, CreatedAt: i.Created,
		},
	})
	if err != nil {
		return Receipt{}, fault.Newf(fault.Internal, "message %q: %w", m.ID, err)
	}
	now := time.Now()
	stamp := strconv.FormatInt(now.Unix(), 10)
	header := http.Header{}
	header.Set("Content-Type", "application/json")
	header.Set("Idempotency-Key", m.ID)
	header.Set(headerTimestamp, stamp)
	header.Set(headerSignature, "v1="+hex.EncodeToString(signature(secret, stamp, body)))
	// A redirect is not followed: the question is for the address that was named.
	response, err := h.calls.Do(ctx, outbound.Request{Method: http.MethodPost, URL: target, Header: header, Body: body, Repeatable: true, Redirects: outbound.NoFollow, MaxResponse: 1 << 20})
	if err != nil {
		return Receipt{}, err
	}
	// What it says is not wanted; it is read so that the connection can be used again.
	_, _ = io.CopyN(io.Discard, response.Body, 64<<10)
	_ = response.Body.Close()
	if problem := response.Problem(now); problem != nil {
		return Receipt{}, problem
	}
	if response.Status >= 300 {
		return Receipt{}, fault.Newf(fault.RemoteRejected, "webhook_url: host %q redirects with status %d; name the address that it redirects to", target.Host, response.Status)
	}
	return Receipt{}, nil
}

// signature is over the time and the body, so that neither can be changed.
func signature(secret, stamp string, body []byte) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = io.WriteString(mac, stamp+".") // a hash takes everything
	_, _ = mac.Write(body)
	return mac.Sum(nil)
}

// webhookSecret opens the secret of an account.
func webhookSecret(ctx context.Context, a Account) (string, error) {
	c, err := a.Open(ctx, a.Credential, webhookCredential)
	if err != nil {
		return "", err
	}
	defer c.Release()
	var data struct {
		Secret string `json:"secret"`
	}
	if err := json.Unmarshal(c.Data, &data); err != nil || data.Secret == "" {
		return "", fault.Newf(fault.CredentialInvalid, "credential %q has no secret", a.Credential)
	}
	return data.Secret, nil
}

// webhookReply is the body of a callback.
type webhookReply struct {
	InteractionID string          `json:"interaction_id"`
	ResponseData  json.RawMessage `json:"response_data"`
	Text          string          `json:"text"`
	// Responder is a user's id or a mail address.
	Responder     string `json:"responder"`
	ArgumentsHash string `json:"arguments_hash"`
	// ID is the caller's own of this reply; the same one is taken once.
	ID string `json:"id"`
}

// webhookReaction is the answer to a callback.
type webhookReaction struct {
	Accepted      bool                    `json:"accepted"`
	Ended         bool                    `json:"ended"`
	Status        store.InteractionStatus `json:"status,omitempty"`
	InteractionID string                  `json:"interaction_id"`
	Message       string                  `json:"message,omitempty"`
}

// Receive implements [Receiver].
func (h *webhook) Receive(w http.ResponseWriter, r *http.Request, a Account, handle Handle) error {
	if r.Method != http.MethodPost {
		return fault.New(fault.Invalid, "a callback is a POST")
	}
	body, err := ReadCall(w, r, webhookMax)
	if err != nil {
		return err
	}
	mac, err := genuine(r, a, body, time.Now())
	if err != nil {
		return err
	}
	reply, err := readWebhook(body, a.Account, mac)
	if err != nil {
		return err
	}
	reaction, err := handle(r.Context(), reply)
	if err != nil {
		return err
	}
	if reaction.Err != nil {
		return reaction.Err
	}
	answer, err := json.Marshal(webhookReaction{
		Accepted: reaction.Accepted, Ended: reaction.Ended, Status: reaction.Interaction.Status, InteractionID: reply.Interaction, Message: reaction.Text,
	})
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = w.Write(append(answer, '\n'))
	return err
}

// genuine checks who calls, and returns the signature. All that is wrong with it is one and the same error: an outsider learns nothing of the account.
func genuine(r *http.Request, a Account, body []byte, now time.Time) ([]byte, error) {
	refused := fault.New(fault.Unauthorized, "the callback is not signed with the secret of this account, or its "+headerTimestamp+" is more than 5 minutes off")
	stamp, given, err := claimed(r.Header, now)
	if err != nil {
		return nil, refused.WithCause(err)
	}
	secret, err := webhookSecret(r.Context(), a)
	switch {
	case err != nil && fault.From(err).Retryable, r.Context().Err() != nil:
		return nil, err
	case err != nil:
		return nil, refused.WithCause(err)
	case !hmac.Equal(given, signature(secret, stamp, body)):
		return nil, refused
	}
	return given, nil
}

// claimed is the time and the signature that a call says it has.
func claimed(h http.Header, now time.Time) (stamp string, mac []byte, err error) {
	stamp = h.Get(headerTimestamp)
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return "", nil, err
	}
	if off := now.Unix() - seconds; off > int64(webhookSkew/time.Second) || off < -int64(webhookSkew/time.Second) {
		return "", nil, fmt.Errorf("the timestamp is %d seconds off", off)
	}
	mac, err = hex.DecodeString(strings.TrimPrefix(h.Get(headerSignature), "v1="))
	return stamp, mac, err
}

// Signed says that a call was signed with a secret a short while ago, in the way in which all that is sent and received here is.
func Signed(h http.Header, body []byte, secret string, now time.Time) bool {
	stamp, mac, err := claimed(h, now)
	return err == nil && hmac.Equal(mac, signature(secret, stamp, body))
}

// readWebhook reads a callback that is genuine.
func readWebhook(body []byte, a store.Account, mac []byte) (Reply, error) {
	var in webhookReply
	if err := json.Unmarshal(body, &in); err != nil {
		return Reply{}, fault.Newf(fault.Invalid, "the callback is no JSON object as expected: %w", err)
	}
	reply := Reply{
		Account: a, Interaction: in.InteractionID, Verified: true, ArgumentsHash: in.ArgumentsHash, Text: in.Text,
	}
	switch {
	case in.InteractionID == "":
		return Reply{}, fault.New(fault.Invalid, "interaction_id: it is missing; say which question is answered")
	case in.Responder == "":
		return Reply{}, fault.New(fault.Invalid, "responder: it is missing; say who answers, by mail address or user id")
	case isNull(in.ResponseData) && strings.TrimSpace(in.Text) == "":
		return Reply{}, fault.New(fault.Invalid, "response_data: it is missing; give response_data, or text for an answer in prose")
	}
	// Programs that know nothing of each other number their replies alike.
	if reply.Dedup = a.Credential + ":" + in.ID; in.ID == "" {
		reply.Dedup = "signature:" + hex.EncodeToString(mac)
	}
	seat, err := Media(nil).normalApprover(in.Responder) // a user or a mail address
	if err != nil {
		return Reply{}, fault.Newf(fault.Invalid, "responder: %q is neither a mail address nor a user id", in.Responder)
	}
	mail, isMail := strings.CutPrefix(seat, seatMail)
	user, isUser := strings.CutPrefix(seat, seatUser)
	switch {
	case isMail:
		reply.Mail = mail // there are no addresses of its own
	case isUser:
		reply.User = user
	case identity.Role(strings.ToLower(strings.TrimSpace(in.Responder))).Known(): // one person answers, so it is a user of that name
		reply.User = strings.TrimSpace(in.Responder)
	default:
		return Reply{}, fault.Newf(fault.Invalid, "responder: %q is neither a mail address nor a user id", in.Responder)
	}
	if !isNull(in.ResponseData) {
		reply.Answer = &Answer{}
		// Answers of other forms (those of other purposes) are taken as they are; what fits is checked against the question.
		_ = json.Unmarshal(in.ResponseData, reply.Answer)
		reply.Answer.Given = in.ResponseData
	}
	return reply, nil
}
