package benchmark

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"
)

// onDisk is how many bytes a database takes that is not in use now: the one of PostgreSQL at an address, or, without an address, the
// files in a data directory.
func onDisk(ctx context.Context, dir, address string) (size int64, err error) {
	if address == "" {
		files, err := filepath.Glob(filepath.Join(dir, "tandem.db*"))
		for _, file := range files {
			info, serr := os.Stat(file)
			if errors.Is(serr, fs.ErrNotExist) {
				continue // a log that is removed with the last connection
			}
			if serr != nil {
				return 0, serr
			}
			size += info.Size()
		}
		return size, err
	}
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return 0, fmt.Errorf("ask how large the database is: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	return size, conn.QueryRow(ctx, `SELECT pg_database_size(current_database())`).Scan(&size)
}
