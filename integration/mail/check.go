package mail

import (
	"context"
	"fmt"

	"tandem/credential"
)

// checkSMTP logs in to the server that mail goes out by, and sends nothing.
func (n Network) checkSMTP(ctx context.Context, c credential.Opened, _ credential.Outside) (string, error) {
	server, _, err := smtpProtocol().server(c.ID, c)
	if err != nil {
		return "", err
	}
	client, closed, err := n.session(ctx, server)
	if err != nil {
		return "", err
	}
	defer closed()
	_ = client.Quit() // it has let us in, whatever it says to the end
	if server.Username == "" {
		return fmt.Sprintf("the mail server %s takes mail without a login", server.Host), nil
	}
	return fmt.Sprintf("logged in to the mail server %s as %s", server.Host, server.Username), nil
}

// checkIMAP logs in to the server that mail is read from and opens the mailbox; nothing in it is marked. An account that a person has
// authorized is tried the same way, once more with a new token if the one that it has is refused.
func (n Network) checkIMAP(ctx context.Context, c credential.Opened, _ credential.Outside) (string, error) {
	server, _, err := imapProtocol().server(c.ID, c)
	if err != nil {
		return "", err
	}
	err = loggedIn(ctx, c.ID, c, &server, func() error {
		box, err := n.OpenMailbox(ctx, server, "INBOX")
		if err == nil {
			box.Close()
		}
		return err
	})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("logged in to the mail server %s as %s", server.Host, server.Username), nil
}
