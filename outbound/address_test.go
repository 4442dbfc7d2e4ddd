package outbound

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"tandem/fault"
)

func TestNotPublic(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.100.100.200", "100.127.255.255", "127.0.0.1", "127.255.0.9",
		"168.63.129.16", "169.254.169.254", "169.254.170.2", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.0.192", "192.0.2.7",
		"192.88.99.1", "192.168.1.1", "198.18.0.1", "198.19.255.255", "198.51.100.3", "203.0.113.9", "224.0.0.1", "239.255.255.255", "240.0.0.1",
		"255.255.255.255",
		"::", "::1", "::1%lo", "::7f00:1", "::127.0.0.1", "::a00:1", "::8.8.8.8", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254",
		"::ffff:0:127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b::10.1.1.1", "64:ff9b:1::1", "100::1", "2001::1",
		"2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:2::1", "2001:10::1", "2001:20::1", "2001:db8::1", "2002:7f00:1::", "2002:a00:1::1", "2002:808:808::1",
		"3fff::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fd12:3456::1", "fe80::1", "fe80::1%eth0", "febf::1", "fec0::1", "ff02::1", "ff0e::1", "4000::1",
		"2606:4700::5efe:10.0.0.1", "2606:4700::200:5efe:127.0.0.1",
	} {
		if notPublic(netip.MustParseAddr(text)).IsZero() {
			t.Errorf("%s counts as public", text)
		}
	}
	for _, text := range []string{
		"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.1", "168.63.129.17", "169.253.255.255",
		"169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.1", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255",
		"::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2001:200::1", "2001:4860:4860::8888", "2606:4700:4700::1111", "2a00:1450:4001::1", "2003::1",
		"2606:4700::5efe:8.8.8.8",
	} {
		if what := notPublic(netip.MustParseAddr(text)); !what.IsZero() {
			t.Errorf("%s counts as %s", text, what)
		}
	}
	if notPublic(netip.Addr{}).IsZero() {
		t.Error("no address counts as public")
	}
}

func TestParseAllow(t *testing.T) {
	t.Parallel()
	list, err := ParseAllow(" 127.0.0.0/8, fd00::/8 ,10.1.2.3,[::1],Intranet.Example., service_1,, ::ffff:10.9.9.9 ")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"127.0.0.1", "127.9.9.9", "fd12::1", "fd12::1%eth0", "10.1.2.3", "::1", "::ffff:127.0.0.1", "10.9.9.9"} {
		if !list.address(netip.MustParseAddr(text)) {
			t.Errorf("%s is not allowed", text)
		}
	}
	for _, text := range []string{"10.1.2.4", "::2", "192.168.0.1", "64:ff9b::127.0.0.1", "::127.0.0.1"} {
		if list.address(netip.MustParseAddr(text)) {
			t.Errorf("%s is allowed", text)
		}
	}
	for host, want := range map[string]bool{"intranet.example": true, "INTRANET.example.": true, "service_1": true, "example": false, "a.intranet.example": false} {
		if list.host(host) != want {
			t.Errorf("host %q: allowed %v, want %v", host, !want, want)
		}
	}
	for entry, part := range map[string]string{
		"10.0.0.0/33": "not a network", "10.1.2.3/8": "write 10.0.0.0/8", "::ffff:10.0.0.0/104": "IPv4 form", "http://a": "host name", "a:80": "port",
		"127.1": "unusual form", "0x7f000001": "unusual form", "a b": "neither", "*.example": "neither", "例子.example": "not ASCII", "fe80::1%eth0": "zone",
		"a..b": "neither", "-_-/x": "not a network",
	} {
		_, err := ParseAllow("1.1.1.1," + entry)
		if fault.CodeOf(err) != fault.InvalidConfig || !strings.Contains(err.Error(), part) || !strings.Contains(err.Error(), strconv.Quote(entry)) {
			t.Errorf("%q: got %v, want invalid_config with %q", entry, err, part)
		}
	}
	if empty, err := ParseAllow(""); err != nil || empty.host("") || empty.address(netip.MustParseAddr("10.0.0.1")) {
		t.Errorf("an empty list allows something: %v", err)
	}
}

