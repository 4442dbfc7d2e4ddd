package mcp

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// runs says whether a process is there and not only waits to be taken note of.
func runs(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return false
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	return fields[0] != "Z"
}

// ends waits until a process that was killed has ended: it may still be letting go of what it held.
func ends(t *testing.T, pid string) {
	t.Helper()
	number, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	handle, err := unix.PidfdOpen(number, 0)
	if errors.Is(err, unix.ESRCH) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(handle)
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}}, 10_000)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			t.Fatal(err)
		case n == 0:
			t.Errorf("process %s is left", pid)
			return
		default:
			return
		}
	}
}

func TestProcess_EndsWithAllThatItStarted(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.own(t, "s", "plain")
	w.activate(t, "s")
	pids := append(strings.Fields(w.must(t, "s", "spawn", `{}`).Text), w.must(t, "s", "pid", `{}`).Text)
	for _, pid := range pids {
		if !runs(pid) {
			t.Fatalf("process %s does not run", pid)
		}
	}
	w.Close()
	for _, pid := range pids {
		ends(t, pid)
	}
}

func TestProcess_DiesAndLeavesChildren(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.own(t, "s", "plain")
	w.activate(t, "s")
	pids := strings.Fields(w.must(t, "s", "spawn", `{}`).Text)
	c := w.slot("s").conn
	if _, err := w.call(t, "s", "die_once", `{}`); err == nil {
		t.Fatal("it did not die")
	}
	<-c.done
	for _, pid := range pids {
		ends(t, pid)
	}
}

func TestProcess_StubbornIsKilled(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.own(t, "s", "stubborn")
	w.activate(t, "s")
	pid := fmt.Sprint(w.slot("s").conn.process.cmd.Process.Pid)
	began := time.Now()
	w.Close()
	if took := time.Since(began); runs(pid) || took < termGrace {
		t.Errorf("after %v", took)
	}
}

func TestProcess_DiesWithTheProgram(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "TANDEM_TEST_SERVER=host")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid string
	_, err = fmt.Fscan(out, &pid)
	if kill := cmd.Process.Kill(); err != nil || kill != nil || pid == "" {
		t.Fatalf("got %q, %v, %v", pid, err, kill)
	}
	_ = cmd.Wait() // it was killed
	// A server that ignores the end of its input and SIGTERM.
	waitFor(t, func() bool { return !runs(pid) })
}

func TestPool_LeavesNothingOpen(t *testing.T) {
	files := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	children := func() int {
		list, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", os.Getpid(), os.Getpid()))
		if err != nil {
			t.Skip("this system does not list children")
		}
		return len(strings.Fields(string(list)))
	}
	run := func() {
		w := setup(t)
		w.own(t, "s", "plain")
		w.activate(t, "s")
		w.must(t, "s", "echo", `{}`)
		if _, err := w.call(t, "s", "die_once", `{}`); err == nil {
			t.Error("it did not die")
		}
		w.own(t, "bad", "exits")
		if _, err := w.Tools(t.Context(), ann(), "bad"); err == nil {
			t.Error("it was reached")
		}
		w.Close()
	}
	run() // what the runtime opens for itself
	before, childrenBefore := files(), children()
	for range 5 {
		run()
	}
	if after := files(); after > before {
		t.Errorf("%d files are open, and %d were", after, before)
	}
	if after := children(); after > childrenBefore {
		t.Errorf("%d children, and there were %d", after, childrenBefore)
	}
}
