package app

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/outbound"
	"tandem/store/sqlite/sqlitetest"
)

// What a process that is to run out of files finds in its environment: its data directory, and a service.
const (
	shortageDir = "TANDEM_TEST_SHORTAGE_DIR"
	shortageURL = "TANDEM_TEST_SHORTAGE_URL"
)

const shortageFlow = `
metadata: {id: short, name: short, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: code, description: d, type: ACTION, subtype: RUN_CODE, configurations: {language: javascript, code: "function main(input) { return {n: 1} }"}}
  - {id: get, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {method: GET, url: "{{base}}"}}
  - {id: post, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {method: POST, url: "{{base}}", body_type: none}}
  - {id: script, description: d, type: ACTION, subtype: EXECUTE_SCRIPT, configurations: {interpreter: sh, script: "exit 0"}}
connections:
  - {from_node: start, to_node: code}
  - {from_node: start, to_node: get}
  - {from_node: start, to_node: post}
  - {from_node: start, to_node: script}
`

// TestShortage lets a process run out of open files: what needs one is tried again, and succeeds when there are some.
func TestShortage(t *testing.T) {
	t.Parallel()
	fake := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{}`) }))
	defer fake.Close()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestShortage_Process$", "-test.v")
	cmd.Env = append(os.Environ(), shortageDir+"="+sqlitetest.Dir(t), shortageURL+"="+fake.URL)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestShortage_Process") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestShortage_Process is the process that runs out of files.
func TestShortage_Process(t *testing.T) {
	dir := os.Getenv(shortageDir)
	if dir == "" {
		return // not in such a process: TestShortage starts it
	}
	allow, err := outbound.ParseAllow("127.0.0.0/8")
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := ParseScripts("sh=/bin/sh", "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	i, err := Open(ctx, Options{Dir: dir, HTTPAllow: allow, Scripts: scripts})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	}()
	i.saveText(t, shortageFlow)
	failures := make(chan host.Told, 100)
	raise := fewFiles(t)
	id := NewExecutionID()
	stop := i.Watch(user, id, func(row host.Row, _ []engine.Command) {
		for _, told := range row.Told {
			if told.Node == engine.NodeRetrying || told.Node == engine.NodeFailure {
				failures <- told
			}
		}
	})
	defer stop()
	request, err := i.request(ctx, user, "short", []byte(`{"base":"`+os.Getenv(shortageURL)+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	request.ID = id
	if _, err := i.host.Start(ctx, user, request); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		select {
		case told := <-failures:
			if told.Node != engine.NodeRetrying || told.Error == nil || told.Error.Code != fault.Shortage {
				t.Errorf("%s is %s: %+v", told.Activation, told.Node, told.Error)
			}
		case <-ctx.Done():
			t.Fatal("nothing runs out of files")
		}
	}
	raise()
	if e, err := i.Wait(ctx, user, id); err != nil || e.Status != engine.StatusSuccess {
		t.Errorf("it ended as %s: %s, %v", e.Status, e.Error, err)
	}
}

// fewFiles lets this process open no further file until raise is called.
func fewFiles(t *testing.T) (raise func()) {
	t.Helper()
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	highest, err := os.Open(os.DevNull) // the lowest number that is free
	if err != nil {
		t.Fatal(err)
	}
	next := uint64(highest.Fd())
	if err := highest.Close(); err != nil {
		t.Fatal(err)
	}
	set := func(limit syscall.Rlimit) {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
	}
	set(syscall.Rlimit{Cur: next, Max: before.Max})
	return func() { set(before) }
}
