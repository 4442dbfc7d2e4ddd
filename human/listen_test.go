package human

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tandem/human/listening"
	"tandem/human/watching"
	"tandem/store"
)

// hearing is a channel that is listened to.
type hearing struct {
	spy
	mu sync.Mutex
	// began are the accounts that were listened to, in order, and when; on is who is listened to now.
	began []store.Account
	at    []time.Time
	on    map[store.Account]int
	most  int
	// broken, if it is set, is how listening ends at once.
	broken error // by panic every second time
}

func (h *hearing) Listen(ctx context.Context, a Account, _ Handle) error {
	h.mu.Lock()
	h.began, h.at = append(h.began, a.Account), append(h.at, time.Now())
	h.on[a.Account]++
	h.most = max(h.most, h.on[a.Account])
	broken := h.broken
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.on[a.Account]--
	}()
	if broken != nil {
		if len(h.times())%2 == 0 {
			panic(broken)
		}
		return broken
	}
	<-ctx.Done()
	return ctx.Err()
}

func (h *hearing) listening(a store.Account) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.on[a] > 0
}

// times is when it was begun.
func (h *hearing) times() []time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.at)
}

func newHearing() *hearing {
	return &hearing{spy: spy{name: Email}, on: map[store.Account]int{}}
}

func TestEars_ListenWhileNeeded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mail := newHearing()
		c := newCounter(newShelf(), func(o *Options) { o.Channels = []Channel{mail, &spy{name: Slack}} })
		a := store.Account{Workspace: "w", Channel: Email, Credential: "box"}
		c.Start()
		defer c.Close()
		pass(time.Minute)
		if mail.listening(a) {
			t.Fatal("it listens although nobody was asked")
		}
		first := ask(t, c.shelf, "first", 0, Request{TimeoutSeconds: 86400, Channel: Email, Credential: "smtp", InCredential: "box"})
		second := ask(t, c.shelf, "second", 0, Request{TimeoutSeconds: 86400, Channel: Email, InCredential: "box"})
		ask(t, c.shelf, "chat", 0, Request{TimeoutSeconds: 86400, Channel: Slack, Credential: "bot"})
		c.Recorded("w", first.ID, second.ID)
		pass(listening.Apart)
		if !mail.listening(a) {
			t.Fatal("it does not listen although somebody was asked")
		}
		finish(t, c.shelf, first.ID, store.InteractionCompleted)
		c.Look()
		pass(2 * listening.Grace)
		if !mail.listening(a) {
			t.Error("it does not listen any more although another question is open")
		}
		finish(t, c.shelf, second.ID, store.InteractionCompleted)
		c.Look()
		pass(listening.Grace - time.Second)
		if !mail.listening(a) {
			t.Error("it stops at once")
		}
		third := ask(t, c.shelf, "third", 0, Request{TimeoutSeconds: 86400, Channel: Email, InCredential: "box"})
		c.Look()
		pass(2 * listening.Grace)
		if !mail.listening(a) || len(mail.times()) != 1 {
			t.Errorf("a question in time does not keep it; it began %d times", len(mail.times()))
		}
		finish(t, c.shelf, third.ID, store.InteractionCompleted)
		c.Look()
		pass(listening.Apart + listening.Grace/2)
		if !mail.listening(a) {
			t.Error("what was idle before counts again")
		}
		pass(listening.Apart + listening.Grace/2)
		if mail.listening(a) {
			t.Error("it listens although no question is open")
		}
		mail.mu.Lock()
		defer mail.mu.Unlock()
		if got := []store.Account{a}; !slices.Equal(mail.began, got) || mail.most != 1 {
			t.Errorf("it listened to %v, %d at once", mail.began, mail.most)
		}
	})
}

// An account that triggers share is listened to without any question, and once where there is one, too.
func TestEars_SharedWithTriggers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mail := newHearing()
		a := store.Account{Workspace: "w", Channel: Email, Credential: "box"}
		shared, broken := []store.Account{a, a}, error(nil)
		c := newCounter(newShelf(), func(o *Options) {
			o.Channels = []Channel{mail}
			o.Listened = func(context.Context) ([]store.Account, error) { return shared, broken }
		})
		c.Start()
		defer c.Close()
		pass(time.Second)
		if !mail.listening(a) {
			t.Fatal("it does not listen although a trigger shares the account")
		}
		asked := ask(t, c.shelf, "first", 0, Request{TimeoutSeconds: 86400, Channel: Email, InCredential: "box"})
		c.Recorded("w", asked.ID)
		pass(listening.Apart)
		shared, broken = nil, errors.New("the disk is broken") // then what is listened to stays
		c.Look()
		pass(3 * listening.Grace)
		finish(t, c.shelf, asked.ID, store.InteractionCompleted)
		pass(3 * listening.Grace)
		if !mail.listening(a) {
			t.Error("it stops although nobody knows what triggers need")
		}
		broken = nil
		c.Look()
		pass(3 * listening.Grace)
		if mail.listening(a) || mail.most != 1 || len(mail.times()) != 1 {
			t.Errorf("it listens %v, %d at once, began %d times", mail.listening(a), mail.most, len(mail.times()))
		}
	})
}

