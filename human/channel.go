package human

import (
	"context"
	"encoding/json"
	"net/http"

	"tandem/credential"
	"tandem/fault"
	"tandem/store"
)

// Channel sends messages of one medium and understands what comes back. It is used by several goroutines at once.
type Channel interface {
	// Name is its channel_type.
	Name() string
	// Send sends a message, and returns how replies to it are recognised. It may be called again for a message that was sent,
	// if that could not be recorded. An error that is worth another try is a retryable *fault.Error.
	Send(ctx context.Context, m Message) (Receipt, error)
}

// Receiver is a [Channel] that gets requests: from buttons, bots, signed callbacks.
type Receiver interface {
	Channel
	// Receive verifies a request that came to the channel's address for an account and reads it. It checks the signature against
	// the account before it uses anything else; a request that is not genuine is a [fault.Unauthorized] error. Handle is called
	// for each reply, and says what to tell the person; the channel writes the answer that its medium wants.
	Receive(w http.ResponseWriter, r *http.Request, a Account, handle Handle) error
}

// Listener is a [Channel] that has to look for replies itself: a mailbox, long polling.
type Listener interface {
	Channel
	// Listen reads replies of an account until the context ends. It returns early only with an error, and is begun again after a pause.
	// A reply counts as handled (marked as read, its offset passed) only when handle has returned without an error.
	Listen(ctx context.Context, a Account, handle Handle) error
}

// Handle is what a channel calls with each reply that it receives. An error means that the reply could not be recorded and should
// be sent again.
type Handle func(ctx context.Context, r Reply) (Reaction, error)

// Account is what a channel acts with. Open opens a credential of the workspace, which the channel releases.
type Account struct {
	store.Account
	Open credential.Opener
	// Callback is the address at which the account receives calls; a listener that has one need not look for replies. Empty: there is none.
	Callback string
	// Receipts lists the bodies of the receipts of messages about questions that still wait for replies by this account, for a
	// [Listener] that has to look where it wrote. Nil: they are not known.
	Receipts func(ctx context.Context) ([]json.RawMessage, error)
}

// The kinds of messages.
const (
	KindRequest    = "request"
	KindReminder   = "reminder"
	KindWarning    = "warning"
	KindEscalation = "escalation"
	KindAskBack    = "ask_back"
	KindTimeout    = "timeout"
	KindCompleted  = "completed"
	KindCancelled  = "cancelled"
	// KindProof carries a code that proves that an address belongs to a person. It is not about a question and has no replies.
	KindProof = "proof"
)

// Message is one message to one recipient.
type Message struct {
	Account
	// ID stays the same when a message is sent again: it makes a Message-ID or an idempotency key.
	ID   string
	Kind string
	// To is an address of the channel; empty: where the settings of the request say.
	To string
	// For is the approver whom the message is for: user:ID and the like; empty: all who read it.
	For         string
	Interaction store.Interaction
	Request     Request
	// Link opens the response page for this recipient; empty: this instance has no public address, or the question has ended.
	Link string
	// Callback is the address at which the account receives calls; empty: there is none.
	Callback string
	// ReplyToken goes where a reply in prose will repeat it; empty when no reply is wanted.
	ReplyToken string
	// Lines are what the message says in the language of the request, besides the question itself: that it is a reminder, what
	// was answered, by whom.
	Lines []string
	// Data is what a warning or notice tells programs: interaction_id, workflow_name, minutes_remaining, timeout_at…
	Data map[string]any
	// Earlier are the receipts of the messages about the same question that were sent to the same recipient, the oldest first: to
	// answer in their thread, or to take their buttons away.
	Earlier []json.RawMessage
}

// Receipt is what is kept of a sent message.
type Receipt struct {
	// Body is for the channel itself, which gets it back in Earlier.
	Body json.RawMessage
	// Threads are what replies refer to: a Message-ID, a channel and timestamp.
	Threads []string
}

// Reply is something that a person sent back.
type Reply struct {
	store.Account
	// Interaction is the id of the question if the medium brings it back (a button's value); else one of Threads or Token tells.
	Interaction string
	Threads     []string
	Token       string
	// From is the address of the sender in the channel (a mail address, U123); Mail their mail address if the channel knows that
	// it is theirs.
	From string
	Mail string
	Name string
	// Aliases are further addresses of the sender in the channel that certainly belong to them (@name besides a number). An
	// approver may be written as any of them; a sender who is asked only by an alias votes as that alias.
	Aliases []string
	// User is the id of the user who replies, if the channel may speak for users: a callback that is signed with the secret of an
	// account. From is empty then.
	User string
	// Verified says that the sender's identity was checked: a signed click, a mail that passes authentication.
	Verified bool
	// Answer is what was chosen or filled in; nil for prose, which is Text.
	Answer *Answer
	// ArgumentsHash is what the sender was shown, if the medium brings it back.
	ArgumentsHash string
	Text          string
	// Subject is the subject of a mail.
	Subject string
	// Automatic says that no person wrote it: an out-of-office reply, a bounce, a receipt. It never answers.
	Automatic bool
	// Dedup is the medium's own id of it.
	Dedup string
	// Look only asks for the question, so that a form can be shown: nothing is recorded. The Reaction has the Interaction and
	// Request, and Err and Text if the sender may not answer (any more).
	Look bool
}

// Reaction is the result of a reply.
type Reaction struct {
	// Accepted says that it counts. Ended says that the question has ended, with it or before.
	Accepted bool
	Ended    bool
	// AskedBack says that the person is asked in a separate message what they mean, so that Text need not be shown.
	AskedBack bool
	// Text is the message for the person, in the language of the request.
	Text string
	// Err is why it does not count.
	Err         *fault.Error
	Interaction store.Interaction
	Request     Request
}
