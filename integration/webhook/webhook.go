// Package webhook asks programs and tells them what happened. Questions go out as signed calls to an address of theirs, and answers come
// back as calls that are signed with the same secret. A caller that has the secret answers in the name of the person whom the callback
// names, who must be one of the approvers.
//
// The kind EXTERNAL_ACTION.WEBHOOK sends an event by the rules of Standard Webhooks, which receivers in many languages can check. It needs
// no library: the rules are three headers and one HMAC, over the guarded client.
//
// Only the wiring of an instance imports it.
package webhook

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tandem/builtin/notice"
	"tandem/credential"
	"tandem/fault"
	"tandem/human"
	"tandem/node"
	"tandem/outbound"
	"tandem/payload"
	"tandem/plug"
	"tandem/store"
	"tandem/text"
	"tandem/workflow"
)

const (
	// maxBody is how many bytes a callback may have; a form may hold a file.
	maxBody = 16 << 20
	// credentialType is the type of the credential that signs.
	credentialType = "webhook_secret"
)

// Caller makes guarded calls; *outbound.Client is one.
type Caller interface {
	Do(ctx context.Context, r outbound.Request) (*outbound.Response, error)
}

// Name is the channel_type of questions that are put to programs.
const Name = "webhook"

// Extension is what this package brings.
func Extension(d plug.Deps) plug.Extension {
	sends := send(d.HTTP)
	return plug.Extension{Name: Name, Credentials: []credential.Type{secretCredential()}, Channels: []human.Channel{New(d.HTTP)},
		Kinds: []node.Kind{sends}, Notices: []notice.Way{notices(sends.About.Name)}}
}

// notices are delivered as calls, which may be repeated: programs know a delivery by its id.
func notices(kind string) notice.Way {
	return notice.Way{Name: Name, Kind: kind, Effect: workflow.Idempotent, ID: "delivery_id", Configure: func(n notice.Notice) map[string]any {
		n.Content["title"], n.Content["message"] = n.Title, n.Message
		return map[string]any{"credential_id": n.Credential, "url": n.To, "event": "notification", "payload": n.Content}
	}}
}

// New makes the channel.
func New(calls Caller) *Channel { return &Channel{calls} }

// Channel asks programs.
type Channel struct{ calls Caller }

// Name implements [human.Channel].
func (h *Channel) Name() string { return Name }

// Traits implements [human.Particular].
func (h *Channel) Traits() human.Traits {
	return human.Traits{Credentials: []string{credentialType}, TakesURL: true, NeedsURL: true, SpeaksForOthers: true,
		Place: func(settings json.RawMessage) human.Place {
			var s struct {
				URL string `json:"webhook_url"`
			}
			_ = json.Unmarshal(settings, &s) // settings of another form name no place
			return human.Place{Named: s.URL != "", Private: true}
		}}
}

// secretCredential is the type of the credentials that calls are signed with.
func secretCredential() credential.Type {
	return credential.Type{Name: credentialType, Label: text.Beside("Webhook secret", "Webhook 密钥"), Fields: []credential.Field{
		credential.Secret("secret", "Secret", "密钥").Needed().ChosenByPeople(),
		credential.Text("header", "Header name", "请求头名"), credential.Text("parameter", "Parameter name", "参数名"),
	}, Untried: text.Beside("it is a secret that two programs share; there is no service to show it to", "这是两个程序共享的密钥，没有可供验证的服务")}
}

// callBody is the body of a call.
type callBody struct {
	// Event is the kind of the message.
	Event string `json:"event"`
	// For is whom the message is for, as approvers are written: user:ID.
	For         string          `json:"for,omitempty"`
	Interaction interactionBody `json:"interaction"`
	Request     json.RawMessage `json:"request"`
	Link        string          `json:"link,omitempty"`
	CallbackURL string          `json:"callback_url,omitempty"`
	Lines       []string        `json:"lines,omitempty"`
	Data        map[string]any  `json:"data"`
}

