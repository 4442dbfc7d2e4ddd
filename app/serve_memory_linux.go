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
// are clean and come back from the file when they are used again, so an idle server takes only the memory that it uses.
func restAfterStart(log *slog.Logger) {
	debug.FreeOSMemory()
	if err := forgetBinary(); err != nil {
		log.Debug("pages of the binary stay in memory", "error", err)
	}
}

// forgetBinary unmaps the pages of the program and its constants. Parts that were written to, as a loader does before it makes
// them read-only, are left alone: the file does not have what is in them.
func forgetBinary() (err error) {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return err
	}
	defer func() {
		if cerr := maps.Close(); err == nil {
			err = cerr
		}
	}()
	var part struct {
		begin, size uint64
		ours        bool
	}
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) >= 5 && strings.Contains(fields[0], "-"): // begin-end rights offset device inode path
			from, to, _ := strings.Cut(fields[0], "-")
			begin, err1 := strconv.ParseUint(from, 16, 64)
			end, err2 := strconv.ParseUint(to, 16, 64)
			part.begin, part.size = begin, end-begin
			part.ours = err1 == nil && err2 == nil && end > begin && len(fields) == 6 && fields[5] == self &&
				!strings.Contains(fields[1], "w")
		case part.ours && len(fields) == 3 && fields[0] == "Anonymous:": // what is no longer as in the file
			if fields[1] != "0" {
				continue
			}
			if _, _, failed := unix.Syscall(unix.SYS_MADVISE, uintptr(part.begin), uintptr(part.size), unix.MADV_DONTNEED); failed != 0 {
				return failed
			}
		}
	}
	return lines.Err()
}
