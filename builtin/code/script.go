package code

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"tandem/builtin/values"
	"tandem/fault"
	"tandem/files"
	"tandem/identity"
	"tandem/node"
	"tandem/payload"
	"tandem/shortage"
	"tandem/workflow"
)

// Scripts is what an operator allows of host processes. They run with the rights of the server: the limits here keep an
// accident small, they are not a sandbox.
type Scripts struct {
	// Files is the directory that holds the files of each workspace, in which processes run.
	Files string
	// Interpreters are the programs that scripts may be given to, by the name that a node asks for: bash, sh, python, node, pwsh.
	Interpreters map[string]string
	// Commands are the programs that a node may run by name.
	Commands map[string]string
	// Path is the PATH of processes; empty: [ScriptPath].
	Path string
	// Memory in bytes, OpenFiles and Processes bound a process and its children; zero: the defaults below.
	Memory, OpenFiles, Processes uint64
}

// ScriptPath is where processes find programs, unless the operator says otherwise. It is not the server's own PATH.
const ScriptPath = "/usr/local/bin:/usr/bin:/bin"

// What processes may use when the operator does not say.
const (
	scriptMemory    = 1 << 30
	scriptOpenFiles = 256
	scriptProcesses = 256
	scriptFileSize  = 1 << 30
)

const (
	// maxScriptOutput is how much is kept of each of the two outputs, maxScriptTail how much an error shows of the end.
	maxScriptOutput = 64 << 10
	maxScriptTail   = 4 << 10
	// maxEnvText is a little less than what Linux takes as one argument or variable.
	maxEnvText = 128<<10 - 64
	// scriptTimeout is that of a node that sets none.
	scriptTimeout = 420 * time.Second
)

type scriptConfig struct {
	_ struct{} `need:"script|command"`

	Interpreter  string        `json:"interpreter" enum:"bash|sh|python|node|pwsh" doc:"What runs the script." zh:"运行脚本的解释器。"`
	Script       node.Source   `json:"script" doc:"The text of the script." zh:"脚本内容。"`
	Command      string        `json:"command" doc:"A command that the operator has allowed, in the place of a script." zh:"命令：代替脚本的、运维人员允许的命令。"`
	Args         []node.Scalar `json:"args" doc:"The arguments." zh:"参数。"`
	Env          node.Object   `json:"env" doc:"Environment variables by name." zh:"环境变量。"`
	Stdin        node.Words    `json:"stdin" doc:"What the process reads from its standard input." zh:"进程从标准输入读取的内容。"`
	WorkingDir   string        `json:"working_dir" doc:"The directory it runs in, inside the files of the workspace." zh:"运行目录（位于工作区文件内）。"`
	SuccessCodes []int64       `json:"success_codes" doc:"The exit codes that count as success." zh:"视为成功的退出码。"`
}

func (c *scriptConfig) Defaults() {
	c.Interpreter, c.WorkingDir, c.SuccessCodes = "bash", ".", []int64{0}
}

type scriptOutput struct {
	ExitCode   int    `json:"exit_code" doc:"The code that the process ended with." zh:"进程的退出码。"`
	Stdout     string `json:"stdout" doc:"What it has printed." zh:"标准输出。"`
	Stderr     string `json:"stderr" doc:"What it has printed as errors." zh:"标准错误输出。"`
	Truncated  bool   `json:"truncated" doc:"Whether it has printed more than is kept." zh:"输出是否被截断。"`
	DurationMS int64  `json:"duration_ms" doc:"How long it ran, in milliseconds." zh:"运行时间（毫秒）。"`
}

// executeScript runs a host process. Data reaches it as arguments, variables and standard input, never as source.
func executeScript(s *Scripts) node.Kind {
	return node.Define(
		node.About{
			Name: "ACTION.EXECUTE_SCRIPT", Title: node.Says("Execute script", "执行脚本"),
			Traits:      workflow.Traits{Code: workflow.CodeOfHost},
			Description: node.Says("Runs a script or a command on the host, if the operator allows it.", "在主机上运行脚本或命令（需运维人员允许）。"),
			Effect:      workflow.Once,
			Keys:        []node.Key{{Name: "result", Meaning: node.Says("The exit code and what was printed.", "退出码和打印内容。")}},
			Needs:       node.Needs{Also: []node.Text{node.Says("Host processes, which the operator turns on with --allow-scripts.", "主机进程，由运维人员以 --allow-scripts 开启。")}},
			Inputs:      []node.Value{node.Meaning("*", "The process reads it as JSON from the variable TANDEM_INPUT.", "进程从变量 TANDEM_INPUT 读取的 JSON。")},
			Examples: []node.Example{
				{
					Shows:  node.Says("Counts the words of a text.", "统计文本的词数。"),
					Config: `{"interpreter": "bash", "script": "wc -w", "stdin": "two words"}`,
					Output: `{"result": {"exit_code": 0, "stdout": "2\n", "stderr": "", "truncated": false, "duration_ms": "…"}}`,
				},
			},
		},
		func(ctx context.Context, call *node.Call, cfg scriptConfig, in json.RawMessage) (scriptOutput, error) {
			if s == nil {
				return scriptOutput{}, fault.New(fault.DisabledByOperator, "host processes are off; the operator turns them on with --allow-scripts")
			}
			return s.run(ctx, call, cfg, in)
		})
}

