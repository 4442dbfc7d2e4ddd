//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"unsafe"

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
)

// executable is our own binary, also when its file was replaced or removed since.
func executable() string { return "/proc/self/exe" }

// processAttributes lists how to start a child, strongest first; what the kernel does not allow is passed over. A
// network namespace of its own has no interface but a loopback that is down.
func processAttributes() []*syscall.SysProcAttr {
	const apart = syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS
	return []*syscall.SysProcAttr{
		{
			Cloneflags:  syscall.CLONE_NEWUSER | apart,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
		},
		{Cloneflags: apart},
		nil,
	}
}

// growth is how much address space a child may add to what it has when it is ready: for requests and replies. The
// memory of the code itself is reserved before and bounded by the interpreter's own limit.
const growth = detectorRoom << 30

// raiseWalls gives up everything the child does not need, for good and for all its threads. Each wall is raised as far
// as this kernel can; Walls tells an operator what came of it.
func raiseWalls() error {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return fmt.Errorf("read the size of the process: %w", err)
	}
	pages, err := strconv.ParseUint(string(bytes.SplitN(statm, []byte(" "), 2)[0]), 10, 64)
	if err != nil {
		return fmt.Errorf("read the size of the process: %w", err)
	}
	if err := landlock.V11.BestEffort().Restrict(); err != nil {
		return fmt.Errorf("give up files: %w", err)
	}
	limits := []struct {
		resource int
		most     uint64
	}{
		{unix.RLIMIT_NOFILE, 0}, // what is open stays open
		{unix.RLIMIT_FSIZE, 0},
		{unix.RLIMIT_CORE, 0},
		{unix.RLIMIT_MEMLOCK, 0},
		{unix.RLIMIT_AS, pages*uint64(os.Getpagesize()) + growth},
	}
	for _, l := range limits {
		if err := unix.Setrlimit(l.resource, &unix.Rlimit{Cur: l.most, Max: l.most}); err != nil {
			return fmt.Errorf("lower limit %d of the process: %w", l.resource, err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("forbid looking into the process: %w", err)
	}
	if err := filterCalls(); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("give up system calls: %w", err)
	}
	return nil
}

// allowedCalls is what a Go process with two open pipes needs. Everything else, sockets and new processes first of all,
// is refused with EPERM.
func allowedCalls() []uint32 {
	return []uint32{
		unix.SYS_READ, unix.SYS_WRITE, unix.SYS_CLOSE, unix.SYS_FUTEX, unix.SYS_MUNMAP, unix.SYS_MREMAP, unix.SYS_MADVISE,
		unix.SYS_BRK, unix.SYS_EXIT, unix.SYS_EXIT_GROUP, unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK,
		unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOCK_GETTIME,
		unix.SYS_GETTIMEOFDAY, unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_GETPID, unix.SYS_GETTID,
		unix.SYS_TGKILL, unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_CTL, unix.SYS_GETRANDOM, unix.SYS_SET_ROBUST_LIST,
		unix.SYS_RSEQ, unix.SYS_RESTART_SYSCALL, unix.SYS_MEMBARRIER, unix.SYS_GETRUSAGE,
	}
}

// filterCalls installs the seccomp filter on every thread. No memory can be made executable from here on.
func filterCalls() error {
	const (
		nr, arch, flags, prot = 0, 4, 16, 32 // offsets in struct seccomp_data; the last two are arguments 0 and 2
		request               = 24           // argument 1
		allow, refuse, absent = unix.SECCOMP_RET_ALLOW, unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM),
			unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	)
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	ret := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	// jump goes jt instructions further when the condition holds, else jf.
	jump := func(condition uint16, k uint32, jt, jf uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | condition | unix.BPF_K, K: k, Jt: jt, Jf: jf}
	}
	program := []unix.SockFilter{load(arch), jump(unix.BPF_JEQ, auditArch, 1, 0), ret(refuse), load(nr)}
	for _, call := range allowedCalls() {
		program = append(program, jump(unix.BPF_JEQ, call, 0, 1), ret(allow))
	}
	// when looks at an argument of one call: allowed if the condition on it is as wanted.
	when := func(call, argument uint32, condition uint16, k uint32, wanted bool) {
		yes, no := uint32(allow), uint32(refuse)
		if !wanted {
			yes, no = refuse, allow
		}
		program = append(program, jump(unix.BPF_JEQ, call, 0, 4), load(argument), jump(condition, k, 0, 1), ret(yes), ret(no))
	}
	when(unix.SYS_CLONE, flags, unix.BPF_JSET, unix.CLONE_THREAD, true)
	when(unix.SYS_MMAP, prot, unix.BPF_JSET, unix.PROT_EXEC, false)
	when(unix.SYS_MPROTECT, prot, unix.BPF_JSET, unix.PROT_EXEC, false)
	when(unix.SYS_IOCTL, request, unix.BPF_JEQ, pagemapScanCall, true)
	// The C library tries clone3, whose flags cannot be seen, and falls back to clone.
	program = append(program, jump(unix.BPF_JEQ, unix.SYS_CLONE3, 0, 1), ret(absent), ret(refuse))

	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	failed, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&filter)))
	if errno != 0 {
		return errno
	}
	if failed != 0 {
		return fmt.Errorf("thread %d cannot take the filter", failed)
	}
	return nil
}

// probeWalls tries, behind raised walls, what must not work.
func probeWalls() []Wall {
	wall := func(name string, err error, up, down string) Wall {
		if err != nil {
			return Wall{Name: name, Up: true, How: up + ": " + err.Error()}
		}
		return Wall{Name: name, How: down}
	}
	files := func() error {
		fd, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}()
	network := func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
		if err == nil {
			// A network without a way out: a namespace of its own.
			err = unix.Connect(fd, &unix.SockaddrInet4{Addr: [4]byte{192, 0, 2, 1}, Port: 9})
			unix.Close(fd)
		}
		return err
	}()
	processes := unix.Exec("/proc/self/exe", []string{"tandem", "--version"}, nil)
	memory := func() error {
		b, err := unix.Mmap(-1, 0, 64<<30, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
		if err == nil {
			unix.Munmap(b)
		}
		return err
	}()
	environment := error(nil)
	if len(os.Environ()) == 0 {
		environment = errors.New("it is empty")
	}
	return []Wall{
		wall("files", files, "a child cannot open the root directory", "this kernel has neither Landlock nor seccomp: only the interpreter keeps code from files"),
		wall("network", network, "a child cannot reach the network", "this machine allows neither network namespaces nor seccomp: only the interpreter keeps code from the network"),
		wall("processes", processes, "a child cannot start a program", "this kernel has neither Landlock nor seccomp: only the interpreter keeps code from starting programs"),
		wall("memory", memory, "a child cannot take more memory than its limit", "the limit on address space does not hold here"),
		wall("environment", environment, "a child has no environment", "a child inherits the environment"),
	}
}
