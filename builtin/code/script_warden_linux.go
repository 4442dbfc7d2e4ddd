package code

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tandem/fault"
	"tandem/shortage"
)

// A warden is a process of our own binary that stands between the server and one host process. Whatever that process
// starts, and whatever leaves its group or loses its parent, ends up as a child of the warden and is ended with it: when
// the process ends, when the server lets go of the leash, and when the server dies, since the leash is a pipe that only
// the server holds open.

// wardenArg is the one argument of a re-executed binary that is to be a warden.
const wardenArg = "tandem-script-warden"

// The files of a warden besides those of its process.
const (
	wardenLeash   = 3
	wardenReports = 4
)

// wardenOrders is what a warden reads from its leash before it starts the process. Its working directory is that of the
// process already.
type wardenOrders struct {
	Path                                            string
	Args, Env                                       []string
	Remove                                          string // a directory that is of no use afterwards; may be empty
	Seconds, Memory, OpenFiles, Processes, FileSize uint64
}

// wardenReport is what a warden says: first that it is there, then how it went.
type wardenReport struct {
	Ready bool
	// Refused says why the process was not started.
	Refused *wardenRefusal `json:",omitempty"`
	// Ended says that the process has ended, and everything with it; Stopped that the warden had to see to that.
	Ended, Stopped bool
	Code           int
	Signal         string
	CPU            bool
}

type wardenRefusal struct {
	Code    fault.Code
	Message string
	Detail  string
}

// IsWarden says whether this process was started to look after a host process. The main of a program that allows
// scripts asks it before anything else, and calls [Warden] then.
func IsWarden() bool { return len(os.Args) == 2 && os.Args[1] == wardenArg }

// Warden looks after one host process and exits. It never returns.
func Warden() {
	if err := serveWarden(); err != nil {
		os.Exit(1) // nobody is left to report to; the server sees that there was no report
	}
	os.Exit(0)
}

func serveWarden() error {
	// The thread that starts the process is the one that may hold it, and that it dies with.
	runtime.LockOSThread()
	leash, reports := os.NewFile(wardenLeash, "leash"), json.NewEncoder(os.NewFile(wardenReports, "reports"))
	// Neither these two nor what the server was started with are for the process.
	if err := unix.CloseRange(wardenLeash, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		syscall.CloseOnExec(wardenLeash)
		syscall.CloseOnExec(wardenReports)
	}
	err := reports.Encode(wardenReport{Ready: true})
	if err != nil {
		return err
	}
	var o wardenOrders
	d := json.NewDecoder(leash)
	if err := d.Decode(&o); err != nil {
		return err // the server has gone, or thought better of it
	}
	report := wardenReport{Ready: true}
	if refused := o.watch(io.MultiReader(d.Buffered(), leash), &report); refused != nil {
		f := fault.From(refused)
		report.Refused = &wardenRefusal{f.Code, f.Message, f.Detail}
	}
	if o.Remove != "" {
		err = os.RemoveAll(o.Remove)
	}
	return errors.Join(err, reports.Encode(report))
}

// watch runs the process to its end and fills in the report. An error means that the process has not run.
func (o *wardenOrders) watch(leash io.Reader, report *wardenReport) error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fault.New(fault.Unsupported, "this system cannot keep a process and its children together").WithCause(err)
	}
	// The new process stops before its first instruction, so that its limits are there before it can do anything.
	pid, err := syscall.ForkExec(o.Path, append([]string{o.Path}, o.Args...), &syscall.ProcAttr{
		Env: o.Env, Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setpgid: true, Ptrace: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return notStarted(o.Path, err)
	}
	if err := o.limit(pid); err != nil {
		// It has not run yet, so nothing was done.
		_, werr := sweep(pid)
		return fault.New(fault.Unsupported, "the process cannot be put under its limits on this system").WithCause(errors.Join(err, werr))
	}
	var mu sync.Mutex // guards over and the report's Stopped
	over := false
	go func() { // it ends with this process
		_, _ = io.Copy(io.Discard, leash) // however the leash ends, it has
		mu.Lock()
		defer mu.Unlock()
		if !over {
			report.Stopped = true
			_ = syscall.Kill(-pid, syscall.SIGKILL) // what it does not reach is swept below
		}
	}()
	// Its number is not given away before it is swept, so the group that is killed is this one.
	err = awaitExit(pid)
	mu.Lock()
	over = true
	mu.Unlock()
	status, serr := sweep(pid)
	if err = errors.Join(err, serr); err != nil {
		return nil // a report without an end says that nobody knows
	}
	report.Ended, report.Code = true, status.ExitStatus()
	if status.Signaled() {
		report.Signal, report.CPU = unix.SignalName(status.Signal()), status.Signal() == syscall.SIGXCPU
	}
	return nil
}

// sweep ends every process that is left: the children of this one, and those that become its children when their parents
// end. It returns how the first of them ended.
func sweep(first int) (syscall.WaitStatus, error) {
	var end syscall.WaitStatus
	if err := killGroup(first); err != nil {
		return end, err
	}
	for {
		found, err := killChildren()
		if err != nil {
			return end, err
		}
		options := 0
		if found == 0 {
			options = syscall.WNOHANG // one may have come that is not killed yet
		}
		var status syscall.WaitStatus
		for {
			pid, err := syscall.Wait4(-1, &status, options, nil)
			if err == syscall.EINTR {
				continue
			}
			if err == syscall.ECHILD {
				return end, nil
			}
			if err != nil {
				return end, err
			}
			if pid == 0 {
				break
			}
			if pid == first && (status.Exited() || status.Signaled()) {
				end = status
			}
			options = syscall.WNOHANG // the rest of those that are gone already
		}
		if found == 0 {
			time.Sleep(time.Millisecond)
		}
	}
}

// killChildren kills the children of this process and says how many there were.
func killChildren() (int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, err
	}
	found := 0
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // it has ended
		}
		// The name, in brackets, may hold anything; state and parent come behind it.
		_, behind, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ")
		fields := strings.Fields(behind)
		if len(fields) < 2 || fields[1] != strconv.Itoa(os.Getpid()) {
			continue
		}
		found++
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
			return found, err
		}
	}
	return found, nil
}

func notStarted(path string, err error) error {
	switch {
	case errors.Is(err, syscall.EPERM):
		return fault.New(fault.Unsupported, "this system lets no process be held before it runs (ptrace is forbidden), so it could not be limited; ask the operator").WithCause(err)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOEXEC):
		return fault.Newf(fault.Unsupported, "the program %q cannot be started here; the operator corrects --script-interpreters or --script-commands", path).WithCause(err)
	case errors.Is(err, syscall.E2BIG):
		return fault.New(fault.TooLarge, "the arguments and variables of the process are too large together; hand them over as stdin").WithCause(err)
	}
	return shortage.Or(err, fault.New(fault.Internal, "the process could not be started"))
}

// limit waits until the new process stands before its first instruction, puts it under its limits and lets it go.
func (o *wardenOrders) limit(pid int) error {
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
	tasks := running() + o.Processes
	for _, l := range []struct {
		resource   int
		soft, hard uint64
	}{
		{unix.RLIMIT_CPU, o.Seconds, o.Seconds + 1}, // the first signal can be told from others, the second cannot be caught
		{unix.RLIMIT_DATA, o.Memory, o.Memory},
		{unix.RLIMIT_NOFILE, o.OpenFiles, o.OpenFiles},
		{unix.RLIMIT_FSIZE, o.FileSize, o.FileSize},
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

// awaitExit returns when the process has ended, and leaves its status and its number for sweep.
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
