package mail

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-smtp"

	"tandem/fault"
)

func refusing(answers map[string]error) officeOption {
	return func(o *postOffice, _ *smtp.Server) {
		o.refuse = func(to string) error { return answers[to] }
	}
}

func TestNetwork_Submit(t *testing.T) {
	t.Parallel()
	temporary, final := &smtp.SMTPError{Code: 451, Message: "later"}, &smtp.SMTPError{Code: 550, Message: "no such user"}
	office := startOffice(t, securityNone, nil, refusing(map[string]error{"later@example.com": temporary, "gone@example.com": final, "bye@example.com": &smtp.SMTPError{Code: 421, Message: "bye"}}))
	server := Server{Host: "127.0.0.1", Port: office.port, Security: securityNone, Username: "user@example.com", Password: "secret"}
	n := Network{Dial: (&net.Dialer{}).DialContext}
	for name, test := range map[string]struct {
		to      []string
		refused []string
		want    fault.Code
		retry   bool
	}{
		"Taken":        {to: []string{"ann@example.com", "bob@example.com"}},
		"SomeRefused":  {to: []string{"gone@example.com", "ann@example.com"}, refused: []string{"gone@example.com"}},
		"AllRefused":   {to: []string{"gone@example.com"}, refused: []string{"gone@example.com"}, want: fault.RemoteRejected},
		"WorthATry":    {to: []string{"gone@example.com", "later@example.com"}, refused: []string{"gone@example.com", "later@example.com"}, want: fault.RemoteError, retry: true},
		"ServerLeaves": {to: []string{"bye@example.com", "ann@example.com"}, want: fault.RemoteError, retry: true},
		"Nobody":       {want: fault.InvalidInput},
		"Injection":    {to: []string{"ann@example.com>\r\nRCPT TO:<eve@example.com"}, want: fault.InvalidInput},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused, err := n.Submit(t.Context(), server, Envelope{From: "bot@example.com", To: test.to}, []byte("Subject: x\r\n\r\n.dot\r\n"))
			var addresses []string
			for _, r := range refused {
				addresses = append(addresses, r.Address)
			}
			if err == nil && test.want != "" || err != nil && fault.CodeOf(err) != test.want || !slices.Equal(addresses, test.refused) {
				t.Fatalf("refused %v, error %v, want %v and %q", addresses, err, test.refused, test.want)
			}
			if err != nil && fault.From(err).Retryable != test.retry {
				t.Errorf("retryable is %v", !test.retry)
			}
		})
	}
	t.Cleanup(func() {
		close(office.mails)
		for m := range office.mails {
			if string(m.raw) != "Subject: x\r\n\r\n.dot\r\n" || slices.Contains(m.to, "gone@example.com") {
				t.Errorf("taken: %+v", m)
			}
		}
	})
}

func TestNetwork_Submit_LostAtTheEnd(t *testing.T) {
	t.Parallel()
	office := startOffice(t, securityNone, nil, func(o *postOffice, _ *smtp.Server) {
		o.cut = func(c *smtp.Conn) error { return c.Conn().Close() }
	})
	s := &safe{}
	s.smtp("out", office, securityNone)
	server := Server{Host: "127.0.0.1", Port: office.port, Security: securityNone}
	_, err := Network{Dial: (&net.Dialer{}).DialContext}.Submit(t.Context(), server, Envelope{From: "bot@example.com", To: []string{"ann@example.com"}}, []byte("Subject: x\r\n\r\nx\r\n"))
	if fault.CodeOf(err) != fault.OutcomeUnknown {
		t.Errorf("Submit: %v, want %s", err, fault.OutcomeUnknown)
	}
	// The channel sends again: it is the same mail.
	message := request(s.account("out"))
	message.Request.InCredential = ""
	if _, err := testChannel(t, nil).Send(t.Context(), message); fault.CodeOf(err) != fault.NetworkError || !fault.From(err).Retryable {
		t.Errorf("Send: %v, want a retryable %s", err, fault.NetworkError)
	}
}