func (s *Scripts) run(ctx context.Context, call *node.Call, cfg scriptConfig, in json.RawMessage) (out scriptOutput, err error) {
	p := &process{stdin: string(cfg.Stdin), timeout: scriptTime(call.Config), limits: s.limits()}
	p.until = time.Now().Add(p.timeout) // what comes before the process counts too
	if p.path, p.args, err = s.program(cfg); err != nil {
		return out, err
	}
	for i, a := range cfg.Args {
		if err := checkText(fmt.Sprintf("args[%d]", i), string(a)); err != nil {
			return out, err
		}
		p.args = append(p.args, string(a))
	}
	if p.env, err = s.environment(cfg, in); err != nil {
		return out, err
	}
	if p.dir, err = s.directory(call.Workspace, cfg.WorkingDir); err != nil {
		return out, err
	}
	defer func() {
		if cerr := p.dir.Close(); cerr != nil && call.Log != nil {
			call.Log(node.Debug, "the working directory could not be closed", map[string]any{"error": cerr.Error()})
		}
	}()
	if cfg.Script != "" {
		remove, err := p.keepScript(cfg)
		if err != nil {
			return out, err
		}
		defer func() {
			if rerr := remove(); rerr != nil && call.Log != nil {
				call.Log(node.Warn, "the script's temporary file could not be removed", map[string]any{"error": rerr.Error()})
			}
		}()
	}
	if ctx.Err() != nil {
		return out, fault.New(fault.Canceled, "the attempt was stopped before the process was started")
	}
	if call.Print != nil {
		p.stdout.told = func(text string) { call.Print(node.Stdout, text) }
		p.stderr.told = func(text string) { call.Print(node.Stderr, text) }
	}
	begun := time.Now()
	end, err := p.run(ctx)
	out = scriptOutput{
		ExitCode: end.code, Stdout: p.stdout.text(), Stderr: p.stderr.text(), Truncated: p.stdout.cut() || p.stderr.cut(),
		DurationMS: time.Since(begun).Milliseconds(),
	}
	if call.Detail != nil {
		call.Detail(map[string]any{"program": p.path, "working_dir": cfg.WorkingDir, "exit_code": end.code, "duration_ms": out.DurationMS})
	}
	if err != nil {
		return scriptOutput{}, p.describe(err)
	}
	if end.signal != "" || !slices.Contains(cfg.SuccessCodes, int64(end.code)) {
		return scriptOutput{}, p.describe(end.failure())
	}
	return out, nil
}

// program finds what is run: an interpreter, or a command of the operator's list.
func (s *Scripts) program(cfg scriptConfig) (path string, args []string, err error) {
	switch {
	case cfg.Script != "" && cfg.Command != "":
		return "", nil, fault.New(fault.InvalidConfig, `"script" and "command" exclude each other; keep one of them`).With("path", "configurations.command")
	case cfg.Command != "":
		path, ok := s.Commands[cfg.Command]
		if !ok {
			known := "it has none"
			if names := slices.Sorted(maps.Keys(s.Commands)); len(names) > 0 {
				known = "it has " + strings.Join(names, ", ")
			}
			return "", nil, fault.Newf(fault.DisabledByOperator, "the command %q is not on the operator's list (%s); ask for it to be added with --script-commands", cfg.Command, known).With("command", cfg.Command)
		}
		return path, nil, nil
	case cfg.Script == "":
		return "", nil, fault.New(fault.InvalidConfig, `"script" or "command" is required`).With("path", "configurations.script")
	}
	path, ok := s.Interpreters[cfg.Interpreter]
	if !ok {
		return "", nil, fault.Newf(fault.DisabledByOperator, "the interpreter %q is not installed or not allowed here; the operator adds it with --script-interpreters", cfg.Interpreter).With("interpreter", cfg.Interpreter)
	}
	switch cfg.Interpreter {
	case "bash":
		args = []string{"--noprofile", "--norc"}
	case "pwsh":
		args = []string{"-NoProfile", "-NonInteractive", "-File"}
	}
	return path, args, nil
}