func TestEars_BeginAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mail := newHearing()
		mail.broken = errors.New("the connection was closed")
		c := newCounter(newShelf(), func(o *Options) { o.Channels = []Channel{mail} })
		ask(t, c.shelf, "a", 0, Request{TimeoutSeconds: 86400, Channel: Email, InCredential: "box"})
		c.Start()
		defer c.Close()
		start := time.Now()
		pass(100 * time.Second)
		var at []time.Duration
		for _, one := range mail.times() {
			at = append(at, one.Sub(start))
		}
		s := time.Second
		if want := []time.Duration{0, s, 3 * s, 7 * s, 15 * s, 31 * s, 63 * s}; !slices.Equal(at, want) {
			t.Errorf("it was begun at %v, want %v", at, want)
		}
		pass(12 * time.Hour)
		if n := len(mail.times()); n > 7+12*60/5+5 || n < 7+12*60/5-5 {
			t.Errorf("it was begun %d times in twelve hours, want one per five minutes", n)
		}
	})
}

func TestEars_WithoutListeners(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCounter(newShelf(), nil)
		asked := 0
		c.shelf.fail = func(method string) error {
			if method == "Accounts" {
				asked++
			}
			return nil
		}
		ask(t, c.shelf, "a", 0, Request{TimeoutSeconds: 86400, Channel: Email, InCredential: "box"})
		c.Start()
		pass(time.Hour)
		c.Look()
		pass(time.Hour)
		c.Close()
		if asked != 0 {
			t.Errorf("accounts were asked for %d times although nothing listens", asked)
		}
	})
}

func TestWatch(t *testing.T) {
	t.Parallel()
	t.Run("TellsItsWorkspace", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			c := newCounter(newShelf(), nil)
			c.Start()
			defer c.Close()
			mine, missed, stop := c.Watch("w")
			others, _, stopOthers := c.Watch("v")
			i := ask(t, c.shelf, "a", 0, Request{TimeoutSeconds: 600})
			c.Recorded("w", i.ID)
			synctest.Wait()
			if e := <-mine; e.Interaction.ID != i.ID || e.Interaction.Status != store.InteractionPending {
				t.Errorf("told %+v", e)
			}
			c.shelf.withdraw("w", i.ID, time.Now().UnixMilli())
			c.Recorded("w", i.ID)
			synctest.Wait()
			if e := <-mine; e.Interaction.Status != store.InteractionCancelled {
				t.Errorf("told %+v", e)
			}
			if missed() {
				t.Error("nothing was missed")
			}
			stop()
			stop()
			stopOthers()
			if _, ok := <-mine; ok {
				t.Error("events after stop")
			}
			if e, ok := <-others; ok {
				t.Errorf("another workspace is told %+v", e)
			}
		})
	})
	t.Run("TellsWhoIsSlow", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			c := newCounter(newShelf(), nil)
			c.Start()
			defer c.Close()
			events, missed, stop := c.Watch("w")
			defer stop()
			for n := range watching.Buffer + 5 {
				i := ask(t, c.shelf, fmt.Sprint("a", n), 0, Request{TimeoutSeconds: 600})
				c.Recorded("w", i.ID)
				synctest.Wait()
			}
			for range watching.Buffer {
				<-events
			}
			if !missed() || missed() {
				t.Error("a slow reader is told once that it has missed something")
			}
		})
	})
	t.Run("TellsWhatCannotBeRead", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			c := newCounter(newShelf(), nil)
			c.Start()
			defer c.Close()
			events, missed, stop := c.Watch("w")
			defer stop()
			c.Recorded("w", "nothing")
			if e := <-events; e.Interaction.ID != "" || !missed() {
				t.Errorf("told %+v", e)
			}
			c.Recorded("w", make([]string, watching.Queue+1)...)
			if e := <-events; e.Interaction.ID != "" || !missed() {
				t.Errorf("told %+v when there was too much", e)
			}
		})
	})
	t.Run("EndsWithTheDesk", func(t *testing.T) {
		t.Parallel()
		c := newCounter(newShelf(), nil)
		c.Start()
		events, _, stop := c.Watch("w")
		c.Close()
		if _, ok := <-events; ok {
			t.Error("events after the end")
		}
		stop()
		late, _, stop := c.Watch("w")
		if _, ok := <-late; ok {
			t.Error("events of a desk that is closed")
		}
		stop()
	})
}