// fakeServer says what it is told to.
func fakeServer(t *testing.T, say func(net.Conn)) Server {
	t.Helper()
	l, port := listen(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			say(conn)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		receive(t, "the end of a server", done)
	})
	return Server{Host: "127.0.0.1", Port: port, Security: securityNone, Username: "u", Password: "p"}
}

func TestNetwork_Submit_BadServers(t *testing.T) {
	t.Parallel()
	n, e := Network{Dial: (&net.Dialer{}).DialContext}, Envelope{From: "bot@example.com", To: []string{"ann@example.com"}}
	talks := fakeServer(t, func(c net.Conn) {
		// It never ends its first line.
		chunk := []byte(strings.Repeat("x", 1<<16))
		for {
			if _, err := c.Write(chunk); err != nil {
				return
			}
		}
	})
	if _, err := n.Submit(t.Context(), talks, e, nil); fault.CodeOf(err) != fault.RemoteRejected {
		t.Errorf("a server that talks without end: %v", err)
	}
	hangs := fakeServer(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	dialled := make(chan struct{})
	n.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		defer close(dialled)
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	go func() {
		_, err := n.Submit(ctx, hangs, e, nil)
		ended <- err
	}()
	receive(t, "the connection", dialled)
	cancel()
	if err := receive(t, "the end", ended); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
	closed, port := listen(t)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := Network{Dial: (&net.Dialer{}).DialContext}.Submit(t.Context(), Server{Host: "127.0.0.1", Port: port, Security: securityTLS}, e, nil)
	if fault.CodeOf(err) != fault.NetworkError || !fault.From(err).Retryable {
		t.Errorf("nobody listens: %v", err)
	}
}

func TestMailbox_BadServers(t *testing.T) {
	t.Parallel()
	// A server that answers a search with more numbers than there can be.
	server := fakeServer(t, func(c net.Conn) {
		lines := bufio.NewScanner(c)
		_, _ = io.WriteString(c, "* OK [CAPABILITY IMAP4rev1 ESEARCH] hello\r\n")
		for lines.Scan() {
			tag, command, _ := strings.Cut(lines.Text(), " ")
			switch {
			case strings.HasPrefix(command, "LOGIN"):
				_, _ = io.WriteString(c, tag+" OK [CAPABILITY IMAP4rev1 ESEARCH] in\r\n")
			case strings.HasPrefix(command, "SELECT"):
				_, _ = io.WriteString(c, "* 1 EXISTS\r\n* OK [UIDVALIDITY 1] x\r\n* OK [UIDNEXT 9] x\r\n"+tag+" OK [READ-WRITE] selected\r\n")
			case strings.HasPrefix(command, "UID SEARCH"):
				_, _ = io.WriteString(c, "* ESEARCH (TAG \""+tag+"\") UID ALL 1:4294967295\r\n"+tag+" OK found\r\n")
			case strings.HasPrefix(command, "UID FETCH"):
				_, _ = io.WriteString(c, "* 1 FETCH (UID 77 RFC822.SIZE 5 BODY[]<0> {5}\r\nother)\r\n* 1 FETCH (FLAGS ())\r\n"+tag+" OK fetched\r\n")
			default:
				return
			}
		}
	})
	box, err := Network{Dial: (&net.Dialer{}).DialContext}.OpenMailbox(t.Context(), server, "INBOX")
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	uids, err := box.Search(&imap.SearchCriteria{})
	if err != nil || len(uids) != maxFound || uids[len(uids)-1] != 4294967295 {
		t.Errorf("found %d, error %v", len(uids), err)
	}
	found, err := box.Fetch([]imap.UID{5}, 100)
	if err != nil || len(found) != 0 {
		t.Errorf("fetched %v, error %v; nothing that was asked for was sent", found, err)
	}
	box.poll = time.Millisecond
	if err := box.Wait(); fault.CodeOf(err) != fault.NetworkError {
		t.Errorf("the server is gone: %v", err)
	}
}
