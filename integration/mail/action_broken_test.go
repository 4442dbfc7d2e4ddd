package mail

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/emersion/go-smtp"

	"tandem/fault"
	"tandem/node"
	"tandem/node/nodetest"
)

// TestAction_BrokenServers: a server that says nothing, something else, or fails for a while, has not taken the mail. It may be sent again.
func TestAction_BrokenServers(t *testing.T) {
	t.Parallel()
	const send = `{"credential_id":"out","to":"ann@example.org","subject":"s","body_text":"b"}`
	kind := act(Network{Dial: (&net.Dialer{}).DialContext}, nil)
	run := func(ctx context.Context, s *safe) error {
		call := nodetest.NewCall(t, send, ``)
		call.Credential = s.open
		_, err := kind.Run(ctx, call)
		return err
	}
	at := func(port int) *safe {
		s := &safe{}
		s.put("out", typeSMTP, map[string]any{"host": "127.0.0.1", "port": port, "security": "none", "username": "user@example.com", "password": "secret"})
		return s
	}
	notTaken := func(name string, err error) {
		t.Helper()
		failed, ok := errors.AsType[*node.Failure](err)
		if err == nil || !ok || failed.Unknown || fault.CodeOf(err) == fault.OutcomeUnknown {
			t.Errorf("%s: %v", name, err)
		}
	}
	notTaken("Garbage", run(t.Context(), at(fakeServer(t, func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n") }).Port)))
	notTaken("Gone", run(t.Context(), at(1)))
	ctx, stop := context.WithCancel(t.Context())
	notTaken("Silent", run(ctx, at(fakeServer(t, func(c net.Conn) {
		stop() // the time of the node is over
		_, _ = c.Read(make([]byte, 1))
	}).Port)))

	refusals := 1
	office := startOffice(t, securityNone, nil, func(o *postOffice, _ *smtp.Server) {
		o.refuse = func(string) error {
			if refusals--; refusals >= 0 {
				return &smtp.SMTPError{Code: 421, Message: "try later"}
			}
			return nil
		}
	})
	if err := run(t.Context(), at(office.port)); !fault.From(err).Retryable {
		t.Errorf("a server that is away for a while: %v", err)
	}
	if err := run(t.Context(), at(office.port)); err != nil {
		t.Errorf("it is there again: %v", err)
	}
}
