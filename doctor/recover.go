package doctor

import (
	"context"
	"errors"
	"fmt"

	"tandem/fault"
	"tandem/store/sqlite"
	"tandem/store/sqlite/datadir"
)

// Recovery is what came of looking for what a data directory lacks.
type Recovery struct {
	// Lost is what is missing of what was acknowledged; empty: nothing.
	Lost string `json:"lost,omitempty"`
	// Accepted says that the directory can be used again, without it. The database says so from now on.
	Accepted bool `json:"accepted"`
}

// Recover says what a data directory lacks of what was acknowledged. With accept the directory is made fit for use again; what
// is missing stays missing. A database that is missing altogether cannot be accepted.
func Recover(ctx context.Context, dir string, accept bool) (Recovery, error) {
	err := datadir.Sound(ctx, dir)
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Details[datadir.Lost] == nil {
		return Recovery{}, err
	}
	r := Recovery{Lost: f.Message}
	if !accept {
		return r, nil
	}
	db, err := sqlite.Open(ctx, sqlite.Options{Dir: dir, AcceptLoss: true})
	if err != nil {
		return r, err
	}
	if err := db.Close(); err != nil {
		return r, fmt.Errorf("close data directory %q: %w", dir, err)
	}
	r.Accepted = true
	return r, nil
}
