package cluster_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tandem/cluster"
)

// file writes a file for a test.
func file(t *testing.T, name, text string) string {
	t.Helper()
	name = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestConnect_Refuses: what was said of TLS and cannot be so is refused at once, with the setting that is to be corrected.
func TestConnect_Refuses(t *testing.T) {
	t.Parallel()
	text := file(t, "text", "not a certificate")
	for want, s := range map[string]cluster.Security{
		"--temporal-tls-key":  {Cert: text},
		"--temporal-tls-cert": {Key: text},
		"--temporal-tls-ca (TANDEM_TEMPORAL_TLS_CA), \"/none":     {CA: "/none/ca.pem"},
		"--temporal-tls-cert (TANDEM_TEMPORAL_TLS_CERT), \"/none": {Cert: "/none/c.pem", Key: text},
		"has no certificates":                                             {CA: text},
		"are not a certificate and its key":                               {Cert: text, Key: text},
		"--temporal-api-key-file (TANDEM_TEMPORAL_API_KEY_FILE), \"/none": {APIKeyFile: "/none/key"},
		"must have one line":                                              {APIKeyFile: file(t, "two", "one\ntwo\n")},
		"TANDEM_TEMPORAL_API_KEY must have one line":                      {APIKey: "one\ntwo"},
		"leave one of them out":                                           {APIKeyFile: text, APIKey: "k"},
	} {
		e, err := cluster.Connect(cluster.Options{Security: s}, false)
		if err == nil {
			e.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", s, err, want)
		}
	}
}

// service is a server of TLS that refuses every request, as one does that wants a key, and keeps what it was shown.
func service(t *testing.T, change func(*tls.Config)) (address, ca string, shown <-chan string) {
	t.Helper()
	keys := make(chan string, 100)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys <- r.Header.Get("Authorization")
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Grpc-Status", "16")
		w.Header().Set("Grpc-Message", "no")
	}))
	s.EnableHTTP2 = true
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	if change != nil {
		change(s.TLS)
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	ca = file(t, "ca", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
	return s.Listener.Addr().String(), ca, keys
}

// TestReady_SaysWhatIsWrong: when Temporal cannot be used because of TLS or of a key, it is said so, and which setting is to be corrected.
func TestReady_SaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // it may be closed
	go func() {                         // it ends with the listener
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("220 this is something else\r\n")) // who asks may have gone
			_ = conn.Close()
		}
	}()
	secure, ca, _ := service(t, nil)
	wants, wantsCA, _ := service(t, func(c *tls.Config) { c.ClientAuth = tls.RequireAnyClientCert })
	keyed, keyedCA, _ := service(t, nil)
	for name, c := range map[string]struct {
		o    cluster.Options
		want []string
	}{
		"server without TLS":  {cluster.Options{Address: l.Addr().String(), Security: cluster.Security{TLS: true}}, []string{"does not speak TLS", "--temporal-tls "}},
		"TLS is missing":      {cluster.Options{Address: secure}, []string{"speaks TLS", "--temporal-tls "}},
		"unknown authority":   {cluster.Options{Address: secure, Security: cluster.Security{TLS: true}}, []string{"not trusted", "--temporal-tls-ca"}},
		"another name":        {cluster.Options{Address: secure, Security: cluster.Security{CA: ca, ServerName: "elsewhere.test"}}, []string{"another name", "--temporal-tls-server-name"}},
		"certificate missing": {cluster.Options{Address: wants, Security: cluster.Security{CA: wantsCA}}, []string{"refuses the connection", "--temporal-tls-cert"}},
		"TLS is missing, too": {cluster.Options{Address: wants}, []string{"speaks TLS", "--temporal-tls "}},
		"key is refused":      {cluster.Options{Address: keyed, Security: cluster.Security{CA: keyedCA, APIKey: "the-key"}}, []string{"does not let this process in", "TANDEM_TEMPORAL_API_KEY"}},
		"nobody is there":     {cluster.Options{Address: "127.0.0.1:1", Security: cluster.Security{TLS: true}}, []string{"cannot be reached", "--temporal-address"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := c.o.Try(t.Context())
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want %q", err, want)
				}
			}
		})
	}
	t.Run("the key is sent", func(t *testing.T) {
		t.Parallel()
		for want, as := range map[string]cluster.Security{"the-key": {APIKey: " the-key\n"}, "in-a-file": {APIKeyFile: file(t, "key", "in-a-file\n")}} {
			address, ca, shown := service(t, nil)
			as.CA = ca
			if err := (cluster.Options{Address: address, Security: as}).Try(t.Context()); err == nil {
				t.Error("it was let in")
			}
			select {
			case got := <-shown:
				if got != "Bearer "+want {
					t.Errorf("it was shown %q", got)
				}
			default:
				t.Errorf("nobody has asked with %q", want)
			}
		}
	})
}

// TestReady_FilesThatBroke: when a file of a setting is not as it was at the start any more, it is said which setting that is, and not where the file is:
// everybody may ask whether a server is ready.
func TestReady_FilesThatBroke(t *testing.T) {
	t.Parallel()
	address, ca, _ := service(t, nil)
	for name, change := range map[string]func(name string) error{
		"gone":  os.Remove,
		"empty": func(name string) error { return os.WriteFile(name, nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key := file(t, "key", "the-key")
			e, err := cluster.Connect(cluster.Options{Address: address, Security: cluster.Security{CA: ca, APIKeyFile: key}}, true)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			if err := change(key); err != nil {
				t.Fatal(err)
			}
			if err = e.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "--temporal-api-key-file") || strings.Contains(err.Error(), key) {
				t.Errorf("%v, want that the file of --temporal-api-key-file is wrong", err)
			}
		})
	}
}

// pair writes a certificate and its key.
func pair(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	raw, err := x509.CreateCertificate(rand.Reader, about, about, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return file(t, "cert", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}))),
		file(t, "cert.key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
}

// TestReady_CertificateThatBroke is TestReady_FilesThatBroke for a certificate.
func TestReady_CertificateThatBroke(t *testing.T) {
	t.Parallel()
	address, ca, _ := service(t, func(c *tls.Config) { c.ClientAuth = tls.RequireAnyClientCert })
	cert, key := pair(t)
	e, err := cluster.Connect(cluster.Options{Address: address, Security: cluster.Security{CA: ca, Cert: cert, Key: key}}, true)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := os.Remove(cert); err != nil {
		t.Fatal(err)
	}
	if err = e.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "the files of --temporal-tls-cert") || strings.Contains(err.Error(), cert) {
		t.Errorf("%v, want that the file of --temporal-tls-cert is wrong", err)
	}
}
