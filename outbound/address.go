package outbound

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"tandem/fault"
	"tandem/text"
)

// AllowList is what the operator lets calls reach although it is not public. The zero value allows nothing.
type AllowList struct {
	prefixes []netip.Prefix
	hosts    []string
}

// ParseAllow reads a comma-separated list of networks (10.0.0.0/8), addresses and host names. A network allows the
// addresses in it, a host name whatever it resolves to.
func ParseAllow(text string) (AllowList, error) {
	var list AllowList
	for entry := range strings.SplitSeq(text, ",") {
		entry = strings.TrimSpace(entry)
		if entry == "" {
			continue
		}
		if err := list.addEntry(entry); err != nil {
			return AllowList{}, err
		}
	}
	return list, nil
}

func (l *AllowList) addEntry(entry string) error {
	wrong := func(why text.Text) error {
		return fault.Newf(fault.InvalidConfig, "http-allow: %q %s", entry, why).With("entry", entry)
	}
	if strings.Contains(entry, "://") {
		return wrong(text.Of("is an address of a page; write only its host name"))
	}
	if strings.Contains(entry, "/") {
		p, err := netip.ParsePrefix(entry)
		switch {
		case err != nil:
			return wrong(text.Of("is not a network; write it like 10.0.0.0/8 or fd00::/8"))
		case p.Addr().Is4In6():
			return wrong(text.Of("is an IPv4 network in IPv6 form; write it in IPv4 form"))
		case p != p.Masked():
			return wrong(text.Of("has bits beyond its length; write %s", p.Masked()))
		}
		l.prefixes = append(l.prefixes, p)
		return nil
	}
	if a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(entry, "["), "]")); err == nil {
		if a.Zone() != "" {
			return wrong(text.Of("has a zone; leave it out"))
		}
		a = a.Unmap()
		l.prefixes = append(l.prefixes, netip.PrefixFrom(a, a.BitLen()))
		return nil
	}
	host := plainHost(entry)
	switch {
	case strings.ContainsRune(host, ':'):
		return wrong(text.Of("has a port; ports are not restricted, so leave it out"))
	case strings.ContainsFunc(host, func(r rune) bool { return r > 0x7f }):
		return wrong(text.Of("is not ASCII; write the name as it stands in DNS (xn--…)"))
	case !validName(host):
		return wrong(text.Of("is neither a network, an address nor a host name"))
	case numeric(host):
		return wrong(text.Of("is an address in an unusual form; write it like 127.0.0.1"))
	}
	l.hosts = append(l.hosts, host)
	return nil
}

