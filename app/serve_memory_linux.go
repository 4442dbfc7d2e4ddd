package app

import (
	"bufio"
	"log/slog"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// restAfterStart gives back what only starting has needed: garbage, and the pages of the binary that were touched once. They
// are clean and come back from the file when they are used again, so an idle server is as large as what it does.
func restAfterStart(log *slog.Logger) {
	debug.FreeOSMemory()
	if err := forgetBinary(); err != nil {
		log.Debug("pages of the binary stay in memory", "error", err)
	}
}

// forgetBinary unmaps the pages of the program and its constants, which nobody can have written to.
func forgetBinary() (err error) {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return err
	}
	defer func() {
		if cerr := maps.Close(); err == nil {
			err = cerr
		}
	}()
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		// begin-end rights offset device inode path
		fields := strings.Fields(lines.Text())
		if len(fields) < 6 || fields[5] != self || strings.Contains(fields[1], "w") {
			continue
		}
		from, to, _ := strings.Cut(fields[0], "-")
		begin, err1 := strconv.ParseUint(from, 16, 64)
		end, err2 := strconv.ParseUint(to, 16, 64)
		if err1 != nil || err2 != nil || end <= begin {
			continue // nothing that this kernel usually says
		}
		if _, _, failed := unix.Syscall(unix.SYS_MADVISE, uintptr(begin), uintptr(end-begin), unix.MADV_DONTNEED); failed != 0 {
			return failed
		}
	}
	return lines.Err()
}
