package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tandem/agent"
	"tandem/engine"
	"tandem/identity"
)

// crowdMark is set for the process in which the crowd is: what it leaves behind can only be counted where nothing else runs.
const crowdMark = "TANDEM_TEST_CROWD"

const crowdCalls = 5 // of each task

// Many tasks share one tool server: none is stuck, and nothing is left of them but their records.
func TestTask_Crowd(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestTask_CrowdProcess$", "-test.v")
	cmd.Env = append(os.Environ(), crowdMark+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestTask_CrowdProcess") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestTask_CrowdProcess is what happens in that process.
func TestTask_CrowdProcess(t *testing.T) {
	if os.Getenv(crowdMark) == "" {
		return // TestTask_Crowd starts it
	}
	var now, most atomic.Int64
	b := newToolbox(t, func(c toolCall, _ <-chan struct{}) toolReply {
		most.Store(max(most.Load(), now.Add(1))) // nearly the most is near enough: it is a bound that must not be passed
		defer now.Add(-1)
		return toolReply{Text: string(c.Arguments)}
	}, cityTools()...)
	plan := []string{"box/read", "box/look", "box/pay", "box/read", "box/pay"}
	m := newMind(t, plan, func(d decided) any {
		if d.name == "params" {
			return arguments(fmt.Sprintf(`{"city":%q}`, d.step))
		}
		return nil
	})
	x := openTasks(t, m, b)
	x.auto()
	p := identity.Principal{Workspace: "default", User: taskUser, Roles: []identity.Role{identity.Operator}}
	one := func() string {
		id, err := x.Start(t.Context(), p, agent.WorkflowID("helper"), json.RawMessage(`{"question":"do it"}`))
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	x.ended(x.rest(one()), engine.StatusSuccess) // whatever is made once is there
	m.CloseClientConnections()
	b.CloseClientConnections()
	goroutines, files := runtime.NumGoroutine(), openFiles(t)

	var all sync.WaitGroup
	tasks := often(80, 200) // more than run at once
	for range tasks {
		id := one()
		all.Go(func() {
			if e, err := x.Wait(t.Context(), p, id); err != nil || e.Status != engine.StatusSuccess {
				t.Errorf("a task is %s: %s (%v)", e.Status, e.Error, err)
			}
		})
	}
	all.Wait()
	agrees(t, "calls", len(b.made()), (tasks+1)*crowdCalls)
	agrees(t, "processes that were called", len(b.pids()), 1)
	if n := most.Load(); n > defaultTasks {
		t.Errorf("%d tasks have called at once; %d may run", n, defaultTasks)
	}
	// Connections that are kept to be used again are nothing that leaks; what is about to end does so in a moment.
	m.CloseClientConnections()
	b.CloseClientConnections()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(2 * time.Minute); ; <-tick.C {
		g, f := runtime.NumGoroutine(), openFiles(t)
		if g <= goroutines+10 && f <= files+10 {
			break
		}
		if time.Now().After(deadline) {
			t.Errorf("%d goroutines and %d descriptors are left; there were %d and %d", g, f, goroutines, files)
			break
		}
	}
	x.Instance.tools.Close()
	if err := syscall.Kill(b.pids()[0], 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the tool server is still there: %v", err)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
