//go:build darwin || freebsd

package datadir

import "syscall"

func modified(s *syscall.Stat_t) int64 { return s.Mtimespec.Nano() }
