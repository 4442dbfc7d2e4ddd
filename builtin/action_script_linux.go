package builtin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tandem/fault"
)

// pipeDelay is how long outputs may stay open after the process and its group have ended: a process that has left the
// group may hold them.
const pipeDelay = time.Second

// run starts the process in a group of its own, under its limits, and returns when the whole group is gone. An error
// before the process was started says so by its code; one after that is timeout, canceled or outcome_unknown.
func (p *process) run(ctx context.Context) (processEnd, error) {
	// The thread that starts the process is the one that may hold it, and that it dies with.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := &exec.Cmd{
		Path: p.path, Args: append([]string{p.path}, p.args...), Env: p.env, Stdin: strings.NewReader(p.stdin), Stdout: &p.stdout, Stderr: &p.stderr,
		// The directory is open already, and found in the new process under its number.
		Dir:       fmt.Sprintf("/proc/self/fd/%d", p.dir.Fd()),
		WaitDelay: pipeDelay,
		// The new process stops before its first instruction, so that its limits are there before it can do anything.
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true, Ptrace: true, Pdeathsig: syscall.SIGKILL},
	}
	// Whoever started the server may have left it descriptors that are not for the process; all of ours are closed anyway.
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil && err != unix.ENOSYS && err != unix.EINVAL {
		return processEnd{}, fault.New(fault.Internal, "the process could not be started").WithCause(err)
	}
	if err := cmd.Start(); err != nil {
		return processEnd{}, notStarted(p.path, err)
	}
	pid := cmd.Process.Pid
	if err := p.limit(pid); err != nil {
		// It has not run yet, so nothing was done.
		err = errors.Join(err, syscall.Kill(pid, syscall.SIGKILL), cmd.Wait())
		return processEnd{}, fault.New(fault.Unsupported, "the process cannot be put under its limits on this system").WithCause(err)
	}
	stopped := make(chan error, 1)
	ended := make(chan struct{})
	go func() { // it ends with the process
		clock := time.NewTimer(time.Until(p.until))
		defer clock.Stop()
		var why error
		select {
		case <-ended:
			stopped <- nil
			return
		case <-clock.C:
			why = fault.Newf(fault.Timeout, "the process took longer than %v and was ended; what it had done by then stays. Raise timeout or make the work smaller", p.timeout.Round(100*time.Millisecond)).Final()
		case <-ctx.Done():
			why = fault.New(fault.Canceled, "the process was ended because its attempt was stopped").WithCause(context.Cause(ctx))
		}
		if err := killGroup(pid); err != nil {
			why = fault.New(fault.OutcomeUnknown, "the process could not be ended").WithCause(errors.Join(why, err))
		}
		stopped <- why
	}()
	// Its number is not given away before it is waited for below, so the group that is killed is this one.
	err := awaitExit(pid)
	close(ended)
	why := <-stopped
	err = errors.Join(err, killGroup(pid))
	waited := cmd.Wait()
	if _, failed := errors.AsType[*exec.ExitError](waited); failed || errors.Is(waited, exec.ErrWaitDelay) {
		waited = nil
	}
	if why != nil {
		return processEnd{code: -1}, why
	}
	if err = errors.Join(err, waited); cmd.ProcessState == nil || err != nil && !closedEarly(err) {
		return processEnd{code: -1}, fault.New(fault.OutcomeUnknown, "how the process ended could not be seen").WithCause(err)
	}
	end := processEnd{code: cmd.ProcessState.ExitCode()}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		end.signal, end.cpu = unix.SignalName(status.Signal()), status.Signal() == syscall.SIGXCPU
	}
	return end, nil
}

// closedEarly says that a process did not read all of its input, which is its own business.
func closedEarly(err error) bool { return errors.Is(err, syscall.EPIPE) }

func notStarted(path string, err error) error {
	switch {
	case errors.Is(err, syscall.EPERM):
		return fault.New(fault.Unsupported, "this system lets no process be held before it runs (ptrace is forbidden), so it could not be limited; ask the operator").WithCause(err)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOEXEC):
		return fault.Newf(fault.Unsupported, "the program %q cannot be started here; the operator corrects --script-interpreters or --script-commands", path).WithCause(err)
	case errors.Is(err, syscall.E2BIG):
		return fault.New(fault.TooLarge, "the arguments and variables of the process are too large together; hand them over as stdin").WithCause(err)
	}
	return fault.New(fault.Internal, "the process could not be started").WithCause(err)
}

// limit waits until the new process stands before its first instruction, puts it under its limits and lets it go.
func (p *process) limit(pid int) error {
	var status syscall.WaitStatus
	for {
		if _, err := syscall.Wait4(pid, &status, 0, nil); err == nil {
			break
		} else if err != syscall.EINTR {
			return fmt.Errorf("wait for the new process: %w", err)
		}
	}
	if !status.Stopped() {
		return fmt.Errorf("the new process did not stop: %v", status)
	}
	seconds, tasks := uint64(p.timeout/time.Second)+1, running()+p.limits.processes
	for _, l := range []struct {
		resource   int
		soft, hard uint64
	}{
		{unix.RLIMIT_CPU, seconds, seconds + 1}, // the first signal can be told from others, the second cannot be caught
		{unix.RLIMIT_DATA, p.limits.memory, p.limits.memory},
		{unix.RLIMIT_NOFILE, p.limits.openFiles, p.limits.openFiles},
		{unix.RLIMIT_FSIZE, p.limits.fileSize, p.limits.fileSize},
		{unix.RLIMIT_NPROC, tasks, tasks},
		{unix.RLIMIT_CORE, 0, 0},
	} {
		var now unix.Rlimit
		if err := unix.Prlimit(pid, l.resource, nil, &now); err != nil {
			return fmt.Errorf("read a limit: %w", err)
		}
		l.hard = min(l.hard, now.Max) // what the operator has bounded already stays so
		if err := unix.Prlimit(pid, l.resource, &unix.Rlimit{Cur: min(l.soft, l.hard), Max: l.hard}, nil); err != nil {
			return fmt.Errorf("set a limit: %w", err)
		}
	}
	return syscall.PtraceDetach(pid)
}

// running counts the tasks of this user: the limit of processes is one of the user's, and what else runs must not use it up.
// The superuser is not bound by it.
func running() uint64 {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	var tasks uint64
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		var info syscall.Stat_t
		if syscall.Stat("/proc/"+e.Name()+"/task", &info) == nil && int(info.Uid) == os.Getuid() && info.Nlink > 2 {
			tasks += uint64(info.Nlink) - 2
		}
	}
	return tasks
}

// awaitExit returns when the process has ended, and leaves its status and its number for cmd.Wait.
func awaitExit(pid int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return err
		}
	}
}

// killGroup ends a process and all that it has started and that stayed in its group.
func killGroup(pid int) error {
	if err := syscall.Kill(-pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
		return err
	}
	return nil
}
