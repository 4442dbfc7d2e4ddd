package local

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"time"

	"tandem/fault"
	"tandem/host"
	"tandem/identity"
	"tandem/shortage"
	"tandem/store"
)

// A read that fails may work a moment later: the process has run out of file descriptors, a network disk is away. An execution is not given
// up for that at once, since it would rest until the next start. Final errors (not found, not readable, the store has stopped) are not
// retried. It waits for a database that is away as long as it takes, unless there is a carrier: another process may reach it.

// How often a read is tried and how long the pauses are: about two minutes in all. While the database is away they are short.
const (
	readTries      = 12
	firstReadPause = 100 * time.Millisecond
	lastReadPause  = 30 * time.Second
	awayPause      = time.Second
	// awayPatience is how long a process of several waits for the database, endedPatience how long with the outcome of a run that may be
	// repeated.
	awayPatience  = 30 * time.Second
	endedPatience = 5 * time.Minute
)

// patiently reads, and tries again as long as that may help.
func (h *Host) patiently(ctx context.Context, read func() error) error {
	pause, began := firstReadPause, time.Now()
	for try := 1; ; try++ {
		err := read()
		away := h.waitsFor(err, began)
		if away {
			pause = min(pause, awayPause)
		}
		if !away && (try >= readTries || errors.Is(err, store.ErrUnavailable)) || !h.mayPass(ctx, err) || !h.rest(ctx, pause, err) {
			return err
		}
		pause = min(2*pause, lastReadPause)
	}
}

// waitsFor says that the database is away and is waited for since a time.
func (h *Host) waitsFor(err error, since time.Time) bool {
	return errors.Is(err, store.ErrUnavailable) && (h.opts.Carrier == nil || time.Since(since) < awayPatience)
}

// mayPass says that an error is not a decision.
func (h *Host) mayPass(ctx context.Context, err error) bool {
	_, decided := errors.AsType[*fault.Error](err)
	return err != nil && (!decided || shortage.Is(err) || errors.Is(err, store.ErrUnavailable)) && ctx.Err() == nil && h.ctx.Err() == nil
}

// rest waits before the next try. It fails when there is to be none.
func (h *Host) rest(ctx context.Context, pause time.Duration, err error) bool {
	h.opts.Log.Warn("something did not work and is tried again", "pause", pause, "error", err)
	clock := time.NewTimer(pause)
	defer clock.Stop()
	select {
	case <-clock.C:
		return true
	case <-ctx.Done():
	case <-h.ctx.Done():
	}
	return false
}

// patientSource reads executions patiently.
type patientSource struct {
	host.Source
	host *Host
}

// Rows implements host.Source. It goes on behind the last row that was read.
func (s patientSource) Rows(ctx context.Context, p identity.Principal, execution string, after uint64) iter.Seq2[host.Row, error] {
	return func(yield func(host.Row, error) bool) {
		stopped := false
		err := s.host.patiently(ctx, func() error {
			for row, err := range s.Source.Rows(ctx, p, execution, after) {
				if err != nil {
					return err
				}
				if !yield(row, nil) {
					stopped = true
					return nil
				}
				after = row.Seq
			}
			return nil
		})
		if err != nil && !stopped {
			yield(host.Row{}, err)
		}
	}
}

// Snapshot implements host.Source.
func (s patientSource) Snapshot(ctx context.Context, p identity.Principal, execution string) (body []byte, ok bool, err error) {
	err = s.host.patiently(ctx, func() (err error) {
		body, ok, err = s.Source.Snapshot(ctx, p, execution)
		return err
	})
	return body, ok, err
}

// Blob implements host.Source.
func (s patientSource) Blob(ctx context.Context, p identity.Principal, b host.Blob) (value json.RawMessage, err error) {
	err = s.host.patiently(ctx, func() (err error) {
		value, err = s.Source.Blob(ctx, p, b)
		return err
	})
	return value, err
}
