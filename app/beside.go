package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"tandem/client"
	"tandem/route"
)

// SocketFile is the name of the socket in a data directory by which commands on the same machine reach the server that has the
// directory open. Anyone who may open it may read and write the database as well, so it asks for no token: they are the local user.
const SocketFile = "tandem.sock"

// maxSocketPath is how long the name of a socket may be on every system that has them.
const maxSocketPath = 100

// socketPath is the name of the socket of a data directory, from here if that is shorter; empty when it is too long for a socket.
func socketPath(dir string) string {
	path := filepath.Join(dir, SocketFile)
	if here, err := os.Getwd(); err == nil && filepath.IsAbs(path) {
		if rel, err := filepath.Rel(here, path); err == nil && len(rel) < len(path) {
			path = rel
		}
	}
	if len(path) > maxSocketPath {
		return ""
	}
	return path
}

// listenBeside opens the socket of a data directory that this process has for itself: one that is left of an earlier process is
// replaced. Without one (a name that is too long, a file system without sockets) commands are told to name the server.
func listenBeside(ctx context.Context, dir string, log *slog.Logger) net.Listener {
	path := socketPath(dir)
	if path == "" {
		log.Info("the name of the data directory is too long for a socket; commands beside this server need --server")
		return nil
	}
	// It gets its mode before it gets its name, so that other accounts can never open it.
	fresh := path + ".new"
	var config net.ListenConfig
	listener, err := func() (*net.UnixListener, error) {
		if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		l, err := config.Listen(ctx, "unix", fresh)
		if err != nil {
			return nil, err
		}
		l.(*net.UnixListener).SetUnlinkOnClose(false) // it has another name then
		if err = os.Chmod(fresh, 0o600); err == nil {
			err = os.Rename(fresh, path)
		}
		if err != nil {
			return nil, errors.Join(err, l.Close(), os.Remove(fresh))
		}
		return l.(*net.UnixListener), nil
	}()
	if err != nil {
		log.Info("there is no socket in the data directory; commands beside this server need --server", "error", err)
		return nil
	}
	return besideListener{UnixListener: listener, path: path}
}

// besideListener removes the file of its socket when it is closed.
type besideListener struct {
	*net.UnixListener
	path string
}

// Close implements net.Listener.
func (l besideListener) Close() error {
	if err := os.Remove(l.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fmt.Errorf("remove the socket: %w", err), l.UnixListener.Close())
	}
	return l.UnixListener.Close()
}

// serveBeside answers what comes by the socket of a data directory, as the local user, with what answers everybody else. It must be
// stopped, after the streams were ended.
func serveBeside(ctx context.Context, dir string, handler http.Handler, log *slog.Logger) (stop func()) {
	listener := listenBeside(ctx, dir, log)
	if listener == nil {
		return func() {}
	}
	web := &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			p := Local()
			if account := peerAccount(c); account != "" {
				p.Means.Address = account
			}
			return route.As(ctx, p)
		},
	}
	stopped := make(chan struct{})
	go func() { // it ends with stop
		defer close(stopped)
		if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("commands on this machine do not reach the server by its socket any more", "error", err)
		}
	}()
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		if err := web.Shutdown(ctx); err != nil {
			log.Warn("requests of commands were broken off", "error", errors.Join(err, web.Close()))
		}
		<-stopped
	}
}

// connectBeside reaches the server that has a data directory open; false when there is none that can be reached by its socket.
func connectBeside(ctx context.Context, dir string) (*Connection, bool, error) {
	path := socketPath(dir)
	if path == "" {
		return nil, false, nil
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}
	probe, err := dial(ctx, "", "")
	if err != nil { // nothing listens: the process that has the directory is not a server, or is starting or stopping
		return nil, false, nil
	}
	if err := probe.Close(); err != nil {
		return nil, false, fmt.Errorf("reach the server of %q: %w", dir, err)
	}
	transport := &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 8, DisableCompression: true}
	c, err := client.New(client.Options{URL: "http://localhost", HTTP: &http.Client{Transport: transport}})
	if err != nil {
		return nil, false, err
	}
	return &Connection{Client: c, beside: transport}, true, nil
}
