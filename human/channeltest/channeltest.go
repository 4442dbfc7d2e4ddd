// Package channeltest is what stand-ins for chat services share: the calls that came, answers that tests choose, an account of the
// service and a question that is put there. Tests import it, and nothing else does.
package channeltest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tandem/credential"
	"tandem/fault"
	"tandem/human"
	"tandem/outbound"
	"tandem/payload"
	"tandem/store"
)

// Calls are the calls that came to a stand-in, in order, each with a name.
type Calls[C any] struct {
	t     testing.TB
	mu    sync.Mutex
	names []string
	calls []C
	// answers take the place of the usual answer of a call, once each.
	answers map[string][]func(http.ResponseWriter)
	// heard gets every call, after it was answered.
	heard chan named[C]
}

type named[C any] struct {
	name string
	call C
}

// New returns a list without calls.
func New[C any](t testing.TB) *Calls[C] {
	return &Calls[C]{t: t, answers: map[string][]func(http.ResponseWriter){}, heard: make(chan named[C], 1000)}
}

// Take adds a call. It returns the answer that a test has chosen for it, or nil, and a function to be called when the call was answered.
func (c *Calls[C]) Take(name string, call C) (answer func(http.ResponseWriter), answered func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names, c.calls = append(c.names, name), append(c.calls, call)
	if list := c.answers[name]; len(list) > 0 {
		answer, c.answers[name] = list[0], list[1:]
	}
	return answer, func() { c.heard <- named[C]{name, call} }
}

// Answer lets the next call of a name be answered by a function.
func (c *Calls[C]) Answer(name string, answer func(http.ResponseWriter)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers[name] = append(c.answers[name], answer)
}

// Next lets the next call of a name be answered with a status, a body, and headers as names and values in turn.
func (c *Calls[C]) Next(name string, status int, body string, header ...string) {
	c.Answer(name, func(w http.ResponseWriter) {
		for n := 0; n+1 < len(header); n += 2 {
			w.Header().Set(header[n], header[n+1])
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	})
}

// Sent are the calls of a name so far.
func (c *Calls[C]) Sent(name string) []C {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []C
	for i, n := range c.names {
		if n == name {
			list = append(list, c.calls[i])
		}
	}
	return list
}

// Wait returns the next call of a name that is answered. Calls of other names that were answered before it are passed over.
func (c *Calls[C]) Wait(name string) C {
	c.t.Helper()
	timeout := time.After(10 * time.Second)
	for {
		select {
		case heard := <-c.heard:
			if heard.name == name {
				return heard.call
			}
		case <-timeout:
			c.t.Fatalf("nobody called %q", name)
		}
	}
}

// Client is a guarded client that reaches this machine.
func Client(t testing.TB) *outbound.Client {
	t.Helper()
	allow, err := outbound.ParseAllow("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	client := outbound.New(outbound.Options{Allow: allow})
	t.Cleanup(client.Close)
	return client
}

// Account is an account of a channel with one credential, which is called cred.
func Account(channel, credentialType string, fields map[string]string) human.Account {
	a := human.Account{Account: store.Account{Workspace: "w1", Channel: channel, Credential: "cred"}}
	a.Open = func(_ context.Context, id string, types ...string) (credential.Opened, error) {
		if id != "cred" || !slices.Contains(types, credentialType) {
			return credential.Opened{}, fault.Newf(fault.NotFound, "there is no credential %q", id)
		}
		data, err := payload.Marshal(fields)
		return credential.Opened{Type: credentialType, Data: data}, err
	}
	return a
}

// Question asks for an approval in the channel of an account. Change, if there is one, changes it before it is returned.
func Question(a human.Account, settings string, change func(*human.Message)) human.Message {
	m := human.Message{
		ID: "d1", Kind: human.KindRequest,
		Interaction: store.Interaction{
			Workspace: "w1", ID: "6f2c8f0e-1111-8222-8333-444455556666", Purpose: human.PurposeNode, Status: store.InteractionPending,
			WorkflowName: "Refunds", ArgumentsHash: strings.Repeat("ab", 32),
		},
		Request: human.Request{
			Type: human.Approval, Channel: a.Channel, Title: "Refund 120 €?", Description: "Order 77 came back.", Credential: "cred",
			Language: "en", Settings: json.RawMessage(settings), Options: []human.Option{{Value: "approve"}, {Value: "reject"}},
		},
	}
	if change != nil {
		change(&m)
	}
	m.Account = a
	return m
}
