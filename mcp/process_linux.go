package mcp

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// start starts the process in a group of its own. It is killed with the thread that started it, so that thread is kept: should
// this program die, so does the process.
func (p *process) start() error {
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		// Without reaping it: as long as its number is taken, the group that is signalled is its own.
		for unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
		}
		close(p.exited)
		<-p.swept
	}()
	return <-started
}

// reap gives the number of the process away.
func (p *process) reap() error {
	p.waited = p.cmd.Wait()
	if _, ok := errors.AsType[*exec.ExitError](p.waited); ok {
		return nil // how a server ends says nothing
	}
	return p.waited
}

// terminate ends all that there is: politely first, then for certain.
func (p *process) terminate() {
	p.signal(syscall.SIGTERM)
	for until := time.Now().Add(termGrace); time.Now().Before(until) && len(p.family()) > 0; {
		time.Sleep(5 * time.Millisecond)
	}
	// Each round kills all that is seen; what they have started in the meantime is seen in the next.
	for range 100 {
		if p.signal(syscall.SIGKILL) == 0 {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// signal sends a signal to all that there is, and says how many those are.
func (p *process) signal(s syscall.Signal) int {
	left := p.family()
	if len(left) == 0 {
		return 0
	}
	// The group at once, so that nothing of it goes on alone. Its number is not given away before it is reaped.
	_ = syscall.Kill(-p.cmd.Process.Pid, s) // what it does not reach is seen again
	for _, pid := range left {
		// The handle keeps meaning the process that was looked at, whatever becomes of its number.
		handle, err := os.FindProcess(pid)
		if err != nil {
			continue // it has ended
		}
		if apart, ok := p.ours(pid); ok && apart {
			_ = handle.Signal(s) // as above
		}
		_ = handle.Release() // it holds no more than the number
	}
	return len(left)
}

// family lists what runs of the process: its group, and everything that has its mark.
func (p *process) family() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var found []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if _, ok := p.ours(pid); ok {
			found = append(found, pid)
		}
	}
	return found
}

// ours says whether a process runs and belongs to this one, and whether it has left the group.
func (p *process) ours(pid int) (apart, ok bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false, false // it has ended
	}
	// The name, in brackets, may hold anything; state, parent and group come behind it.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 3 || fields[0] == "Z" || fields[0] == "X" {
		return false, false
	}
	if fields[2] == strconv.Itoa(p.cmd.Process.Pid) {
		return false, true
	}
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	return true, err == nil && slices.ContainsFunc(bytes.Split(env, []byte{0}), func(v []byte) bool { return string(v) == p.mark })
}
