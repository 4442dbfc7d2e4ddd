package api

import "encoding/json"

// WaitDetail is the name under which the details of an activation say what call ends its wait. WaitCalled is the name under which the
// signal that wakes it carries the payload of the call.
const (
	WaitDetail = "webhook"
	WaitCalled = "webhook"
)

// WaitedCall is the call that ends a wait. It stands in the details of the activation while that waits, and is what calls are checked
// against.
type WaitedCall struct {
	Method                 string          `json:"method"`
	ExpectedPayload        json.RawMessage `json:"expected_payload,omitempty"`
	AuthenticationRequired bool            `json:"authentication_required"`
	// SignedWith is the id of the credential whose secret the call is signed with; empty: it comes with a token of a user.
	SignedWith string `json:"signed_with,omitempty"`
	// ExpiresAt is the time after which calls are refused, shortly before the wait is over, in Unix milliseconds; absent: never.
	ExpiresAt int64 `json:"expires_at,omitempty"`
}

// WaitBrought is the payload of the signal that a call sends.
type WaitBrought struct {
	// Generation is that of the activation which the address was for.
	Generation uint32          `json:"generation"`
	Body       json.RawMessage `json:"body"`
}
