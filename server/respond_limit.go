package server

import (
	queue "container/list"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// clientAddress is where a request comes from. A proxy on the same machine says so in the last address it has written down;
// whoever else writes one down is not believed. Of IPv6 it is the network, since everybody has a whole one.
func clientAddress(r *http.Request) string {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	address := from.Addr().Unmap()
	if address.IsLoopback() {
		forwarded := r.Header.Values("X-Forwarded-For")
		if len(forwarded) > 0 {
			all := forwarded[len(forwarded)-1]
			if last, err := netip.ParseAddr(strings.TrimSpace(all[strings.LastIndexByte(all, ',')+1:])); err == nil {
				address = last.Unmap()
			}
		}
	}
	if address.Is6() {
		if network, err := address.Prefix(64); err == nil {
			return network.String()
		}
	}
	return address.String()
}

// addressLimiter limits by address. It remembers a bounded number of them, those that came last.
type addressLimiter struct {
	size int

	mu    sync.Mutex
	known map[string]*queue.Element
	order *queue.List // of *limited, the last used first
}

type limited struct {
	address string
	*rate.Limiter
}

func newAddressLimiter(size int) *addressLimiter {
	return &addressLimiter{size: size, known: map[string]*queue.Element{}, order: queue.New()}
}

func (l *addressLimiter) allow(address string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.known[address]
	if e == nil {
		if l.order.Len() >= l.size {
			oldest := l.order.Back()
			delete(l.known, oldest.Value.(*limited).address)
			l.order.Remove(oldest)
		}
		e = l.order.PushFront(&limited{address, rate.NewLimiter(rate.Every(publicInterval), publicBurst)})
		l.known[address] = e
	}
	l.order.MoveToFront(e)
	return e.Value.(*limited).AllowN(now, 1)
}