// environment is all that a process finds in its environment. Nothing of the server's own is in it.
func (s *Scripts) environment(cfg scriptConfig, in json.RawMessage) ([]string, error) {
	path := s.Path
	if path == "" {
		path = ScriptPath
	}
	if len(in) > maxEnvText {
		return nil, fault.Newf(fault.TooLarge, "the input has %d bytes and TANDEM_INPUT holds at most %d; hand on less, for instance with a conversion, and the rest as a file", len(in), maxEnvText).With("limit", maxEnvText)
	}
	variables := map[string]string{"PATH": path}
	var problem error
	err := values.EachText("env", json.RawMessage(cfg.Env), fault.InvalidConfig, func(name, value string) {
		switch {
		case problem != nil:
		case !variableName(name):
			problem = fault.Newf(fault.InvalidConfig, "%q in \"env\" is not the name of a variable; use letters, digits and _", name).With("path", "configurations.env")
		case cfg.Command != "" && steers(name):
			problem = fault.Newf(fault.InvalidConfig, "\"env\" may not set %s for a command: it would make another program run", name).With("path", "configurations.env."+name)
		default:
			problem = checkText("env."+name, value)
			variables[name] = value
		}
	})
	if err = errors.Join(err, problem); err != nil {
		return nil, err
	}
	variables["TANDEM_INPUT"] = payload.JSON(in)
	list := make([]string, 0, len(variables))
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		list = append(list, name+"="+variables[name])
	}
	return list, nil
}