// interactionBody is what a program learns of the record.
type interactionBody struct {
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

// Send implements [human.Channel].
func (h *Channel) Send(ctx context.Context, m human.Message) (human.Receipt, error) {
	var settings struct {
		URL string `json:"webhook_url"`
	}
	if len(m.Request.Settings) > 0 {
		if err := json.Unmarshal(m.Request.Settings, &settings); err != nil {
			return human.Receipt{}, fault.Newf(fault.InvalidConfig, "settings: webhook_url is not text: %w", err)
		}
	}
	target, err := url.Parse(settings.URL)
	switch {
	case settings.URL == "":
		return human.Receipt{}, fault.New(fault.InvalidConfig, "webhook_url: it is empty; say where questions are sent to")
	case err != nil:
		return human.Receipt{}, fault.New(fault.InvalidConfig, "webhook_url: it is not an address; write it like https://example.com/questions").WithCause(err)
	}
	secret, err := openSecret(ctx, m.Account)
	if err != nil {
		return human.Receipt{}, err
	}
	i := m.Interaction
	body, err := payload.Marshal(callBody{
		Event: m.Kind, For: m.For, Request: i.Request, Link: m.Link, CallbackURL: m.Callback, Lines: m.Lines, Data: m.Data,
		Interaction: interactionBody{
			ID: i.ID, WorkflowID: i.WorkflowID, WorkflowName: i.WorkflowName, ExecutionID: i.Execution, NodeID: i.Node, Type: i.Type,
			Purpose: i.Purpose, Status: i.Status,
			Priority: i.Priority, Approvers: i.Approvers, MinApprovals: i.MinApprovals, ArgumentsHash: i.ArgumentsHash,
			ResponseData: i.Response, TimeoutAt: i.TimeoutAt, CreatedAt: i.Created,
		},
	})
	if err != nil {
		return human.Receipt{}, fault.Newf(fault.Internal, "message %q: %w", m.ID, err)
	}
	now := time.Now()
	header := http.Header{}
	header.Set("Content-Type", "application/json")
	header.Set("Idempotency-Key", m.ID)
	outbound.Sign(header, secret, now, body)
	// A redirect is not followed: the question is for the address that was named.
	response, err := h.calls.Do(ctx, outbound.Request{Method: http.MethodPost, URL: target, Header: header, Body: body, Repeatable: true,
		Redirects: outbound.NoFollow, MaxResponse: 1 << 20})
	if err != nil {
		return human.Receipt{}, err
	}
	// What it says is not wanted; it is read so that the connection can be used again.
	_, _ = io.CopyN(io.Discard, response.Body, 64<<10)
	_ = response.Body.Close()
	if problem := response.Problem(now); problem != nil {
		return human.Receipt{}, problem
	}
	return human.Receipt{}, redirected(response, "webhook_url")
}

// redirected is an error if an answer leads elsewhere, which is not followed. Field names the address in the configuration.
func redirected(response *outbound.Response, field string) error {
	if response.Status < 300 {
		return nil
	}
	return fault.Newf(fault.RemoteRejected, "%s: host %q redirects with status %d; name the address that it redirects to", field, response.URL.Host, response.Status)
}

// openSecret opens the secret of an account.
func openSecret(ctx context.Context, a human.Account) (string, error) {
	c, err := a.Open(ctx, a.Credential, credentialType)
	if err != nil {
		return "", err
	}
	defer c.Release()
	return secretOf(a.Credential, c)
}

// secretOf reads the secret of a credential.
func secretOf(id string, c credential.Opened) (string, error) {
	var data struct {
		Secret string `json:"secret"`
	}
	if err := json.Unmarshal(c.Data, &data); err != nil || data.Secret == "" {
		return "", fault.Newf(fault.CredentialInvalid, "credential %q has no secret", id)
	}
	return data.Secret, nil
}

// replyBody is the body of a callback.
type replyBody struct {
	InteractionID string          `json:"interaction_id"`
	ResponseData  json.RawMessage `json:"response_data"`
	Text          string          `json:"text"`
	// Responder is a user's id or a mail address.
	Responder     string `json:"responder"`
	ArgumentsHash string `json:"arguments_hash"`
	// ID is the caller's own of this reply; the same one is taken once.
	ID string `json:"id"`
}

// reactionBody is the answer to a callback.
type reactionBody struct {
	Accepted      bool                    `json:"accepted"`
	Ended         bool                    `json:"ended"`
	Status        store.InteractionStatus `json:"status,omitempty"`
	InteractionID string                  `json:"interaction_id"`
	Message       string                  `json:"message,omitempty"`
}

// Receive implements [human.Receiver].
func (h *Channel) Receive(w http.ResponseWriter, r *http.Request, a human.Account, handle human.Handle) error {
	if r.Method != http.MethodPost {
		return fault.New(fault.Invalid, "a callback is a POST")
	}
	body, err := human.ReadCall(w, r, maxBody)
	if err != nil {
		return err
	}
	mac, err := genuine(r, a, body, time.Now())
	if err != nil {
		return err
	}
	reply, err := readReply(body, a.Account, mac)
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
	answer, err := payload.Marshal(reactionBody{
		Accepted: reaction.Accepted, Ended: reaction.Ended, Status: reaction.Interaction.Status,
		InteractionID: reply.Interaction, Message: reaction.Text,
	})
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = w.Write(append(answer, '\n'))
	return err
}

// genuine checks who calls, and returns the signature. All that is wrong with it is one and the same error: an outsider learns nothing of
// the account.
func genuine(r *http.Request, a human.Account, body []byte, now time.Time) ([]byte, error) {
	refused := fault.New(fault.Unauthorized, "the callback is not signed with the secret of this account, or its "+outbound.HeaderTimestamp+" is more than 5 minutes off")
	claim, err := outbound.ReadClaim(r.Header, now)
	if err != nil {
		return nil, refused.WithCause(err)
	}
	secret, err := openSecret(r.Context(), a)
	switch {
	case err != nil && fault.From(err).Retryable, r.Context().Err() != nil:
		return nil, err
	case err != nil:
		return nil, refused.WithCause(err)
	case !claim.Fits(secret, body):
		return nil, refused
	}
	return claim.MAC, nil
}

// readReply reads a callback that is genuine.
func readReply(body []byte, a store.Account, mac []byte) (human.Reply, error) {
	var in replyBody
	if err := json.Unmarshal(body, &in); err != nil {
		return human.Reply{}, fault.Newf(fault.Invalid, "the callback is not a JSON object as expected: %w", err)
	}
	reply := human.Reply{
		Account: a, Interaction: in.InteractionID, Verified: true, ArgumentsHash: in.ArgumentsHash, Text: in.Text,
	}
	switch {
	case in.InteractionID == "":
		return human.Reply{}, fault.New(fault.Invalid, "interaction_id: it is missing; say which question is answered")
	case in.Responder == "":
		return human.Reply{}, fault.New(fault.Invalid, "responder: it is missing; say who answers, by mail address or user id")
	case payload.IsNull(in.ResponseData) && strings.TrimSpace(in.Text) == "":
		return human.Reply{}, fault.New(fault.Invalid, "response_data: it is missing; give response_data, or text for an answer in prose")
	}
	// Programs that know nothing of each other number their replies alike.
	if reply.Dedup = a.Credential + ":" + in.ID; in.ID == "" {
		reply.Dedup = "signature:" + hex.EncodeToString(mac)
	}
	var err error
	if reply.User, reply.Mail, err = human.NamedPerson(in.Responder); err != nil { // there are no addresses of its own
		return human.Reply{}, fault.Newf(fault.Invalid, "responder: %w", err)
	}
	if !payload.IsNull(in.ResponseData) {
		reply.Answer = &human.Answer{}
		// Answers of other forms (those of other purposes) are taken as they are; what fits is checked against the question.
		_ = json.Unmarshal(in.ResponseData, reply.Answer)
		reply.Answer.Given = in.ResponseData
	}
	return reply, nil
}