func TestClient_Do_RefusesAddresses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.names["inner.example"] = func() []string { return []string{"10.0.0.5", "fd00::5"} }
	w.names["metadata.example"] = func() []string { return []string{"169.254.169.254"} }
	w.names["localhost"] = func() []string { return []string{"127.0.0.1", "::1"} }
	c := w.client(Options{})
	for _, text := range []string{
		"http://127.0.0.1/", "http://127.0.0.1:8080/", "https://10.0.0.1/", "http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[::127.0.0.1]/",
		"http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/", "http://[fe80::1%25eth0]/", "http://169.254.169.254/latest/meta-data/", "http://[fd00:ec2::254]/",
		"http://100.100.100.200/", "http://0/", "http://0.0.0.0/", "http://2130706433/", "http://017700000001/", "http://0x7f000001/", "http://0x7f.1/", "http://127.1/",
		"http://127.0.1/", "http://0177.0.0.1/", "http://0x7f.0x0.0x0.0x1/", "http://127.0.0.01/", "http://127.0.0.1./", "http://2130706433./", "http://0X7F.1/",
		"http://1.2.3.4.5/", "http://256.256.256.256/", "http://08.8.8.8/", "http://0x/", "http://127。0。0。1/", "http://①②⑦.⓪.⓪.①/", "http://０x7f.1/",
		"http://localhost/", "http://LOCALHOST/", "http://inner.example/", "http://metadata.example/", "http://255.255.255.255/", "http://224.0.0.1/",
		"ftp://example.com/", "file:///etc/passwd", "gopher://example.com/", "unix:///x",
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			e := failure(t, c, get(t, text))
			wantFailure(t, e, fault.BlockedAddress, NotTaken)
			plain, err := c.HTTPClient().Do((&http.Request{Method: http.MethodGet, URL: parse(t, text), Header: http.Header{}}).WithContext(t.Context()))
			if err == nil {
				_ = plain.Body.Close()
			}
			if fault.CodeOf(err) != fault.BlockedAddress {
				t.Errorf("the plain client says %v", err)
			}
		})
	}
	t.Cleanup(func() {
		if dials := w.dials(); len(dials) > 0 {
			t.Errorf("dialled %v", dials)
		}
	})
}

func TestClient_Do_NamesTheRemedy(t *testing.T) {
	t.Parallel()
	e := failure(t, newWorld(t).client(Options{}), get(t, "http://192.168.7.7/x?token=abc"))
	for _, part := range []string{`"192.168.7.7"`, "private", "--http-allow"} {
		if !strings.Contains(e.Fault.Message, part) {
			t.Errorf("message %q has no %q", e.Fault.Message, part)
		}
	}
	if strings.Contains(e.Fault.Message, "abc") {
		t.Errorf("message %q shows the query", e.Fault.Message)
	}
}

func TestClient_Do_RefusesWhatIsNoAddress(t *testing.T) {
	t.Parallel()
	c := newWorld(t).client(Options{})
	for _, u := range []*url.URL{nil, {}, {Scheme: "http"}, {Scheme: "http", Host: ":80"}, {Scheme: "https", Host: "a.example", User: url.UserPassword("u", "hunter2")}, {Path: "/x"}} {
		e := failure(t, c, Request{Method: http.MethodGet, URL: u})
		wantFailure(t, e, fault.InvalidInput, NotTaken)
		if strings.Contains(e.Error(), "hunter2") {
			t.Errorf("%v shows the password", e)
		}
	}
}

func TestClient_Do_Allows(t *testing.T) {
	t.Parallel()
	list, err := ParseAllow("10.0.0.0/8, inner.example")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.serve("inner.example", "192.168.0.9", echo)
	w.serve("other.example", "10.1.1.1", echo)
	w.serve("wrong.example", "192.168.0.10", echo)
	w.names["inner.example."] = w.names["inner.example"]
	c := w.client(Options{Allow: list})
	for _, text := range []string{"http://inner.example/a", "http://INNER.example./a", "http://other.example/a", "http://10.1.1.1/a", "http://[::ffff:10.1.1.1]/a"} {
		if r, _ := answer(t, c, get(t, text)); r.Status != http.StatusOK {
			t.Errorf("%s: status %d", text, r.Status)
		}
	}
	for _, text := range []string{"http://192.168.0.9/", "http://wrong.example/", "http://167837953/"} { // 10.1.1.1 as one number
		wantFailure(t, failure(t, c, get(t, text)), fault.BlockedAddress, NotTaken)
	}
}

// A name that is public when it is looked at and private when it is connected to is the oldest trick; here it is asked
// once per connection, and what it said is what is dialled.
func TestClient_Do_Rebinding(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("evil.example", "93.184.216.34", func(rw http.ResponseWriter, _ *http.Request) { rw.Header().Set("Connection", "close") })
	asked := 0
	w.names["evil.example"] = func() []string {
		asked++
		if asked%2 == 1 {
			return []string{"93.184.216.34"}
		}
		return []string{"127.0.0.1"}
	}
	c := w.client(Options{})
	if r, _ := answer(t, c, get(t, "http://evil.example/")); r.Status != http.StatusOK {
		t.Errorf("status %d", r.Status)
	}
	wantFailure(t, failure(t, c, get(t, "http://evil.example/")), fault.BlockedAddress, NotTaken)
	if asked != 2 {
		t.Errorf("the name was asked for %d times, want once per connection", asked)
	}
	// Of a mixed answer only the public part is used.
	w.names["mixed.example"] = func() []string { return []string{"10.0.0.1", "93.184.216.34", "::1"} }
	answer(t, c, get(t, "http://mixed.example/"))
	for _, address := range w.dials() {
		if address != "93.184.216.34" {
			t.Errorf("dialled %s", address)
		}
	}
}

