package postgres

import (
	"context"
	"io/fs"
)

// MigrateBy brings a database to a version with other files than those of this program.
func MigrateBy(ctx context.Context, address string, files fs.FS, version int64) error {
	pool, err := connect(ctx, address)
	if err != nil {
		return err
	}
	defer pool.Close()
	return migrateBy(ctx, pool, files, version)
}

// Known is the version that this program brings databases to.
var Known = known // read-only
