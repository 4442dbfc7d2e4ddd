// Package migrations has the changes that bring a database of the SQLite store from one version to the next, in the order of their
// numbers. A released one never changes.
package migrations

import (
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// Files are the changes, one file each.
//
//go:embed *.sql
var Files embed.FS

// Newest is the number of the last change: the version of a database that has all of them.
func Newest() (newest int64, err error) {
	files, err := fs.ReadDir(Files, ".")
	if err != nil {
		return 0, err
	}
	for _, f := range files {
		number, _, _ := strings.Cut(f.Name(), "_")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("migration %q has no number: %w", f.Name(), err)
		}
		newest = max(newest, n)
	}
	return newest, nil
}
