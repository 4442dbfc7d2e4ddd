package route

import (
	"fmt"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestAddressLimiter_IsBounded(t *testing.T) {
	t.Parallel()
	l := NewAddressLimiter(100, time.Second, 10)
	now := time.Now()
	for n := range 1000 {
		if !l.Allow(fmt.Sprint(n), now) {
			t.Fatalf("address %d was refused the first time", n)
		}
	}
	if len(l.known.known) != 100 || l.known.order.Len() != 100 {
		t.Errorf("%d addresses are known, %d in order", len(l.known.known), l.known.order.Len())
	}
}

func TestClientAddress(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ remote, forwarded, proxies, want string }{
		"Direct":      {"192.0.2.7:1", "", "", "192.0.2.7"},
		"Forged":      {"192.0.2.7:1", "198.51.100.1", "127.0.0.0/8", "192.0.2.7"},
		"ForgedLocal": {"127.0.0.1:1", "198.51.100.1", "", "127.0.0.1"},
		"Proxied":     {"127.0.0.1:1", "198.51.100.1, 192.0.2.9", "127.0.0.0/8", "192.0.2.9"},
		"TwoProxies":  {"127.0.0.1:1", "198.51.100.1, 192.0.2.9, 10.1.2.3", "127.0.0.0/8 10.0.0.0/8", "192.0.2.9"},
		"OnlyProxies": {"127.0.0.1:1", "10.1.2.4, 10.1.2.3", "127.0.0.0/8 10.0.0.0/8", "10.1.2.4"},
		"Network":     {"[2001:db8:1:2:3::4]:1", "", "", "2001:db8:1:2::/64"},
		"Mapped":      {"[::ffff:192.0.2.7]:1", "", "", "192.0.2.7"},
		"Nonsense":    {"127.0.0.1:1", "who knows", "127.0.0.0/8", "127.0.0.1"},
		"NoAddress":   {"@", "", "", "@"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest("POST", "/", nil)
			r.RemoteAddr = c.remote
			if c.forwarded != "" {
				r.Header.Set("X-Forwarded-For", c.forwarded)
			}
			var proxies []netip.Prefix
			for _, text := range strings.Fields(c.proxies) {
				proxies = append(proxies, netip.MustParsePrefix(text))
			}
			if got := clientAddress(r, proxies); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
