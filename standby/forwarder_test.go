package standby

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestForwarder_Find does not wait for a database that does not answer, and does not ask it for each request.
func TestForwarder_Find(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		f := &forwarder{ask: func(ctx context.Context) (string, error) {
			asked++
			select {
			case <-ctx.Done():
			case <-time.After(time.Hour):
			}
			return "", ctx.Err()
		}}
		began := time.Now()
		if owner, err := f.find(t.Context()); owner != nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("found %v, %v", owner, err)
		}
		if owner, err := f.find(t.Context()); owner != nil || err != nil { // who has waited for the first
			t.Errorf("found %v, %v", owner, err)
		}
		if waited := time.Since(began); waited != findTimeout || asked != 1 { // of the test's own clock
			t.Errorf("asked %d times, after %v", asked, waited)
		}
	})
	t.Run("Again", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			answers := []string{"http://u:hunter2@10.0.0.5:port", "http://10.0.0.5:8080"}
			f := &forwarder{ask: func(ctx context.Context) (text string, err error) {
				text, answers = answers[0], answers[1:]
				return text, ctx.Err()
			}}
			if owner, err := f.find(t.Context()); owner != nil || err == nil || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("what is not a URL: %v, %v", owner, err)
			}
			time.Sleep(believed)
			left, leave := context.WithCancel(t.Context())
			leave() // who asks may leave: the answer is for all
			owner, err := f.find(left)
			if want := (url.URL{Scheme: "http", Host: "10.0.0.5:8080"}); err != nil || owner == nil || *owner != want {
				t.Errorf("found %v, %v", owner, err)
			}
		})
	})
}

// TestTransport goes straight to the owner, whatever proxies the environment names.
func TestTransport(t *testing.T) {
	t.Parallel()
	if newTransport().Proxy != nil {
		t.Error("requests may go through a proxy")
	}
}
