//go:build !(linux || darwin || freebsd)

package datadir

import (
	"math"
	"os"
	"runtime"

	"tandem/fault"
)

// Lock refuses: without a lock that goes with the process, two of them could write to one journal.
func Lock(string) (*os.File, error) {
	return nil, fault.Newf(fault.Unsupported, "data directories cannot be locked on %s; use PostgreSQL", runtime.GOOS)
}

// FreeSpace cannot say anything here.
func FreeSpace(string) (uint64, error) { return math.MaxUint64, nil }

// identify is not used where directories cannot be locked.
func identify(path string) (fileID, int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return fileID{}, 0, err
	}
	return fileID{}, info.Size(), nil
}

// NoSpace cannot be told here.
func NoSpace(error) bool { return false }

func isReadOnly(error) bool { return false }

// SyncDir does nothing where directories cannot be synced.
func SyncDir(*os.File) error { return nil }

// Unlock lets go of the directory.
func Unlock(f *os.File) error { return f.Close() }
