package app

import (
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"tandem/engine"
	"tandem/fault"
	"tandem/store/sqlite/sqlitetest"
)

func TestParseScripts(t *testing.T) {
	t.Parallel()
	s, err := ParseScripts("", "")
	if err != nil || s.Interpreters["sh"] == "" || len(s.Commands) != 0 {
		t.Errorf("%+v %v", s, err)
	}
	s, err = ParseScripts("none", "/bin/echo, say=/bin/echo,")
	if want := (map[string]string{"echo": "/bin/echo", "say": "/bin/echo"}); err != nil || len(s.Interpreters) != 0 || !maps.Equal(s.Commands, want) {
		t.Errorf("%+v %v", s, err)
	}
	s, err = ParseScripts("bash=/bin/sh", "")
	if want := (map[string]string{"bash": "/bin/sh"}); err != nil || !maps.Equal(s.Interpreters, want) {
		t.Errorf("%+v %v", s, err)
	}
	for _, wrong := range [][2]string{{"perl", ""}, {"bash=sh", ""}, {"", "echo"}, {"", "/bin"}, {"", "/no/such"}, {"", "/bin/echo,/bin/echo"}} {
		if _, err := ParseScripts(wrong[0], wrong[1]); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

// A process whose end nobody saw is an unknown outcome, which a person decides about. It is not run again meanwhile.
func TestInstance_ScriptInterrupted(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("host processes run on Linux only")
	}
	dir := sqlitetest.Dir(t)
	scripts, err := ParseScripts("sh", "")
	if err != nil {
		t.Fatal(err)
	}
	open := func() *site {
		i, err := Open(t.Context(), Options{Dir: dir, Scripts: scripts})
		if err != nil {
			t.Fatal(err)
		}
		return &site{Instance: i}
	}
	x := open()
	home := filepath.Join(dir, "files", "default")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(home, "begun")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	x.saveText(t, `
metadata: {id: long, name: long, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: work, description: d, type: ACTION, subtype: EXECUTE_SCRIPT, configurations: {interpreter: sh, script: "echo x >> runs; echo $$ > begun; exec sleep 1000"}}
connections:
  - {from_node: start, to_node: work}
`)
	// One that takes too long is ended, and how it ended is known: nobody is asked.
	x.saveText(t, `
metadata: {id: slow, name: slow, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: work, description: d, type: ACTION, subtype: EXECUTE_SCRIPT, configurations: {interpreter: sh, script: "sleep 1000 & wait", timeout: 8}}
connections:
  - {from_node: start, to_node: work}
`)
	if e := x.ends(t, x.startText(t, "slow", `{}`), engine.StatusError); !strings.Contains(e.Error, "and was ended") {
		t.Errorf("the slow one ended with %q", e.Error)
	}
	id := x.startText(t, "long", `{}`)
	text, err := os.ReadFile(pipe) // waits for the process
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/proc/" + strings.TrimSpace(string(text))); !os.IsNotExist(err) {
		t.Errorf("process %s is left: %v", text, err)
	}
	x = open()
	x.reaches(t, id, engine.StatusWaitingForHuman)
	runs, err := os.ReadFile(filepath.Join(home, "runs"))
	if err != nil || string(runs) != "x\n" {
		t.Errorf("it ran %q %v", runs, err)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	entries, err := filepath.Glob(filepath.Join(os.TempDir(), "tandem-script-*"))
	if err != nil || slices.ContainsFunc(entries, func(name string) bool {
		script, err := os.ReadFile(filepath.Join(name, "script.sh"))
		return err == nil && strings.HasPrefix(string(script), "echo x >> runs")
	}) {
		t.Errorf("the script was left: %v", err)
	}
}
