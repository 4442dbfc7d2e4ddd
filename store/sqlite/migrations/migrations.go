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
	err = each(func(number int64, _ string) { newest = max(newest, number) })
	return newest, err
}

// After names the changes that a database of a version lacks, in their order.
func After(version int64) (names []string, err error) {
	names = []string{}
	err = each(func(number int64, name string) {
		if number > version {
			names = append(names, name)
		}
	})
	return names, err
}

// each hands over the number and the name of each change, in the order of the names, which is that of the numbers.
func each(change func(number int64, name string)) error {
	files, err := fs.ReadDir(Files, ".")
	if err != nil {
		return err
	}
	for _, f := range files {
		name := strings.TrimSuffix(f.Name(), ".sql")
		digits, _, _ := strings.Cut(name, "_")
		number, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return fmt.Errorf("migration %q has no number: %w", f.Name(), err)
		}
		change(number, name)
	}
	return nil
}
