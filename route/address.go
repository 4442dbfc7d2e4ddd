package route

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"tandem/fault"
)

// clientAddress is where a request comes from: the other end of the connection. Only when that is one of the proxies that the operator
// has named, it is the last address in X-Forwarded-For that is not itself one of them; anybody else who writes such a header
// is not believed. Of IPv6 it is the network, since everybody has a whole one.
func clientAddress(r *http.Request, proxies []netip.Prefix) string {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	address := from.Addr().Unmap()
	proxied := func() bool { return Among(proxies, address) }
	if proxied() {
		chain := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
		for _, text := range slices.Backward(chain) {
			before, err := netip.ParseAddr(strings.TrimSpace(text))
			if err != nil {
				break
			}
			if address = before.Unmap(); !proxied() {
				break
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

// Among says whether an address is in one of some networks.
func Among(networks []netip.Prefix, address netip.Addr) bool {
	address = address.Unmap()
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(address) })
}

// ParseProxies reads a list of addresses and networks, separated by commas.
func ParseProxies(text string) ([]netip.Prefix, error) {
	var proxies []netip.Prefix
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		network, err := netip.ParsePrefix(part)
		if address, wrong := netip.ParseAddr(part); wrong == nil {
			network, err = address.Unmap().Prefix(address.Unmap().BitLen())
		}
		if err != nil {
			return nil, fault.Newf(fault.Invalid, "%q is not the address or the network of a proxy; write them as 127.0.0.1 or 10.0.0.0/8, separated by commas", part)
		}
		proxies = append(proxies, network.Masked())
	}
	return proxies, nil
}

// AddressLimiter limits by address: so many at once, then one per interval. It remembers a bounded number of addresses, those
// that came last.
type AddressLimiter struct {
	interval time.Duration
	burst    int

	mu    sync.Mutex
	known *Recent[string, *rate.Limiter]
}

// NewAddressLimiter makes a limiter that remembers so many addresses.
func NewAddressLimiter(size int, interval time.Duration, burst int) *AddressLimiter {
	return &AddressLimiter{interval: interval, burst: burst, known: newRecent[string, *rate.Limiter](size)}
}

// Allow says whether something may come from an address now, and counts it.
func (l *AddressLimiter) Allow(address string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	limiter, ok := l.known.get(address)
	if !ok {
		limiter = rate.NewLimiter(rate.Every(l.interval), l.burst)
		l.known.put(address, limiter)
	}
	return limiter.AllowN(now, 1)
}

// AddressOf is where a request under a context comes from; empty for a caller in this process.
func (s *Router) AddressOf(ctx context.Context) string {
	if v := visitOf(ctx); v != nil {
		return clientAddress(v.request, s.o.Proxies)
	}
	return ""
}