func variableName(name string) bool {
	for i, r := range name {
		if r != '_' && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}

// steers says that a variable decides which code a program loads. An author who may only run the operator's commands must
// not get to run others that way.
func steers(name string) bool {
	name = strings.ToUpper(name)
	switch name {
	case "PATH", "ENV", "BASH_ENV", "SHELLOPTS", "BASHOPTS", "PS4", "IFS", "NODE_OPTIONS", "NODE_PATH", "JAVA_TOOL_OPTIONS",
		"_JAVA_OPTIONS", "JDK_JAVA_OPTIONS",
		"RUBYOPT", "RUBYLIB", "PERL5OPT", "PERL5LIB", "PERL5DB", "PERLLIB", "GCONV_PATH", "EDITOR", "VISUAL", "PAGER", "BROWSER",
		"SHELL", "HOME", "XDG_CONFIG_HOME":
		return true
	}
	return slices.ContainsFunc([]string{"LD_", "DYLD_", "PYTHON", "GIT_", "BASH_FUNC_", "LUA_", "MALLOC_", "GLIBC_"},
		func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// checkText refuses what no argument and no variable can hold.
func checkText(what, text string) error {
	switch {
	case strings.ContainsRune(text, 0):
		return fault.Newf(fault.InvalidInput, "%q has a zero byte in it, which a process cannot be given", what).With("path", "configurations."+what)
	case len(text) > maxEnvText:
		return fault.Newf(fault.TooLarge, "%q has %d bytes, and a process takes at most %d; hand it over as stdin", what, len(text), maxEnvText).With("limit", maxEnvText)
	}
	return nil
}

// directory opens the directory that the process is to run in. It is handed over open, so that a link that is put in its
// place meanwhile changes nothing.
func (s *Scripts) directory(workspace, name string) (_ *os.File, err error) {
	if err := identity.CheckWorkspace(workspace); err != nil {
		return nil, err
	}
	if name, err = files.Clean(name); err != nil {
		return nil, err
	}
	home := filepath.Join(s.Files, workspace)
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, shortage.Or(err, fault.New(fault.Internal, "the files directory of the workspace cannot be made"))
	}
	root, err := os.OpenRoot(home)
	if err != nil {
		return nil, shortage.Or(err, fault.New(fault.Internal, "the files directory of the workspace cannot be opened"))
	}
	defer func() {
		if cerr := root.Close(); err == nil && cerr != nil {
			err = fault.From(cerr)
		}
	}()
	inside, err := root.OpenRoot(name) // follows links as long as they stay inside
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault.Newf(fault.NotFound, "the working_dir %q does not exist in the files of the workspace", name).With("path", name)
	case err != nil:
		if info, serr := root.Stat(name); serr == nil && !info.IsDir() {
			return nil, fault.Newf(fault.InvalidConfig, "the working_dir %q is not a directory", name).With("path", name)
		}
		return nil, fault.Newf(fault.ForbiddenPath, "the working_dir %q leads out of the workspace, or may not be opened", name).With("path", name).WithCause(err)
	}
	dir, err := inside.Open(".")
	if err = errors.Join(err, inside.Close()); err != nil {
		return nil, fault.Newf(fault.ForbiddenPath, "the working_dir %q cannot be opened", name).With("path", name).WithCause(err)
	}
	return dir, nil
}

func (s *Scripts) limits() processLimits {
	or := func(n, otherwise uint64) uint64 {
		if n == 0 {
			return otherwise
		}
		return n
	}
	return processLimits{memory: or(s.Memory, scriptMemory), openFiles: or(s.OpenFiles, scriptOpenFiles),
		processes: or(s.Processes, scriptProcesses), fileSize: scriptFileSize}
}

// scriptTime is how long a process may take: a little less than the attempt, so that its end is seen and known. An attempt
// that the runtime has to break off has an outcome that nobody knows.
func scriptTime(config json.RawMessage) time.Duration {
	limit := time.Duration(gjson.GetBytes(config, "timeout").Float() * float64(time.Second))
	if limit <= 0 {
		limit = scriptTimeout
	}
	return limit - min(time.Second, limit/5)
}

// process is one host process. It belongs to the goroutine of its run.
type process struct {
	path    string
	args    []string
	env     []string
	stdin   string
	dir     *os.File
	timeout time.Duration
	until   time.Time
	remove  string // the directory of the script
	limits  processLimits
	stdout  keeper
	stderr  keeper
}

type processLimits struct{ memory, openFiles, processes, fileSize uint64 }

// processEnd is how a process ended: with a code, or by a signal.
type processEnd struct {
	code   int
	signal string
	// cpu says that it had used up its processor time.
	cpu bool
}

func (e processEnd) failure() *fault.Error {
	switch {
	case e.cpu:
		return fault.New(fault.CodeLimit, "the process used up its processor time; raise timeout or make the work smaller").With("signal", e.signal)
	case e.signal != "":
		return fault.Newf(fault.CodeError, "the process was ended by the signal %q", e.signal).With("signal", e.signal)
	}
	return fault.Newf(fault.CodeError, "the process ended with exit code %d; list it in success_codes if it is not a failure", e.code).With("exit_code", e.code)
}

// describe adds the end of what the process said to an error.
func (p *process) describe(err error) error {
	f := fault.From(err)
	if f.Code != fault.CodeError && f.Code != fault.CodeLimit && f.Code != fault.Timeout && f.Code != fault.OutcomeUnknown {
		return f
	}
	if tail := p.stdout.end(); tail != "" {
		f = f.With("stdout", tail)
	}
	if tail := p.stderr.end(); tail != "" {
		f = f.With("stderr", tail)
		if f.Code == fault.CodeError {
			lines := strings.Split(strings.TrimSpace(tail), "\n")
			f.Message += ": " + values.Readable([]byte(strings.TrimSpace(lines[len(lines)-1])), 200)
		}
	}
	return f.Final()
}

// keepScript writes the script where its interpreter finds it: a file has no limit of length, does not show in a list of
// processes and leaves standard input free.
func (p *process) keepScript(cfg scriptConfig) (remove func() error, err error) {
	dir, err := os.MkdirTemp("", "tandem-script-")
	if err != nil {
		return nil, shortage.Or(err, fault.New(fault.Internal, "the script cannot be kept"))
	}
	name := filepath.Join(dir, "script"+map[string]string{"bash": ".sh", "sh": ".sh", "python": ".py", "node": ".js",
		"pwsh": ".ps1"}[cfg.Interpreter])
	if err := os.WriteFile(name, []byte(cfg.Script), 0o600); err != nil {
		return nil, shortage.Or(errors.Join(err, os.RemoveAll(dir)), fault.New(fault.Internal, "the script cannot be kept"))
	}
	// The script comes after the interpreter's own options and before the arguments.
	own := map[string]int{"bash": 2, "pwsh": 3}[cfg.Interpreter]
	p.args = slices.Insert(p.args, own, name)
	p.remove = dir
	return func() error { return os.RemoveAll(dir) }, nil
}

// keeper keeps the beginning of an output and its end. What lies between is read and dropped, so that the process never
// waits for a reader. It is written by one goroutine and may be read while a process that got away still writes.
type keeper struct {
	mu    sync.Mutex
	first bytes.Buffer
	last  []byte
	total int64
	// told, unless nil, is called with what is written as it comes.
	told func(text string)
}

// Write implements io.Writer.
func (k *keeper) Write(b []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.total += int64(len(b))
	k.first.Write(b[:min(len(b), maxScriptOutput-k.first.Len())])
	k.last = append(k.last, b...)
	if over := len(k.last) - maxScriptTail; over > 0 {
		k.last = append(k.last[:0], k.last[over:]...)
	}
	if k.told != nil {
		k.told(string(b))
	}
	return len(b), nil
}

func (k *keeper) text() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return strings.ToValidUTF8(k.first.String(), "\uFFFD")
}

func (k *keeper) cut() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.total > maxScriptOutput
}

func (k *keeper) end() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return values.Readable(k.last, maxScriptTail)
}