// aton reads addresses the way old systems do, so that the fuzzed resolver is as generous as the worst of them.
func aton(host string) (netip.Addr, bool) {
	parts := strings.Split(strings.TrimSuffix(host, "."), ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var value uint64
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 0, 32)
		if err != nil {
			return netip.Addr{}, false
		}
		if i == len(parts)-1 {
			value = value<<(8*(5-len(parts))) | n
		} else {
			value = value<<8 | n&0xff
		}
	}
	return netip.AddrFrom4([4]byte{byte(value >> 24), byte(value >> 16), byte(value >> 8), byte(value)}), true
}

type generousResolver struct{}

func (generousResolver) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if a, ok := aton(strings.ToLower(host)); ok {
		return []netip.Addr{a}, nil
	}
	if strings.HasSuffix(host, ".inner") {
		return []netip.Addr{netip.MustParseAddr("10.0.0.1")}, nil
	}
	return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
}

// private is what the standard library knows about addresses: less than the guard, and made by somebody else.
func private(a netip.Addr) bool {
	a = a.Unmap()
	inside := a
	if b := a.As16(); a.Is6() && (strings.HasPrefix(a.String(), "64:ff9b::") || netip.MustParsePrefix("::/96").Contains(a)) {
		inside = netip.AddrFrom4([4]byte(b[12:]))
	}
	for _, a := range []netip.Addr{a, inside} {
		if a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsUnspecified() || !a.IsGlobalUnicast() {
			return true
		}
	}
	return false
}

// FuzzClient_Host: whatever stands where a host belongs, nothing private is connected to.
func FuzzClient_Host(f *testing.F) {
	for _, seed := range []string{
		"127.0.0.1", "2130706433", "0x7f.1", "017700000001", "[::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "localhost.inner", "①②⑦.⓪.⓪.①", "127.1.", "a@127.0.0.1",
		"example.com:80@127.0.0.1", "127.0.0.1#@example.com", "127.0.0.1\\@example.com", "[fe80::1%25en0]", "8.8.8.8", "[2001:4860:4860::8888]:443", "x.inner", "0", "1.0x7f",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, host string) {
		c := New(Options{Resolver: generousResolver{}, DialAddress: func(_ context.Context, address netip.AddrPort) (net.Conn, error) {
			if private(address.Addr()) {
				t.Errorf("host %q leads to %s", host, address)
			}
			return nil, errors.New("far enough")
		}})
		u, err := url.Parse("http://" + host + "/")
		if err != nil {
			return
		}
		if response, err := c.Do(t.Context(), Request{Method: http.MethodGet, URL: u}); err == nil {
			_ = response.Body.Close()
			t.Errorf("host %q was answered", host)
		}
		if response, err := c.HTTPClient().Get("http://" + host + "/"); err == nil {
			_ = response.Body.Close()
			t.Errorf("host %q was answered", host)
		}
	})
}

// FuzzNotPublic: what the standard library calls private is never public here, in whatever form it comes.
func FuzzNotPublic(f *testing.F) {
	for _, seed := range []string{"127.0.0.1", "8.8.8.8", "::1", "64:ff9b::a00:1", "2002:7f00:1::"} {
		f.Add(netip.MustParseAddr(seed).AsSlice())
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		a, ok := netip.AddrFromSlice(raw)
		if !ok {
			return
		}
		what := notPublic(a)
		if what.IsZero() && private(a) {
			t.Errorf("%s counts as public", a)
		}
		if !a.Is4() {
			return
		}
		// Every form of an address is judged at least as strictly as the address itself.
		four := a.As4()
		forms := []netip.Addr{netip.AddrFrom16(a.As16())}
		for _, prefix := range []string{"64:ff9b::", "::", "2606:4700::5efe:0:0"} {
			b := netip.MustParseAddr(prefix).As16()
			copy(b[12:], four[:])
			forms = append(forms, netip.AddrFrom16(b))
		}
		b := netip.MustParseAddr("2002::1").As16()
		copy(b[2:], four[:])
		for _, form := range append(forms, netip.AddrFrom16(b)) {
			if !what.IsZero() && notPublic(form).IsZero() {
				t.Errorf("%s counts as public, and %s inside it is %s", form, a, what)
			}
		}
	})
}
