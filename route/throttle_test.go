package route

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tandem/identity"
)

// Guesses that come at the same moment are not more than others, and what is remembered is bounded.
func TestThrottle_Bounds(t *testing.T) {
	t.Parallel()
	now := time.Now()
	th := newThrottle(func() time.Time { return now })
	ctx := t.Context()
	look := func(address string, secret string, right bool) error {
		leave, err := th.Enter(ctx, address, identity.HashSecret(secret))
		if err == nil {
			leave(right, true)
		}
		return err
	}
	var all sync.WaitGroup
	var let, refused atomic.Int32
	for n := range 10 * WrongSecrets {
		all.Go(func() {
			if look("a", strconv.Itoa(n), false) == nil {
				let.Add(1)
			}
		})
		// A whole office that comes at once, each for the first time, is not a guesser.
		all.Go(func() {
			if look("b", "right"+strconv.Itoa(n), true) != nil {
				refused.Add(1)
			}
		})
	}
	all.Wait()
	if n := let.Load(); n < WrongSecrets || n >= WrongSecrets+lookedUpAtOnce {
		t.Errorf("%d guesses at once were looked up", n)
	}
	if n := refused.Load(); n != 0 {
		t.Errorf("%d of those with right tokens were refused", n)
	}
	// Who leaves while waiting for a turn waits no longer.
	var leaves []func(bool, bool)
	for n := range lookedUpAtOnce {
		leave, err := th.Enter(ctx, "w", identity.HashSecret("w"+strconv.Itoa(n)))
		if err != nil {
			t.Fatal(err)
		}
		leaves = append(leaves, leave)
	}
	gone, stop := context.WithCancel(ctx)
	stop()
	if _, err := th.Enter(gone, "w", identity.HashSecret("late")); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting ends with %v", err)
	}
	for _, leave := range leaves {
		leave(false, true)
	}
	for n := range 2 * wrongAddresses {
		leave, err := th.Enter(ctx, "x"+strconv.Itoa(n), identity.HashSecret(strconv.Itoa(n)))
		if err != nil {
			t.Fatal(err)
		}
		leave(n%2 == 0, true)
	}
	if len(th.addresses.known) != wrongAddresses || len(th.good.known) > goodSecrets {
		t.Errorf("%d addresses and %d secrets are remembered", len(th.addresses.known), len(th.good.known))
	}
	// A store that cannot be asked says nothing about a secret.
	for range 3 * WrongSecrets {
		leave, err := th.Enter(ctx, "c", identity.HashSecret("unknown"))
		if err != nil {
			t.Fatal(err)
		}
		leave(false, false)
	}
	a := th.attempts("d")
	for n := range 100 * WrongSecrets {
		a.fail(identity.HashSecret(strconv.Itoa(n)), now)
	}
	if len(a.wrong) > 2*WrongSecrets {
		t.Errorf("%d failures of one address are remembered", len(a.wrong))
	}
}

func TestParseProxies(t *testing.T) {
	t.Parallel()
	got, err := ParseProxies(" 127.0.0.1, 10.1.2.3/8 ,::1,,::ffff:192.0.2.1")
	if fmt.Sprint(got) != "[127.0.0.1/32 10.0.0.0/8 ::1/128 192.0.2.1/32]" || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"proxy.example", "10.0.0.0/40", "127.0.0.1:80"} {
		if _, err := ParseProxies(text); err == nil || !strings.Contains(err.Error(), "10.0.0.0/8") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
