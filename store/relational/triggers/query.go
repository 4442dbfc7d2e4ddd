package triggers

import (
	"context"
	"database/sql/driver"

	"tandem/identity"
	"tandem/store"
	"tandem/store/relational"
)

// changeOne runs a statement that changes one row of the principal's workspace, which is its last argument. Without such a row nothing is written and the
// error is the given one.
func (x *Triggers) changeOne(ctx context.Context, p identity.Principal, missing error, text string, args ...driver.Value) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	return relational.ChangeOne(ctx, x.db, missing, text, append(args, workspace)...)
}
