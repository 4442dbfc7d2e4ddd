package app

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

	"tandem/sandbox"
)

// waitsForPython is the message for a person while something waits for the interpreter.
const waitsForPython = `the Python interpreter is being compiled, which takes some seconds once on a machine; "tandem sandbox prepare" does it ahead`

// interpreterCache is where compiled interpreters are kept: in one place for all data directories of this user, or in the data
// directory where there is no such place or others could write it.
func interpreterCache(o Options, log *slog.Logger) string {
	if o.CodeCache != "" {
		return o.CodeCache
	}
	dir, err := sandbox.MachineCache()
	if err == nil {
		return dir
	}
	log.Info("compiled interpreters are kept in the data directory: the user's cache directory is not used", "reason", err)
	return filepath.Join(o.Dir, "sandbox")
}

// PreparePython compiles the Python interpreter into the cache that all data directories of this user share, unless it is there. It returns
// that place, and whether there was anything to do.
func PreparePython(ctx context.Context) (dir string, made bool, err error) {
	if dir, err = sandbox.MachineCache(); err != nil {
		return "", false, err
	}
	pool := sandbox.New(sandbox.Options{Dir: dir})
	defer pool.Close()
	if pool.Prepared() {
		return dir, false, nil
	}
	return dir, true, pool.Prepare(ctx)
}

// preparePython compiles the interpreter while the server serves, so that the first Python code need not wait for it.
func (i *Instance) preparePython(ctx context.Context, log *slog.Logger) {
	if i.sandbox.Prepared() {
		return
	}
	log.Info("the Python interpreter is being compiled in the background, once for this machine; code that comes meanwhile waits for it")
	begun := time.Now()
	if err := i.sandbox.Prepare(ctx); err != nil {
		if ctx.Err() == nil {
			log.Warn("the Python interpreter could not be compiled; the first Python code tries it again", "error", err)
		}
		return
	}
	log.Info("the Python interpreter is ready", "took", time.Since(begun).Round(100*time.Millisecond))
}
