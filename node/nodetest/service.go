package nodetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"

	"tandem/fault"
	"tandem/outbound"
)

// Canary is a secret that must not be found in anything that leaves a run.
const Canary = "c4nary-s3cret-value"

// Loopback resolves every name to this machine, except for gone.example, which is not found.
type Loopback struct{}

// LookupNetIP implements the resolver of [outbound.Options].
func (Loopback) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if host == "gone.example" {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
}

// Client is a guarded client that reaches the addresses that are allowed, such as "127.0.0.1", and no others of this machine.
func Client(t testing.TB, allowed string) *outbound.Client {
	t.Helper()
	allow, err := outbound.ParseAllow(allowed)
	if err != nil {
		t.Fatal(err)
	}
	client := outbound.New(outbound.Options{Allow: allow, Resolver: Loopback{}})
	t.Cleanup(client.Close)
	return client
}

// Serve starts a service on this machine, which ends with the test.
func Serve(t testing.TB, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

// Files are the stored files of a workspace, in memory. It implements node.Files.
type Files struct {
	// Full, when it is set, is what Keep says.
	Full error

	mu   sync.Mutex
	kept map[string][]byte
}

// Keep stores a value. What reading fails with is told as a new error, as a store may do.
func (f *Files) Keep(_ context.Context, from io.Reader) (string, int64, error) {
	data, err := io.ReadAll(from)
	if err != nil {
		return "", 0, fmt.Errorf("keep: %v", err) // loses the chain on purpose
	}
	if f.Full != nil {
		return "", 0, f.Full
	}
	sum := sha256.Sum256(data)
	hash := hex.EncodeToString(sum[:])
	f.Put(hash, data)
	return hash, int64(len(data)), nil
}

// Open opens a value that was kept.
func (f *Files) Open(_ context.Context, hash string) (io.ReadCloser, int64, error) {
	data, ok := f.Content(hash)
	if !ok {
		return nil, 0, fault.Newf(fault.NotFound, "there is no file %q", hash)
	}
	return io.NopCloser(bytes.NewReader(data)), int64(len(data)), nil
}

// Put keeps content under a hash that the test chooses.
func (f *Files) Put(hash string, data []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.kept == nil {
		f.kept = map[string][]byte{}
	}
	f.kept[hash] = data
}

// Content is what was kept under a hash.
func (f *Files) Content(hash string) ([]byte, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	data, ok := f.kept[hash]
	return data, ok
}

// Count is how many files there are.
func (f *Files) Count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.kept)
}
