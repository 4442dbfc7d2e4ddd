package sqlite

import (
	"context"

	"tandem/store"
	"tandem/store/relational/auditlog"
)

// inTransaction runs a function in the next transaction and returns when that is on disk, see [writer.commitNext]. The entries for the
// audit log that wait in the context are written in the same transaction, unless the function refuses or has changed nothing.
func (w *writer) inTransaction(ctx context.Context, run func(*writer) error) error {
	entries := store.PendingEntries(ctx)
	if len(entries) == 0 {
		return w.commitNext(ctx, run)
	}
	entered := false
	err := w.commitNext(ctx, func(w *writer) error {
		w.unchanged, entered = false, false
		if err := run(w); err != nil || w.unchanged {
			return err
		}
		for _, e := range entries {
			if err := auditlog.Enter(transaction{w}, e.AuditEntry, &w.entered); err != nil {
				return err
			}
		}
		entered = true
		return nil
	})
	if err == nil && entered {
		for _, e := range entries {
			e.Written()
		}
	}
	return err
}
