package upkeep

import (
	"context"
	"database/sql/driver"
	"slices"
	"time"

	"tandem/identity"
	"tandem/store"
	"tandem/store/relational"
	"tandem/store/relational/blobnames"
)

// SweepBlobs implements [store.Upkeep].
func (x *Upkeep) SweepBlobs(ctx context.Context, p identity.Principal, orphans, young time.Time) (removed int, bytes int64, err error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return 0, 0, err
	}
	for ctx.Err() == nil {
		doubts, err := relational.Query(ctx, x.db, `SELECT hash FROM blob_doubts WHERE workspace_id = ?`, func(s relational.Scanner) (h string, err error) { return h, s.Scan(&h) }, workspace)
		if err != nil {
			return removed, bytes, err
		}
		if len(doubts) == 0 && orphans.IsZero() {
			return removed, bytes, nil
		}
		n, size, more, err := x.sweepOnce(ctx, workspace, doubts, orphans, young)
		removed, bytes = removed+n, bytes+size
		if err != nil || !more {
			return removed, bytes, err
		}
	}
	return removed, bytes, context.Cause(ctx)
}

// sweepOnce removes what of the doubted, and of those that were put before a time, nothing names. More says that it has left others in
// doubt.
func (x *Upkeep) sweepOnce(ctx context.Context, workspace string, doubts []string, orphans, young time.Time) (removed int,
	bytes int64, more bool, err error) {
	suspects, sure := blobnames.Names{}, []string(nil) // sure are values that are not looked at, and may name others
	for _, name := range doubts {
		suspects[name] = true
	}
	there := blobnames.Names{}
	waits := false // one is too young
	if err := x.o.Blobs.Each(ctx, workspace, func(name string, _ int64, put time.Time) error {
		switch doubted := suspects[name]; {
		case put.After(young):
			waits = waits || doubted
			delete(suspects, name)
			sure = append(sure, name)
			there[name] = there[name] || doubted
		case doubted:
			there[name] = true
		case !orphans.IsZero() && put.Before(orphans):
			suspects[name], there[name] = true, true
		default:
			sure = append(sure, name)
		}
		return nil
	}); err != nil {
		return 0, 0, false, err
	}
	for name := range suspects { // order does not matter: each is looked at by itself
		if !there[name] {
			delete(suspects, name) // it looked like a name
		}
	}
	if len(suspects) > 0 {
		if err := x.clear(ctx, workspace, suspects, sure); err != nil {
			return 0, 0, false, err
		}
	}
	var settled []string
	for _, name := range doubts {
		if !waits || !there[name] || suspects[name] {
			settled = append(settled, name)
		}
	}
	dead := make([]string, 0, len(suspects))
	for name := range suspects { // order does not matter: it is sorted
		dead = append(dead, name)
	}
	slices.Sort(dead)
	removed, bytes, fresh, err := x.removeBlobs(ctx, workspace, dead, young)
	if err != nil {
		return removed, bytes, false, err
	}
	err = x.write(ctx, func(w writing) error {
		for _, name := range append(settled, dead...) {
			if _, err := w.Exec(`DELETE FROM blob_doubts WHERE workspace_id = ? AND hash = ?`, workspace, name); err != nil {
				return err
			}
		}
		return w.doubt(workspace, fresh)
	})
	return removed, bytes, len(fresh) > 0, err
}

// removeBlobs removes values. What they named is noted before, so that a process which dies in between leaves nothing behind for good.
func (x *Upkeep) removeBlobs(ctx context.Context, workspace string, dead []string, young time.Time) (removed int, bytes int64,
	fresh blobnames.Names, err error) {
	fresh = blobnames.Names{}
	const together = 100
	for len(dead) > 0 {
		part := dead[:min(len(dead), together)]
		dead = dead[len(part):]
		named := blobnames.Names{}
		for _, name := range part {
			if err := x.o.Blobs.Names(ctx, workspace, name, named); err != nil {
				return removed, bytes, fresh, err
			}
			delete(named, name)
		}
		if len(named) > 0 {
			if err := x.write(ctx, func(w writing) error { return w.doubt(workspace, named) }); err != nil {
				return removed, bytes, fresh, err
			}
		}
		n, size, err := x.o.Blobs.Remove(workspace, part, young)
		removed, bytes = removed+n, bytes+size
		if err != nil {
			return removed, bytes, fresh, err
		}
		for name := range named { // order does not matter: it is a set
			fresh[name] = true
		}
	}
	for name := range fresh { // order does not matter: each is looked at by itself
		if _, err := x.o.Blobs.Stat(identity.System(workspace), name); err != nil {
			delete(fresh, name) // it only looked like a name, or it is gone as well
		}
	}
	return removed, bytes, fresh, nil
}

// clear takes those out of a set of values that something names: a row of any table, or a value that is in use.
func (x *Upkeep) clear(ctx context.Context, workspace string, suspects blobnames.Names, sure []string) error {
	used := sure // values that are in use and were not looked into yet
	acquit := func(name string) {
		delete(suspects, name)
		used = append(used, name)
	}
	if err := x.o.Files.EachColumn(ctx, func(columns ...driver.Value) { suspects.FindAmong(acquit, columns...) }); err != nil {
		return err
	}
	for len(used) > 0 && len(suspects) > 0 {
		name := used[len(used)-1]
		used = used[:len(used)-1]
		if err := x.o.Blobs.Named(ctx, workspace, name, suspects, acquit); err != nil {
			return err
		}
	}
	return nil
}