// validName says whether a text can be a host name: letters, digits, hyphens and underscores between dots.
func validName(host string) bool {
	if host == "" || len(host) > 253 {
		return false
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return true
}

// plainHost is a host name as it is compared: lower case, without the dot that ends it.
func plainHost(host string) string { return strings.TrimSuffix(strings.ToLower(host), ".") }

func (l AllowList) host(host string) bool { return slices.Contains(l.hosts, plainHost(host)) }

func (l AllowList) address(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	return slices.ContainsFunc(l.prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
}

// numeric says whether systems may read a host as an IPv4 address: its last label is a number, decimal, octal or
// hexadecimal. Such a host is taken only when it is written as four decimal numbers.
func numeric(host string) bool {
	host = plainHost(host)
	last := host[strings.LastIndexByte(host, '.')+1:]
	if digits, ok := strings.CutPrefix(last, "0x"); ok {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}

// literal reads a host that is an address. ok is false for names; an address in an unusual form is an error.
func literal(host string) (a netip.Addr, ok bool, err error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return a, true, nil
	}
	if strings.ContainsRune(host, ':') {
		return netip.Addr{}, false, refusal(host, text.Of("it is not a valid address"), text.Of("write it in its usual form"))
	}
	if numeric(host) {
		return netip.Addr{}, false, refusal(host, text.Of("it is an address in an unusual form"), text.Of("write it as four decimal numbers, like 192.0.2.1"))
	}
	return netip.Addr{}, false, nil
}

// special are the networks of IPv4 and IPv6 that are not the public internet, with what they are. read-only
var special = []struct {
	prefix netip.Prefix
	what   text.Text
}{
	{netip.MustParsePrefix("0.0.0.0/8"), text.Of("an unspecified address")},
	{netip.MustParsePrefix("10.0.0.0/8"), text.Of("a private address")},
	{netip.MustParsePrefix("100.64.0.0/10"), text.Of("an address of a provider's inner network")}, // holds 100.100.100.200, metadata
	{netip.MustParsePrefix("127.0.0.0/8"), text.Of("a loopback address")},
	{netip.MustParsePrefix("168.63.129.16/32"), text.Of("a cloud metadata address")},
	{netip.MustParsePrefix("169.254.0.0/16"), text.Of("a link-local or cloud metadata address")},
	{netip.MustParsePrefix("172.16.0.0/12"), text.Of("a private address")},
	{netip.MustParsePrefix("192.0.0.0/24"), text.Of("a protocol or cloud metadata address")}, // holds 192.0.0.192, metadata
	{netip.MustParsePrefix("192.0.2.0/24"), text.Of("a documentation address")},
	{netip.MustParsePrefix("192.88.99.0/24"), text.Of("a relay address")},
	{netip.MustParsePrefix("192.168.0.0/16"), text.Of("a private address")},
	{netip.MustParsePrefix("198.18.0.0/15"), text.Of("a benchmark address")},
	{netip.MustParsePrefix("198.51.100.0/24"), text.Of("a documentation address")},
	{netip.MustParsePrefix("203.0.113.0/24"), text.Of("a documentation address")},
	{netip.MustParsePrefix("224.0.0.0/4"), text.Of("a multicast address")},
	{netip.MustParsePrefix("240.0.0.0/4"), text.Of("a reserved or broadcast address")},

	{netip.MustParsePrefix("2001::/23"), text.Of("a protocol or tunnel address")}, // Teredo, benchmarks, ORCHID
	{netip.MustParsePrefix("2001:db8::/32"), text.Of("a documentation address")},
	{netip.MustParsePrefix("2002::/16"), text.Of("a tunnel address")}, // 6to4: any IPv4 address can be inside
	{netip.MustParsePrefix("3fff::/20"), text.Of("a documentation address")},
	{netip.MustParsePrefix("fc00::/7"), text.Of("a unique-local address")},
	{netip.MustParsePrefix("fe80::/10"), text.Of("a link-local address")},
	{netip.MustParsePrefix("ff00::/8"), text.Of("a multicast address")},
}

// nat64 holds an IPv4 address in its last 32 bits. global is where public IPv6 addresses are. read-only
var (
	nat64  = netip.MustParsePrefix("64:ff9b::/96")
	global = netip.MustParsePrefix("2000::/3")
)

// notPublic says what an address is when it is not part of the public internet, and nothing when it is. IPv6 is refused unless it
// is known to be public; an IPv4 address inside an IPv6 one is judged as itself.
func notPublic(a netip.Addr) text.Text {
	if !a.IsValid() {
		return text.Of("no address")
	}
	a = a.Unmap().WithZone("")
	for _, s := range special {
		if s.prefix.Contains(a) {
			return s.what
		}
	}
	if a.Is4() {
		return text.Text{}
	}
	bytes := a.As16()
	inside := netip.AddrFrom4([4]byte(bytes[12:]))
	switch {
	case nat64.Contains(a):
		return notPublic(inside)
	case a == netip.IPv6Unspecified():
		return text.Of("an unspecified address")
	case a == netip.IPv6Loopback():
		return text.Of("a loopback address")
	case !global.Contains(a):
		return text.Of("an address outside the public internet")
	case bytes[8]&^2 == 0 && bytes[9] == 0 && bytes[10] == 0x5e && bytes[11] == 0xfe: // ISATAP
		return notPublic(inside)
	}
	return text.Text{}
}

// refusal is the error for an address that is not called.
func refusal(host string, why, remedy text.Text) *fault.Error {
	return fault.Newf(fault.BlockedAddress, "host %q is not called: %s; %s", host, why, remedy).With("host", host)
}

// check refuses an address that is neither public nor allowed. Host is what the caller wrote.
func (l AllowList) check(host string, a netip.Addr) error {
	what := notPublic(a)
	if what.IsZero() || l.address(a) {
		return nil
	}
	return refusal(host, text.Of("it is %s", what), text.Of("if that is meant, the operator allows it with --http-allow (TANDEM_HTTP_ALLOW)"))
}

// checkURL refuses addresses that no allow list makes good. The rest is known when it is dialled.
func checkURL(u *url.URL) error {
	switch {
	case u == nil:
		return fault.New(fault.InvalidInput, "the call has no address")
	case u.Scheme == "":
		return fault.New(fault.InvalidInput, "the address has no scheme; begin it with https://")
	case u.Scheme != "http" && u.Scheme != "https":
		return fault.Newf(fault.BlockedAddress, "the scheme %q is not called; use http or https", u.Scheme)
	case u.Hostname() == "":
		return fault.New(fault.InvalidInput, "the address has no host")
	case u.User != nil:
		return fault.Newf(fault.InvalidInput, "the address of host %q holds a user name or password; keep them in a credential", u.Hostname())
	}
	_, _, err := literal(u.Hostname())
	return err
}
