//go:build !(linux || darwin || freebsd)

package sqlite

import (
	"math"
	"os"
	"runtime"

	"tandem/fault"
)

// lockDir refuses: without a lock that goes with the process, two of them could write to one journal.
func lockDir(string) (*os.File, error) {
	return nil, fault.Newf(fault.Unsupported, "data directories cannot be locked on %s; use PostgreSQL", runtime.GOOS)
}

func freeSpace(string) (uint64, error) { return math.MaxUint64, nil }

// identify is not used where directories cannot be locked.
func identify(path string) (fileID, int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return fileID{}, 0, err
	}
	return fileID{}, info.Size(), nil
}

func noSpace(error) bool { return false }

func isReadOnly(error) bool { return false }

func syncDir(*os.File) error { return nil }

// unlockDir lets go of the directory.
func unlockDir(f *os.File) error { return f.Close() }
