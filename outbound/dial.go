package outbound

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"tandem/fault"
)

// headStart is how long one address may take before the next is tried beside it.
const headStart = 300 * time.Millisecond

// DialContext connects to a host behind the guard, for what speaks something else than HTTP: databases, mail. Only TCP is
// taken. Bounding the time of what follows is the caller's business.
func (c *Client) DialContext(ctx context.Context, network, hostPort string) (net.Conn, error) {
	if network != "tcp" && network != "tcp4" && network != "tcp6" {
		return nil, fault.Newf(fault.BlockedAddress, "the network %q is not called; use a host and a port", network)
	}
	return c.dial(ctx, network, hostPort)
}

// dial resolves a host once, keeps the addresses that may be reached, and connects to one of exactly those: a name that
// answers differently when asked again is not asked again.
func (c *Client) dial(ctx context.Context, _, hostPort string) (net.Conn, error) {
	host, portText, err := net.SplitHostPort(hostPort)
	if err != nil {
		return nil, fault.Newf(fault.InvalidInput, "the address %q has no port: %w", hostPort, err)
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, fault.Newf(fault.InvalidInput, "host %q: %q is not a port", host, portText)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.options.Dial, errDial)
	defer cancel()
	addresses, err := c.addresses(ctx, host)
	if err != nil {
		return nil, err
	}
	conn, err := c.race(ctx, addresses, uint16(port))
	if err != nil && context.Cause(ctx) == errDial {
		return nil, errDial
	}
	return conn, err
}

// addresses are those of a host that may be reached, at least one. The host is judged again: the transport has brought it
// into its form for DNS, which can turn a harmless looking name into a number.
func (c *Client) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	a, isAddress, err := literal(host)
	if err != nil {
		return nil, err
	}
	if isAddress {
		return []netip.Addr{a}, c.options.Allow.check(host, a)
	}
	found, err := c.options.Resolver.LookupNetIP(ctx, "ip", strings.ToLower(host))
	if err != nil {
		if context.Cause(ctx) == errDial {
			return nil, errDial
		}
		return nil, err
	}
	if len(found) == 0 {
		return nil, &net.DNSError{Err: "no address", Name: host, IsNotFound: true}
	}
	if c.options.Allow.host(host) {
		return found, nil
	}
	var reachable []netip.Addr
	var refused error
	for _, a := range found {
		if err := c.options.Allow.check(host, a); err != nil {
			refused = err
			continue
		}
		reachable = append(reachable, a)
	}
	if len(reachable) == 0 {
		return nil, refused
	}
	return reachable, nil
}

// race connects to the first address that answers. Each gets a head start on the next, so one that is silent costs little.
func (c *Client) race(ctx context.Context, addresses []netip.Addr, port uint16) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	type attempt struct {
		conn net.Conn
		err  error
	}
	results := make(chan attempt)
	started, ended := 0, 0
	start := func() {
		address := netip.AddrPortFrom(addresses[started].Unmap(), port)
		started++
		go func() {
			conn, err := c.options.DialAddress(ctx, address)
			results <- attempt{conn, err}
		}()
	}
	// An attempt that is still connecting when this returns is stopped, and closed if that was too late.
	defer func() {
		cancel()
		if left := started - ended; left > 0 {
			go func() {
				for range left {
					if a := <-results; a.conn != nil {
						_ = a.conn.Close() // it was never used
					}
				}
			}()
		}
	}()
	var failures []error
	start()
	next := time.NewTimer(headStart)
	defer next.Stop()
	for {
		select {
		case a := <-results:
			ended++
			if a.err == nil {
				return a.conn, nil
			}
			failures = append(failures, a.err)
			if ended == len(addresses) {
				return nil, errors.Join(failures...)
			}
		case <-next.C:
		}
		if started == len(addresses) {
			continue
		}
		start()
		next.Reset(headStart)
	}
}
