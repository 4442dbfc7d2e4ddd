package human

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"tandem/credential"
	"tandem/fault"
	"tandem/store"
	"tandem/text"
)

// MaxCall is how large a request of a service may be by default.
const MaxCall = 1 << 20

// ReadCall reads what a service sends to a channel's address. It must not be trusted before the channel has verified it.
func ReadCall(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, fault.Newf(fault.TooLarge, "the request has more than %d bytes", most)
	}
	if err != nil {
		return nil, fault.New(fault.Invalid, "the request cannot be read to its end").WithCause(err)
	}
	return body, nil
}

// Opened is the account of a credential that is open already, for a check of it. The caller that has opened the credential releases it.
func Opened(c credential.Opened) Account {
	_ = c.Keep()
	return Account{Account: store.Account{Credential: c.ID},
		Open: func(context.Context, string, ...string) (credential.Opened, error) { return c, nil }}
}

// Ends says whether the message reports the end of a question, or is about none: there is nothing in it to answer.
func (m Message) Ends() bool { return !wantsAnswer(m.Kind) }

// Headline is the question in one line.
func (m Message) Headline() string {
	r := m.Request
	first, _, _ := strings.Cut(strings.TrimSpace(r.Description), "\n")
	return strings.Join(strings.Fields(cmp.Or(strings.TrimSpace(r.Title), first, text.Of("A question needs you").In(r.Language))), " ")
}
