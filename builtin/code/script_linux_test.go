package code_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tandem/builtin/code"
	"tandem/fault"
	"tandem/node"
	"tandem/node/nodetest"
)

// scriptRig is the kind with real processes, in the files of the workspace "acme".
type scriptRig struct {
	t     *testing.T
	kind  node.Kind
	files string
}

func newScriptRig(t *testing.T, s code.Scripts) *scriptRig {
	t.Helper()
	s.Files = filepath.Join(t.TempDir(), "files")
	if s.Interpreters == nil {
		s.Interpreters = map[string]string{}
		for name, program := range map[string]string{"bash": "bash", "sh": "sh", "python": "python3", "node": "node"} {
			for _, dir := range strings.Split(code.ScriptPath, ":") {
				if path, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
					s.Interpreters[name] = path
					break
				}
			}
		}
	}
	r := &scriptRig{t: t, files: filepath.Join(s.Files, "acme")}
	if err := os.MkdirAll(r.files, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, k := range code.Kinds(code.Deps{Scripts: &s}) {
		if k.About.Name == "ACTION.EXECUTE_SCRIPT" {
			r.kind = k
		}
	}
	return r
}

type scriptOut struct {
	ExitCode   int    `json:"exit_code"`
	Stdout     string `json:"stdout"`
	Stderr     string `json:"stderr"`
	Truncated  bool   `json:"truncated"`
	DurationMS int64  `json:"duration_ms"`
}

func (r *scriptRig) run(ctx context.Context, config map[string]any, input string) (scriptOut, error) {
	r.t.Helper()
	raw, err := json.Marshal(config)
	if err != nil {
		r.t.Fatal(err)
	}
	call := nodetest.NewCall(r.t, string(raw), input)
	call.Workspace = "acme"
	out, err := r.kind.Run(ctx, call)
	if err != nil {
		return scriptOut{}, err
	}
	var o scriptOut
	if err := json.Unmarshal(out.(node.Done)["result"], &o); err != nil {
		r.t.Fatal(err)
	}
	return o, nil
}

func TestExecuteScript_Off(t *testing.T) {
	t.Parallel()
	_, err := kinds().Run(t, "ACTION.EXECUTE_SCRIPT", nodetest.NewCall(t, `{"script": "true"}`, ""))
	nodetest.WantError(t, err, fault.DisabledByOperator, "--allow-scripts")
}

func TestExecuteScript_Interpreters(t *testing.T) {
	t.Parallel()
	r := newScriptRig(t, code.Scripts{})
	for name, script := range map[string]string{
		"bash":   `[[ 1 == 1 ]] && echo "$1 $(cat)" && echo oops >&2`,
		"sh":     `echo "$1 $(cat)"; echo oops >&2`,
		"python": "import sys\nprint(sys.argv[1], sys.stdin.read())\nprint('oops', file=sys.stderr)",
		"node":   `console.log(process.argv[2], require("fs").readFileSync(0, "utf8")); console.error("oops")`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := r.run(t.Context(), map[string]any{"interpreter": name, "script": script, "args": []any{"a; b $(c)"}, "stdin": "in"}, `{}`)
			if err != nil {
				t.Fatal(err)
			}
			if out.Stdout != "a; b $(c) in\n" || out.Stderr != "oops\n" || out.ExitCode != 0 || out.Truncated {
				t.Errorf("got %+v", out)
			}
		})
	}
	t.Run("NotAllowed", func(t *testing.T) {
		t.Parallel()
		_, err := r.run(t.Context(), map[string]any{"interpreter": "pwsh", "script": "1"}, `{}`)
		nodetest.WantError(t, err, fault.DisabledByOperator, "--script-interpreters")
	})
}

// The process finds what it was given and nothing of the server's.
func TestExecuteScript_Environment(t *testing.T) {
	t.Setenv("TANDEM_MASTER_KEY", nodetest.Canary)
	r := newScriptRig(t, code.Scripts{})
	out, err := r.run(t.Context(), map[string]any{"interpreter": "sh", "script": `exec /usr/bin/env -0`, "env": map[string]any{"GREETING": "hi there", "N": 7}}, `{"a":"$(id)"}`)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, pair := range strings.Split(strings.TrimRight(out.Stdout, "\x00"), "\x00") {
		name, value, _ := strings.Cut(pair, "=")
		got[name] = value
	}
	delete(got, "PWD") // the shell's own
	delete(got, "_")
	delete(got, "SHLVL")
	want := map[string]string{"PATH": code.ScriptPath, "TANDEM_INPUT": `{"a":"$(id)"}`, "GREETING": "hi there", "N": "7"}
	if !maps.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	// It has no descriptors but its own either, whatever the server was started with.
	leak, err := syscall.Open("/dev/null", syscall.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Close(leak); err != nil {
			t.Error(err)
		}
	}()
	out, err = r.run(t.Context(), map[string]any{"script": `cd /proc/$$/fd && echo *`}, `{}`)
	if err != nil {
		t.Fatal(err)
	}
	if out.Stdout != "0 1 2 255 3\n" { // the last ones are the script and the directory that is read
		t.Errorf("open: %s", out.Stdout)
	}
}

