// Package mailbox is the seam between the trigger that mail starts and services whose mailboxes are read by an API of their own, such as
// Gmail and Microsoft Graph. A [Service] opens a [Box]; [Account] calls its API with the token that a person has authorized.
//
// It knows no service, and nothing of mails: what a message says is read by package integration/mail. Vendors bring services as parts of
// their extensions.
package mailbox

import (
	"context"
	"time"

	"tandem/credential"
)

// Service is a service whose mailboxes can be read by its API.
type Service struct {
	// Name is the email_provider by which triggers call it.
	Name string
	// Credential is the type of the credentials that it takes.
	Credential string
	// Scope is what those scopes of a credential begin with that only the API takes: a credential with such a scope is tried there.
	Scope string
	// Open makes a mailbox of a credential, for as long as that is open. It calls nobody.
	Open func(c credential.Opened) (Box, error)
}

// Box is the mailbox of an account, for a while. Errors are *fault.Error.
type Box interface {
	// Locate finds a folder by the name that people give it, INBOX for the usual one. The id is that of no folder of another account.
	Locate(ctx context.Context, folder string) (id string, err error)
	// Since is what has come to a folder since a time, and the position behind it. What comes later is news of that position.
	Since(ctx context.Context, folder string, from time.Time) (News, error)
	// News is what has come since a position. [ErrLost] if the service does not know the position any more.
	News(ctx context.Context, folder, position string) (News, error)
	// Message reads a message as it was sent. A [fault.NotFound] error: it is gone. [fault.TooLarge]: it has more than so many bytes.
	Message(ctx context.Context, id string, most int64) (Message, error)
	// MarkSeen marks a message as read.
	MarkSeen(ctx context.Context, id string) error
}

// News are messages that have come, and how far that is.
type News struct {
	// Messages are their ids, in the order in which they came. One may be told more than once.
	Messages []string
	// Position is behind them. More says that there is more behind it already.
	Position string
	More     bool
}

// Message is a message as the service has it.
type Message struct {
	// Raw is all of it, in MIME.
	Raw []byte
	// Received is when the service got it; zero: it does not say.
	Received time.Time
}
