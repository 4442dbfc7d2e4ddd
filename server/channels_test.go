package server

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"tandem/fault"
	"tandem/human"
	"tandem/identity"
	"tandem/store"
)

// knocker is a channel that believes everybody who knows the word. What it is sent is the id of a question; who sends it has approved.
type knocker struct {
	// codes are those that were sent to addresses, by address. May be nil.
	codes *sync.Map
}

func (knocker) Name() string { return "knock" }

// Traits are those of a channel whose addresses are the same however they are written.
func (knocker) Traits() human.Traits { return human.Traits{Normal: strings.ToLower} }

func (k knocker) Send(_ context.Context, m human.Message) (human.Receipt, error) {
	if m.To == "wall" {
		return human.Receipt{}, fault.New(fault.RemoteRejected, "nobody is there")
	}
	if k.codes != nil && m.Kind == human.KindProof {
		k.codes.Store(m.To, m.Data["code"])
	}
	return human.Receipt{}, nil
}

func (knocker) Receive(w http.ResponseWriter, r *http.Request, a human.Account, handle human.Handle) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	if r.Header.Get("X-Word") != "sesame" {
		return fault.New(fault.Unauthorized, "that is not the word")
	}
	reaction, err := handle(r.Context(), human.Reply{
		Account: a.Account, Interaction: string(body), From: "U1", Verified: true, Answer: &human.Answer{Action: "approve"}, Dedup: "knock-" + string(body),
	})
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, map[bool]string{true: "counts", false: "does not count"}[reaction.Accepted])
	return err
}

func TestChannels(t *testing.T) {
	t.Parallel()
	w := setup(t)
	if err := w.stores.Credentials.Create(t.Context(), identity.System("a"), store.Credential{ID: "cred", Name: "bot", Type: "slack_bot", Sealed: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	request := approval("knock:U1")
	request.Channel, request.Credential = "knock", "cred"
	asked := w.asks("viewer-user", human.PurposeNode, request)
	knock := func(path, word, body string) answer {
		return w.ask("", "POST", path, strings.NewReader(body), func(r *http.Request) {
			r.Header.Set("X-Word", word)
			r.Header.Set("Origin", "https://slack.example")
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		})
	}
	var unknown []string
	for _, path := range []string{"/channels/post/a/cred", "/channels/knock/nowhere/cred", "/channels/knock/a/other", "/channels/knock/b/cred", "/channels/knock/A%2F../cred"} {
		got := knock(path, "sesame", asked.ID)
		got.problem(t, 404, fault.NotFound)
		unknown = append(unknown, got.body)
	}
	for _, body := range unknown {
		if body != unknown[0] {
			t.Errorf("a stranger can tell %s from %s", body, unknown[0])
		}
	}
	knock("/channels/knock/a/cred", "password", asked.ID).problem(t, 401, fault.Unauthorized)
	knock("/channels/knock/a/cred", "sesame", strings.Repeat("x", maxChannelBody+1)).problem(t, 413, fault.TooLarge)
	w.ask("", "POST", "/channels/knock/a/cred", struct{ io.Reader }{strings.NewReader(strings.Repeat("x", maxChannelBody+3))}, nil).problem(t, 413, fault.TooLarge)
	w.call("", "GET", "/channels/knock/a/cred", "").problem(t, 405, fault.Unsupported)
	if i := w.interaction(asked); i.Status != store.InteractionPending {
		t.Fatalf("what was refused has ended the question: %+v", i)
	}
	if got := knock("/channels/knock/a/cred", "sesame", asked.ID).want(t, 200); got.body != "counts" {
		t.Errorf("the channel said %q", got.body)
	}
	if i := w.interaction(asked); i.Status != store.InteractionCompleted {
		t.Errorf("after the reply: %+v", i)
	}
}