func TestExecuteScript_Refuses(t *testing.T) {
	t.Parallel()
	r := newScriptRig(t, code.Scripts{Commands: map[string]string{"echo": "/bin/echo"}})
	long := strings.Repeat("x", 200<<10)
	for name, c := range map[string]struct {
		config map[string]any
		input  string
		code   fault.Code
		part   string
	}{
		"Nothing":        {map[string]any{}, `{}`, fault.InvalidConfig, `"script" or "command"`},
		"Both":           {map[string]any{"script": "true", "command": "echo"}, `{}`, fault.InvalidConfig, "exclude"},
		"OtherCommand":   {map[string]any{"command": "rm"}, `{}`, fault.DisabledByOperator, "it has echo"},
		"CommandAsPath":  {map[string]any{"command": "/bin/echo"}, `{}`, fault.DisabledByOperator, "--script-commands"},
		"Loader":         {map[string]any{"command": "echo", "env": map[string]any{"LD_PRELOAD": "./x.so"}}, `{}`, fault.InvalidConfig, "LD_PRELOAD"},
		"EnvName":        {map[string]any{"script": "true", "env": map[string]any{"a=b": "1"}}, `{}`, fault.InvalidConfig, "not the name of a variable"},
		"ZeroByte":       {map[string]any{"script": "true", "args": []any{"a\x00b"}}, `{}`, fault.InvalidInput, "args[0]"},
		"LongArgument":   {map[string]any{"script": "true", "args": []any{long}}, `{}`, fault.TooLarge, "stdin"},
		"LongInput":      {map[string]any{"script": "true"}, `{"a":"` + long + `"}`, fault.TooLarge, "TANDEM_INPUT"},
		"Parent":         {map[string]any{"script": "true", "working_dir": "../other"}, `{}`, fault.ForbiddenPath, ".."},
		"Absolute":       {map[string]any{"script": "true", "working_dir": "/etc"}, `{}`, fault.ForbiddenPath, "absolute"},
		"LinkOut":        {map[string]any{"script": "true", "working_dir": "out"}, `{}`, fault.ForbiddenPath, "leads out"},
		"LinkOutBelow":   {map[string]any{"script": "true", "working_dir": "out/sub"}, `{}`, fault.ForbiddenPath, "leads out"},
		"NoDirectory":    {map[string]any{"script": "true", "working_dir": "file"}, `{}`, fault.InvalidConfig, "not a directory"},
		"Missing":        {map[string]any{"script": "true", "working_dir": "gone"}, `{}`, fault.NotFound, "gone"},
		"ExitCode":       {map[string]any{"script": "echo one >&2; echo the reason >&2; exit 3"}, `{}`, fault.CodeError, "the reason"},
		"ExitCodeListed": {map[string]any{"script": "exit 0", "success_codes": []any{3}}, `{}`, fault.CodeError, "exit code 0"},
		"Signal":         {map[string]any{"script": "kill -SEGV $$"}, `{}`, fault.CodeError, "SIGSEGV"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := r.run(t.Context(), c.config, c.input)
			nodetest.WantError(t, err, c.code, c.part)
		})
	}
	if err := os.Symlink(t.TempDir(), filepath.Join(r.files, "out")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.files, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestExecuteScript_Runs(t *testing.T) {
	t.Parallel()
	r := newScriptRig(t, code.Scripts{Commands: map[string]string{"say": "/bin/echo"}})
	if err := os.MkdirAll(filepath.Join(r.files, "a", "b"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a", filepath.Join(r.files, "inside")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		config map[string]any
		check  func(scriptOut) bool
	}{
		"Command":      {map[string]any{"command": "say", "args": []any{"-n", "x", 1, true}}, func(o scriptOut) bool { return o.Stdout == "x 1 true" }},
		"SuccessCodes": {map[string]any{"script": "exit 7", "success_codes": []any{0, 7}}, func(o scriptOut) bool { return o.ExitCode == 7 }},
		"Directory":    {map[string]any{"script": "pwd -P", "working_dir": "a/b"}, func(o scriptOut) bool { return strings.HasSuffix(o.Stdout, "/acme/a/b\n") }},
		"LinkInside":   {map[string]any{"script": "pwd -P", "working_dir": "inside"}, func(o scriptOut) bool { return strings.HasSuffix(o.Stdout, "/acme/a\n") }},
		"Truncated": {map[string]any{"script": "head -c 70000 /dev/zero | tr '\\0' a; head -c 200000 /dev/zero | tr '\\0' b >&2"}, func(o scriptOut) bool {
			return o.Truncated && len(o.Stdout) == 64<<10 && len(o.Stderr) == 64<<10
		}},
		"NotRead":    {map[string]any{"script": "true", "stdin": strings.Repeat("x", 300<<10)}, func(o scriptOut) bool { return o.ExitCode == 0 }},
		"NotUTF8":    {map[string]any{"script": `printf '\377a'`}, func(o scriptOut) bool { return o.Stdout == "\uFFFDa" }},
		"Background": {map[string]any{"script": "sleep 100 & echo started"}, func(o scriptOut) bool { return o.Stdout == "started\n" && o.DurationMS < 20_000 }},
		"LongScript": {map[string]any{"script": "# " + strings.Repeat("x", 300<<10) + "\necho ok"}, func(o scriptOut) bool { return o.Stdout == "ok\n" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := r.run(t.Context(), c.config, `{}`)
			if err != nil {
				t.Fatal(err)
			}
			if !c.check(out) {
				t.Errorf("got %.300v", out)
			}
		})
	}
	// Nothing of it stays behind.
	t.Cleanup(func() {
		left, err := filepath.Glob(filepath.Join(os.TempDir(), "tandem-script-*", "script.sh"))
		if err != nil {
			t.Error(err)
		}
		for _, name := range left {
			if text, err := os.ReadFile(name); err == nil && strings.HasPrefix(string(text), "# xxxx") {
				t.Errorf("%s was left", name)
			}
		}
	})
}

func TestExecuteScript_Limits(t *testing.T) {
	t.Parallel()
	r := newScriptRig(t, code.Scripts{Memory: 64 << 20, OpenFiles: 40, Processes: 20})
	out, err := r.run(t.Context(), map[string]any{"script": "cat /proc/self/limits", "timeout": 9}, `{}`)
	if err != nil {
		t.Fatal(err)
	}
	limits := map[string][]string{}
	for line := range strings.Lines(out.Stdout) {
		if len(line) > 26 {
			limits[strings.TrimSpace(line[:26])] = strings.Fields(line[26:])
		}
	}
	for name, want := range map[string]string{"Max cpu time": "9", "Max data size": strconv.Itoa(64 << 20), "Max open files": "40", "Max core file size": "0", "Max file size": strconv.Itoa(1 << 30)} {
		if got := limits[name]; len(got) == 0 || got[0] != want {
			t.Errorf("%s: %v, want %s", name, got, want)
		}
	}
	if got := limits["Max processes"]; len(got) == 0 || got[0] == "unlimited" {
		t.Errorf("processes: %v", got)
	}
	t.Run("Memory", func(t *testing.T) {
		t.Parallel()
		_, err := r.run(t.Context(), map[string]any{"interpreter": "python", "script": "x = bytearray(200 << 20)"}, `{}`)
		nodetest.WantError(t, err, fault.CodeError, "MemoryError")
	})
	t.Run("Processor", func(t *testing.T) {
		t.Parallel()
		// Two processes at once use two seconds of processor time in less of the clock's, but each has a limit of its own.
		_, err := r.run(t.Context(), map[string]any{"script": "ulimit -S -t 1; while :; do :; done", "timeout": 60}, `{}`)
		nodetest.WantError(t, err, fault.CodeLimit, "processor time")
	})
}

// forks is a script whose descendants ignore every signal that can be ignored; one of them has left the group and the
// session, and lost its parent. It tells their numbers.
const forks = `
trap '' TERM INT HUP
(trap '' TERM INT HUP; (trap '' TERM INT HUP; echo $BASHPID > three; echo 3 > ready; while :; do sleep 1; done) & echo $BASHPID > two; while :; do sleep 1; done) &
(setsid bash -c 'echo $$ > four; echo 4 > away; while :; do sleep 1; done' &)
echo $$ > one
cat ready > /dev/null
cat away > /dev/null
echo 4 > go
while :; do sleep 1; done
`

// started makes the pipes of forks and waits until all are there.
func (r *scriptRig) started(t *testing.T) func() {
	t.Helper()
	for _, name := range []string{"ready", "away", "go"} {
		if err := syscall.Mkfifo(filepath.Join(r.files, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		f, err := os.Open(filepath.Join(r.files, "go")) // waits for the writer
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		if _, err := bufio.NewReader(f).ReadString('\n'); err != nil {
			t.Error(err)
		}
	}
}

// gone checks that none of the processes is left.
func (r *scriptRig) gone(t *testing.T) {
	t.Helper()
	for _, name := range []string{"one", "two", "three", "four"} {
		text, err := os.ReadFile(filepath.Join(r.files, name))
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		// One that has been killed and that its new parent has not waited for yet is not a process any more.
		status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err == nil && !strings.Contains(string(status), ") Z ") && !strings.Contains(string(status), ") X ") {
			t.Errorf("process %s is left: %s", name, status)
		}
	}
}

func TestExecuteScript_KillsTheGroup(t *testing.T) {
	t.Parallel()
	t.Run("Cancel", func(t *testing.T) {
		t.Parallel()
		r := newScriptRig(t, code.Scripts{})
		wait := r.started(t)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { // it ends when the script has said that it is there
			wait()
			cancel()
		}()
		_, err := r.run(ctx, map[string]any{"script": forks}, `{}`)
		if fault.CodeOf(err) != fault.Canceled {
			t.Fatalf("got %v", err)
		}
		r.gone(t)
	})
	t.Run("Timeout", func(t *testing.T) {
		t.Parallel()
		r := newScriptRig(t, code.Scripts{})
		wait := r.started(t)
		there := make(chan struct{})
		go func() { // it ends when the script has said that it is there
			wait()
			close(there)
		}()
		begun := time.Now()
		_, err := r.run(t.Context(), map[string]any{"script": forks, "timeout": 5}, `{}`)
		nodetest.WantError(t, err, fault.Timeout, "was ended")
		if took := time.Since(begun); took >= 5*time.Second {
			t.Errorf("it took %v: the runtime would have broken it off, and nobody would know how it ended", took)
		}
		<-there
		r.gone(t)
	})
	t.Run("End", func(t *testing.T) {
		t.Parallel()
		// What outlives the script in its own group, or in another, and holds its outputs, ends with it.
		r := newScriptRig(t, code.Scripts{})
		wait := r.started(t)
		there := make(chan struct{})
		go func() { // it ends when the script has said that it is there
			wait()
			close(there)
		}()
		out, err := r.run(t.Context(), map[string]any{"script": strings.TrimSuffix(forks, "while :; do sleep 1; done\n") + "echo here"}, `{}`)
		if err != nil {
			t.Fatal(err)
		}
		if out.Stdout != "here\n" || out.DurationMS > 20_000 {
			t.Errorf("got %+v", out)
		}
		<-there
		r.gone(t)
	})
	t.Run("Crash", func(t *testing.T) {
		t.Parallel()
		// Nor does anything outlive the server, however that ends.
		r := newScriptRig(t, code.Scripts{})
		wait := r.started(t)
		alive, held, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer alive.Close()
		temp := t.TempDir()
		server := exec.Command(os.Args[0], "-test.run=^TestExecuteScript_Process$")
		server.Env = []string{scriptProcess + "=" + filepath.Dir(r.files), "TMPDIR=" + temp}
		// The number of the last one is such that the server does not close it for the process that looks after the script.
		server.ExtraFiles = []*os.File{held, held, held, held}
		if err := errors.Join(server.Start(), held.Close()); err != nil {
			t.Fatal(err)
		}
		wait()
		if err := server.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := server.Wait(); err == nil {
			t.Error("the server ended by itself")
		}
		if _, err := io.Copy(io.Discard, alive); err != nil { // until nobody holds it any more
			t.Fatal(err)
		}
		r.gone(t)
		if left, err := filepath.Glob(filepath.Join(temp, "tandem-script-*")); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v %v", left, err)
		}
	})
}

// scriptProcess names the directory of files for a process that is to be killed.
const scriptProcess = "TANDEM_TEST_SCRIPT_FILES"

// TestExecuteScript_Process is that process: it runs a script that does not end.
func TestExecuteScript_Process(t *testing.T) {
	dir := os.Getenv(scriptProcess)
	if dir == "" {
		return // not in such a process: TestExecuteScript_KillsTheGroup starts it
	}
	r := newScriptRig(t, code.Scripts{Interpreters: map[string]string{"bash": "/bin/bash"}})
	for _, k := range code.Kinds(code.Deps{Scripts: &code.Scripts{Files: dir, Interpreters: map[string]string{"bash": "/bin/bash"}}}) {
		if k.About.Name == "ACTION.EXECUTE_SCRIPT" {
			r.kind = k
		}
	}
	_, err := r.run(t.Context(), map[string]any{"script": forks}, `{}`)
	t.Fatal(err)
}

func TestExecuteScript_NotInstalled(t *testing.T) {
	t.Parallel()
	r := newScriptRig(t, code.Scripts{Interpreters: map[string]string{"bash": "/no/such/bash"}})
	_, err := r.run(t.Context(), map[string]any{"script": "true"}, `{}`)
	nodetest.WantError(t, err, fault.Unsupported, "--script-interpreters")
	if entries, err := os.ReadDir(r.files); err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == "script.sh" }) {
		t.Errorf("left %v %v", entries, err)
	}
}
