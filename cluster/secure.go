package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"time"

	"go.temporal.io/sdk/client"

	"tandem/fault"
)

// Security says how the connection to Temporal is kept secret, and as whom this process comes. Its zero value is a connection without TLS.
type Security struct {
	// TLS encrypts the connection; anything else of this does so as well.
	TLS bool
	// Cert and Key are files with the certificate of this process and its key, as PEM, which are read anew for each connection; CA is
	// one with the authorities that are trusted, those of the machine when empty.
	Cert, Key, CA string
	// ServerName is what the certificate of the server has to be for; the host of the address when empty.
	ServerName string
	// APIKey is sent with each request, or what is in the file APIKeyFile, which is read each time.
	APIKey, APIKeyFile string
}

// The settings that messages name.
const (
	certSetting = "--temporal-tls-cert (TANDEM_TEMPORAL_TLS_CERT)"
	keySetting  = "--temporal-tls-key (TANDEM_TEMPORAL_TLS_KEY)"
	caSetting   = "--temporal-tls-ca (TANDEM_TEMPORAL_TLS_CA)"
	nameSetting = "--temporal-tls-server-name (TANDEM_TEMPORAL_TLS_SERVER_NAME)"
	fileSetting = "--temporal-api-key-file (TANDEM_TEMPORAL_API_KEY_FILE)"
	tlsSetting  = "--temporal-tls (TANDEM_TEMPORAL_TLS)"
)

// encrypted says that the connection has TLS.
func (s Security) encrypted() bool { return s != (Security{}) }

// config is how a connection is encrypted; nil: it is not.
func (s Security) config(address string) (*tls.Config, error) {
	if !s.encrypted() {
		return nil, nil
	}
	switch {
	case s.Cert != "" && s.Key == "":
		return nil, fault.Newf(fault.Invalid, "%s names a certificate and its key is missing; name that with %s", certSetting, keySetting)
	case s.Key != "" && s.Cert == "":
		return nil, fault.Newf(fault.Invalid, "%s names a key and its certificate is missing; name that with %s", keySetting, certSetting)
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host}
	if s.ServerName != "" {
		c.ServerName = s.ServerName
	}
	if s.CA != "" {
		list, err := readSetting(caSetting, s.CA)
		if err != nil {
			return nil, err
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(list) {
			return nil, fault.Newf(fault.Invalid, "the file of %s, %q, has no certificates; it must have them as PEM", caSetting, s.CA)
		}
	}
	if s.Cert != "" {
		if _, err := s.certificate(); err != nil {
			return nil, err
		}
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return s.certificate() }
	}
	return c, nil
}

// certificate reads the certificate of this process.
func (s Security) certificate() (*tls.Certificate, error) {
	cert, err := readSetting(certSetting, s.Cert)
	if err != nil {
		return nil, err
	}
	key, err := readSetting(keySetting, s.Key)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fault.Newf(fault.Invalid, "the files of %s and %s, %q and %q, are not a certificate and its key as PEM: %w", certSetting, keySetting, s.Cert, s.Key, err)
	}
	return &pair, nil
}

// readSetting reads a file that a setting names.
func readSetting(setting, name string) ([]byte, error) {
	raw, err := os.ReadFile(name)
	if err != nil {
		why := err
		if reason, ok := errors.AsType[*fs.PathError](err); ok {
			why = reason.Err
		}
		return nil, fault.Newf(fault.Invalid, "the file of %s, %q, cannot be read: %w", setting, name, why)
	}
	return raw, nil
}

// apiKey is the key that is sent with each request now; empty: there is none.
func (s Security) apiKey() (string, error) {
	key, from := s.APIKey, "TANDEM_TEMPORAL_API_KEY"
	if s.APIKeyFile != "" {
		raw, err := readSetting(fileSetting, s.APIKeyFile)
		if err != nil {
			return "", err
		}
		key, from = string(raw), fmt.Sprintf("the file of %s, %q,", fileSetting, s.APIKeyFile)
	} else if key == "" {
		return "", nil
	}
	if key = strings.TrimSpace(key); key == "" || strings.ContainsAny(key, "\r\n") {
		return "", fault.Newf(fault.Invalid, "%s must have one line, with the key", from)
	}
	return key, nil
}

// credentials say as whom requests come; nil: nobody is named.
func (s Security) credentials() (client.Credentials, error) {
	if s.APIKey != "" && s.APIKeyFile != "" {
		return nil, fault.Newf(fault.Invalid, "TANDEM_TEMPORAL_API_KEY and %s both give a key; leave one of them out", fileSetting)
	}
	key, err := s.apiKey()
	if err != nil || key == "" {
		return nil, err
	}
	return client.NewAPIKeyDynamicCredentials(func(context.Context) (string, error) { return s.apiKey() }), nil
}

// preface is how a client begins to speak HTTP/2: what every server answers.
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"

// mismatchTimeout is how long it is tried to find out why Temporal does not answer.
const mismatchTimeout = 2 * time.Second

// mismatch finds out whether it is because of TLS that Temporal cannot be used: by a connection of its own, which nothing is asked by.
// It says what is wrong and what to do; empty: it is something else.
func (e *Engine) mismatch(ctx context.Context) (why string) {
	ctx, cancel := context.WithTimeout(ctx, mismatchTimeout)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", e.o.Address)
	if err != nil {
		return ""
	}
	defer conn.Close() // nothing was said that could be lost
	if until, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(until); err != nil {
			return ""
		}
	}
	if e.tls == nil {
		//nolint:gosec // nothing is sent by it: it is only looked whether the server speaks TLS
		err := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}).HandshakeContext(ctx)
		if _, alert := errors.AsType[tls.AlertError](err); err == nil || alert || strings.HasPrefix(err.Error(), "remote error: tls:") {
			return "speaks TLS; set " + tlsSetting
		}
		return ""
	}
	config := e.tls.Clone()
	config.NextProtos = []string{"h2"}
	secure := tls.Client(conn, config)
	if err = secure.HandshakeContext(ctx); err == nil {
		if _, err = secure.Write([]byte(preface)); err == nil { // whether it takes the certificate it says after the handshake
			_, err = secure.Read(make([]byte, 1))
		}
	}
	return refusal(err)
}

// refusal says what an error of TLS means; empty: it is none.
func refusal(err error) string {
	if err == nil {
		return ""
	}
	if _, ok := errors.AsType[*fault.Error](err); ok { // a file that has been changed; where it is, not everybody who asks has to know
		return "cannot be reached with TLS: the files of " + certSetting + " and " + keySetting +
			" cannot be read, or are not a certificate and its key as PEM"
	}
	if _, plain := errors.AsType[tls.RecordHeaderError](err); plain {
		return "does not speak TLS; leave out " + tlsSetting + " and what belongs to it"
	}
	if wrong, ok := errors.AsType[x509.HostnameError](err); ok {
		return "has a certificate for another name (" + wrong.Error() + "); name the right one with " + nameSetting
	}
	if bad, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "has a certificate that is not trusted (" + bad.Err.Error() + "); name the file of its authority with " + caSetting
	}
	if strings.Contains(err.Error(), "remote error: tls:") {
		return "refuses the connection (" + err.Error() + "); name a certificate that it takes with " + certSetting + " and " + keySetting
	}
	return ""
}
