package datadir

import "syscall"

func modified(s *syscall.Stat_t) int64 { return s.Mtim.Nano() }
