package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"tandem/api"
	"tandem/builtin/values"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/identity"
	"tandem/outbound"
	"tandem/route"
	"tandem/store"
	"tandem/story"
)

// A wait that a call ends has an address like that of a call back. It is shown to people who may send signals, who can pass it
// on.

const (
	// waitSignal marks the token of such an address.
	waitSignal = "wait"
	// cancelSignal is the signal that wakes a wait; what it brings says whether it was called or cancelled.
	cancelSignal = "cancel"
	// signingType is the type of the credentials that calls are signed with.
	signingType = "webhook_secret"
)

// waitAddress is the address of a call that ends the wait of an activation.
func (s *Server) waitAddress(ref host.Ref, id engine.ActivationID, generation uint32) (string, error) {
	return CallbackURL(s.o.PublicURL, s.o.Keyring, Callback{Workspace: ref.Workspace, Execution: ref.Execution, Activation: id,
		Generation: generation, Signal: waitSignal})
}

// endWait hands a call to the wait whose address it came to. When it returns without an error the call is on disk. A call that
// does not fit does not end the wait.
func (s *Server) endWait(w http.ResponseWriter, r *http.Request, c Callback) error {
	ctx := r.Context()
	caller, err := s.callerOf(r, c)
	if err != nil {
		return err
	}
	reading, err := s.stories.ReadExecution(ctx, identity.System(c.Workspace), c.Execution)
	if errors.Is(err, store.ErrNotFound) {
		return callbackGone()
	}
	if err != nil {
		return err
	}
	if err := awaits(ctx, reading, c, s.o.Now()); err != nil {
		return err
	}
	call, ok := story.AwaitedCall(reading.Graph, reading.View.Open[c.Activation])
	switch {
	case !ok, call.ExpiresAt > 0 && s.o.Now().UnixMilli() >= call.ExpiresAt:
		return callbackGone()
	case r.Method != call.Method:
		return wrongMethod(call.Method)
	case call.AuthenticationRequired && call.SignedWith == "" && caller.User == "":
		_, err := s.Admit(r, route.Operators()...)
		return err
	}
	body, err := s.ReadBody(w, r, route.MaxKeys)
	if err != nil {
		return err
	}
	if call.AuthenticationRequired && call.SignedWith != "" {
		if err := s.signed(r, c.Workspace, call.SignedWith, body); err != nil {
			return err
		}
	}
	value, err := callbackValue(r, body)
	if err != nil {
		return err
	}
	if !brings(value, call.ExpectedPayload) {
		return api.WrongField("body", "the call does not bring what the wait expects, and the wait goes on; send the fields and values of its expected_payload")
	}
	signal, err := json.Marshal(map[string]api.WaitBrought{api.WaitCalled: {Generation: c.Generation, Body: value}})
	if err != nil {
		return fault.Newf(fault.Internal, "what a call has brought cannot be written: %w", err)
	}
	by := caller.User
	if by == "" {
		by = "webhook"
	}
	means := caller.Means
	if caller.User == "" {
		means = identity.Means{Kind: identity.ByCallback}
	}
	audited := store.Audited(ctx, store.AuditEntry{
		Workspace: c.Workspace, User: caller.User, Means: means, Action: "execution.callback", Object: "execution", ObjectID: c.Execution,
		Detail: store.AuditDetail(map[string]string{"activation_id": string(c.Activation)}),
	})
	_, err = s.o.Host.Act(audited, caller, host.Request{
		Execution: c.Execution, Action: host.ActionSignal, Node: host.NodeOf(reading.Graph, c.Activation), Activation: c.Activation,
		Signal: cancelSignal, Value: signal,
		Dedup: fmt.Sprintf("wait:%d:%s", c.Generation, c.Activation), Single: true, By: by,
	})
	if fault.CodeOf(err) == fault.Conflict {
		return callbackTwice()
	}
	return err
}

// callerOf returns on whose behalf a call is made: the user whose token it carries, if that user may send signals, else an
// anonymous caller. For a user of another workspace the address does not exist, even if the wait has ended.
func (s *Server) callerOf(r *http.Request, c Callback) (identity.Principal, error) {
	nobody := identity.System(c.Workspace)
	nobody.User = ""
	if route.Authorization(r) == "" {
		return nobody, nil
	}
	p, err := s.Admit(r, route.Operators()...)
	switch {
	case p.Workspace != "" && p.Workspace != c.Workspace:
		return p, callbackUnknown()
	case err != nil:
		return nobody, nil // the wait may want no token
	}
	return p, nil
}

// signed returns an error when a call does not prove that its sender has the secret.
func (s *Server) signed(r *http.Request, workspace, id string, body []byte) error {
	ctx := r.Context()
	secret, err := s.secretOf(r, workspace, id)
	if err != nil {
		return err
	}
	if claim, err := outbound.ReadClaim(r.Header, s.o.Now()); err == nil && secret != "" && claim.Fits(secret, body) {
		return nil
	}
	if err := s.Calls.Failed(s.AddressOf(ctx), identity.HashSecret(r.Header.Get("X-Tandem-Signature"))); err != nil {
		return err
	}
	return fault.New(fault.Unauthorized, "the call is not signed with the secret that the wait names, or its X-Tandem-Timestamp is more than 5 minutes off")
}

// secretOf opens the secret that calls are signed with; empty: it is gone.
func (s *Server) secretOf(r *http.Request, workspace, id string) (string, error) {
	if s.o.Credentials == nil {
		return "", nil
	}
	opened, err := s.o.Credentials(identity.System(workspace))(r.Context(), id, signingType)
	switch code := fault.CodeOf(err); {
	case code == fault.CredentialMissing || code == fault.CredentialInvalid:
		return "", nil
	case err != nil:
		return "", err
	}
	defer opened.Release()
	var data struct {
		Secret string `json:"secret"`
	}
	if json.Unmarshal(opened.Data, &data) != nil {
		return "", nil
	}
	return data.Secret, nil
}

// brings says whether a call has the expected fields.
func brings(value, expected json.RawMessage) bool {
	text := string(value)
	if read, ok := values.Scalar(value); ok {
		text = read
	}
	return values.Expects(expected, strings.TrimSpace(text), value)
}
