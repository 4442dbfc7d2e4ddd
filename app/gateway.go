package app

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"tandem/api"
	"tandem/client"
	"tandem/gateway"
	"tandem/server"
)

// apiGateway is the API as an MCP server: its requests go to the API's own handler in this process, with the token of the caller.
type apiGateway struct {
	*gateway.HTTP
	web       *http.Server
	transport *http.Transport
	served    chan error
	log       *slog.Logger
}

// gatewayOf makes the gateway of a server that listens. A server inside a command has none: it serves only the API.
func (o *ServeOptions) gatewayOf(listener net.Listener) func(http.Handler) (server.Gateway, error) {
	if _, inside := listener.(*memoryListener); inside {
		return nil
	}
	return func(api http.Handler) (server.Gateway, error) {
		return newGateway(api, o.Version, o.MCPWait, o.Log), nil
	}
}

func newGateway(handler http.Handler, version string, wait time.Duration, log *slog.Logger) *apiGateway {
	listener := &memoryListener{accept: make(chan net.Conn), done: make(chan struct{})}
	g := &apiGateway{served: make(chan error, 1), log: log}
	g.transport = &http.Transport{DialContext: listener.dial, MaxIdleConnsPerHost: 32, DisableCompression: true}
	// Every request needs a token: unlike the pipe of a command, this one is for callers from outside.
	g.web = &http.Server{
		Handler: calledFrom(handler), ReadHeaderTimeout: headerTimeout, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		BaseContext: func(net.Listener) context.Context { return context.Background() },
	}
	g.HTTP = gateway.NewHTTP(func(token string) (gateway.API, error) {
		// The name is one under which every server may be asked.
		return client.New(client.Options{URL: "http://localhost", Token: token, HTTP: &http.Client{Transport: sayCaller{g.transport}}})
	}, gateway.Options{Version: version, Wait: wait, Log: log})
	go func() { g.served <- g.web.Serve(listener) }() // it ends with Close
	return g
}

// sayCaller adds to each request the address and the program of the caller it is made for.
type sayCaller struct{ next http.RoundTripper }

func (s sayCaller) RoundTrip(r *http.Request) (*http.Response, error) {
	if c := gateway.CallerOf(r.Context()); c.Address != "" {
		r = r.Clone(r.Context())
		r.Header.Set(api.CallerHeader, c.Address)
		r.Header.Set("User-Agent", c.Agent)
	}
	return s.next.RoundTrip(r)
}

// calledFrom gives requests the address of the caller of the gateway. It serves requests of the gateway only, whose header can be trusted.
func calledFrom(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if address := r.Header.Get(api.CallerHeader); address != "" {
			if network, err := netip.ParsePrefix(address); err == nil { // of a client with IPv6 the network counts
				address = network.Addr().String()
			}
			r.RemoteAddr = net.JoinHostPort(address, "0")
			r.Header.Del(api.CallerHeader)
			r.Header.Del("X-Forwarded-For")
		}
		next.ServeHTTP(w, r)
	})
}

// Close implements server.Gateway.
func (g *apiGateway) Close() {
	g.HTTP.Close()
	err := g.web.Close()
	g.transport.CloseIdleConnections()
	if serr := <-g.served; !errors.Is(serr, http.ErrServerClosed) {
		err = errors.Join(err, serr)
	}
	if err != nil && g.log != nil {
		g.log.Warn("the gateway ended with an error", "error", err)
	}
}
