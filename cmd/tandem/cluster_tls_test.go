package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// secured is a proxy in front of a Temporal server that wants TLS, with a certificate of whoever comes.
type secured struct {
	address string
	dir     string
	// env is what a process is told that comes through it.
	env []string
}

// authority issues certificates.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// newAuthority makes one, whose own certificate is in a file "ca".
func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	a.cert, a.key = a.issue(t, "ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// issue makes a certificate, in a file of that name, with its key in another.
func (a *authority) issue(t *testing.T, name string, c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c.SerialNumber, c.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	parent, by := a.cert, a.key
	if parent == nil {
		parent, by = c, key
	}
	raw, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{name: {Type: "CERTIFICATE", Bytes: raw}, name + ".key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(a.dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	made, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return made, key
}

// file is where something is that the authority has issued.
func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// newSecured starts a proxy in front of what listens at an address.
func newSecured(t *testing.T, behind string) *secured {
	t.Helper()
	a := newAuthority(t)
	a.issue(t, "server", &x509.Certificate{DNSNames: []string{"temporal.test"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	a.issue(t, "client", &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	own, err := tls.LoadX509KeyPair(a.file("server"), a.file("server.key"))
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(a.cert)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{own}, NextProtos: []string{"h2"},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: trusted, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // it was closed
			}
			all.Go(func() { pass(t, conn, behind) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close() // it may be closed
		all.Wait()
	})
	s := &secured{address: l.Addr().String(), dir: a.dir}
	s.env = []string{"TANDEM_TEMPORAL_ADDRESS=" + s.address, "TANDEM_TEMPORAL_TLS_CERT=" + a.file("client"), "TANDEM_TEMPORAL_TLS_KEY=" + a.file("client.key"),
		"TANDEM_TEMPORAL_TLS_CA=" + a.file("ca"), "TANDEM_TEMPORAL_TLS_SERVER_NAME=temporal.test"}
	return s
}

// pass copies between a connection and one to an address, until either ends or the test does.
func pass(t *testing.T, conn net.Conn, address string) {
	defer conn.Close() // what was to be sent was
	to, err := net.Dial("tcp", address)
	if err != nil {
		return // it is away, which the client finds out
	}
	defer to.Close() // as above
	ended := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{conn, to}, {to, conn}} {
		go func() { // it ends with the connections
			_, _ = io.Copy(way[0], way[1]) // either side may leave at any time
			ended <- struct{}{}
		}()
	}
	select {
	case <-ended:
	case <-t.Context().Done():
	}
}
