package app

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"tandem/api"
	"tandem/builtin/code"
	"tandem/engine"
	"tandem/node"
	"tandem/sandbox"
	"tandem/store/sqlite/sqlitetest"
)

func TestMain(m *testing.M) {
	if sandbox.IsChild() {
		sandbox.Child()
	}
	if code.IsWarden() {
		code.Warden()
	}
	if at := os.Getenv(toolsAt); at != "" {
		if err := serveTools(at); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	// Hundreds of instances come and go here: collecting what they leave is a third of the work, unless there is room for some of it.
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(testMemory)
	os.Exit(m.Run())
}

// testMemory is the room that the tests take before they collect more often.
const testMemory = 3 << 29

// codeCache is where the compiled Python interpreter is kept, for all tests of this machine: compiling it takes seconds, and with the
// race detector a minute.
func codeCache() string {
	dir, err := sandbox.MachineCache()
	if err != nil {
		dir = filepath.Join(os.TempDir(), fmt.Sprintf("tandem-sandbox-%d", os.Getuid()))
	}
	return dir
}

// python is an interpreter that is there when it returns, so that tests beside each other do not compile it side by side.
var python = sync.OnceValue(func() error { // read-only
	pool := sandbox.New(sandbox.Options{Dir: codeCache()})
	defer pool.Close()
	_, err := pool.Run(context.Background(), sandbox.Call{Tenant: "t", Language: sandbox.Python, Source: "lambda x: x", Input: json.RawMessage(`1`)})
	return err
})

// openWithCode opens an instance that need not compile its interpreters.
func openWithCode(t *testing.T, dir string) *Instance {
	t.Helper()
	if err := python(); err != nil {
		t.Fatal(err)
	}
	i, err := Open(t.Context(), Options{Dir: dir, CodeCache: codeCache()})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// Conversion functions are run in the language that their form tells, by the real interpreters.
func TestInstance_Conversions(t *testing.T) {
	t.Parallel()
	i := openWithCode(t, sqlitetest.Dir(t))
	closeAfter(t, i)
	flow := func(id, conversion string) string {
		quoted, err := json.Marshal(conversion)
		if err != nil {
			t.Fatal(err)
		}
		return `
metadata: {id: ` + id + `, name: ` + id + `, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: out, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
connections:
  - {from_node: start, to_node: out, conversion_function: ` + string(quoted) + `}
`
	}
	for name, c := range map[string]struct {
		conversion string
		want       string
		status     engine.Status
		part       string
	}{
		"python": {"from typing import Any, Dict\n\ndef convert(input_data: Dict[str, Any]) -> Dict[str, Any]:\n" +
			"    value = input_data.get('value', {})\n    def double(n): return n * 2\n" +
			"    return {**{'sum': sum(double(n) for n in value['list'])}, 'text': f\"{len(set(value['list']))} of them\"}", `{"sum":12,"text":"3 of them"}`, engine.StatusSuccess, ""},
		"lambda":     {"lambda x: {'first': sorted(x['list'], key=lambda n: -n)[0]}", `{"first":3}`, engine.StatusSuccess, ""},
		"javascript": {"x => ({n: x.data.list.length, own: x.list[1]})", `{"n":3,"own":2}`, engine.StatusSuccess, ""},
		"order":      {"lambda x: ' '.join(k for k in x if k not in ('execution_id', 'trigger_time', 'trigger_message', 'user_id'))", `{"data":"list"}`, engine.StatusSuccess, ""},
		"entry":      {"// it's one\nfunction convert(x) { return helper(x.list) }\nconst helper = list => list.length", `{"data":3}`, engine.StatusSuccess, ""},
		"comment":    {"/* it's one */\nconst two = 2\nfunction convert(x) { return x.list[two] }", `{"data":3}`, engine.StatusSuccess, ""},
		"deep":       {"x => { let r = []; for (let i = 0; i < 1200; i++) r = [r]; return r }", "", engine.StatusError, `connection "start-result-out": the payload`},
		"nothing":    {"lambda x: None", `{"data":null}`, engine.StatusSuccess, ""},
		"raises":     {"def convert(x):\n    y = 1\n    return x['nothing']", "", engine.StatusError, "line 3"},
		"skips":      {"x => ({skip_execution: true})", "", engine.StatusSuccess, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i.saveText(t, flow(name, c.conversion))
			id := i.startText(t, name, `{"list":[1,2,3]}`)
			e := i.ends(t, id, c.status)
			if c.status == engine.StatusError {
				if !strings.Contains(e.Error, c.part) {
					t.Errorf("the execution failed with %q", e.Error)
				}
				return
			}
			outputs, err := i.Outputs(t.Context(), user, id)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(outputs["out"]); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// A payload of null is a payload as any other: the conversion is given it under its names.
func TestInstance_ConvertsNull(t *testing.T) {
	t.Parallel()
	i := openInstance(t, sqlitetest.Dir(t))
	defer func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	}()
	i.saveText(t, `
metadata: {id: nothing, name: nothing, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: parse, description: d, type: ACTION, subtype: DATA_FORMATTING, configurations: {format_type: json, direction: parse, on_error: default_output, default_output: "{{x}}"}, input_params: {data: "no"}}
  - {id: out, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
connections:
  - {from_node: start, to_node: parse}
  - {from_node: parse, to_node: out, conversion_function: "x => ({got: x, named: x.data})"}
`)
	id := i.startText(t, "nothing", `{"x":null}`)
	i.ends(t, id, engine.StatusSuccess)
	outputs, err := i.Outputs(t.Context(), user, id)
	if want := `{"got":null,"named":null}`; err != nil || string(outputs["out"]) != want {
		t.Errorf("got %s %v", outputs["out"], err)
	}
}

// Nothing of the sandbox is made before there is code: workflows without any never pay for it.
func TestInstance_NoCodeNoSandbox(t *testing.T) {
	t.Parallel()
	cache := filepath.Join(t.TempDir(), "sandbox")
	i, err := Open(t.Context(), Options{Dir: sqlitetest.Dir(t), CodeCache: cache})
	if err != nil {
		t.Fatal(err)
	}
	flow := func(id, conversion string) string {
		return `
metadata: {id: ` + id + `, name: ` + id + `, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: out, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
connections:
  - {from_node: start, to_node: out, conversion_function: "` + conversion + `"}
`
	}
	i.saveText(t, flow("without", "{'n': list[0]}"))
	i.saveText(t, flow("with", "x => x.list"))
	i.ends(t, i.startText(t, "without", `{"list":[1]}`), engine.StatusSuccess)
	if _, err := os.Stat(cache); !os.IsNotExist(err) {
		t.Errorf("without code: %v", err)
	}
	i.ends(t, i.startText(t, "with", `{"list":[1]}`), engine.StatusSuccess)
	if _, err := os.Stat(cache); err != nil {
		t.Errorf("with code: %v", err)
	}
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
}

// Interpreters are kept once for the machine, and in the data directory where there is no place for that.
func TestInterpreterCache(t *testing.T) {
	log, home := slog.New(slog.DiscardHandler), t.TempDir()
	t.Setenv("XDG_CACHE_HOME", home)
	common := filepath.Join(home, "tandem", "sandbox")
	if resolved, err := filepath.EvalSymlinks(home); err == nil {
		common = filepath.Join(resolved, "tandem", "sandbox")
	}
	for _, o := range []Options{{Dir: "one"}, {Dir: "two"}} {
		if got := interpreterCache(o, log); got != common {
			t.Errorf("%s keeps them in %s, want %s", o.Dir, got, common)
		}
	}
	if got := interpreterCache(Options{Dir: "one", CodeCache: "mine"}, log); got != "mine" {
		t.Errorf("they are kept in %s", got)
	}
	if err := os.Chmod(home, 0o777); err != nil {
		t.Fatal(err)
	}
	if got := interpreterCache(Options{Dir: "one"}, log); got != filepath.Join("one", "sandbox") {
		t.Errorf("they are kept in %s, which everybody can write", got)
	}
}

// Code that runs when the server stops does not keep it, and fails nothing: the next start runs it again.
func TestInstance_ClosesWhileCodeRuns(t *testing.T) {
	t.Parallel()
	dir := sqlitetest.Dir(t)
	i := openInstance(t, dir)
	i.saveText(t, `
metadata: {id: endless, name: endless, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: code, description: d, type: ACTION, subtype: RUN_CODE, configurations: {language: javascript, code: "function main(x) { while (true); }", time_limit_ms: 120000}}
  - {id: out, description: d, type: CALL, subtype: EMPTY}
connections:
  - {from_node: start, to_node: code}
  - {from_node: start, to_node: out, conversion_function: "x => { while (true); }"}
`)
	id := i.startText(t, "endless", `{}`)
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(t.Context(), Options{Dir: dir, Idle: true})
	if err != nil {
		t.Fatal(err)
	}
	e, err := again.stores.Executions.Get(t.Context(), user, id)
	if err != nil || e.Status != engine.StatusRunning {
		t.Errorf("it is %s: %q %v", e.Status, e.Error, err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}

// A process that has run the code of one workspace never sees that of another.
func TestInterpreter_Workspaces(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("processes are looked for in /proc")
	}
	dir := t.TempDir()
	pool := sandbox.New(sandbox.Options{Dir: dir})
	defer pool.Close()
	x := interpreter{pool}
	for _, workspace := range []string{"one", "two", "one", "two"} {
		if _, err := x.Run(t.Context(), workspace, time.Unix(1, 0), "seed", node.Code{Language: "javascript", Source: "x => 1"}); err != nil {
			t.Fatal(err)
		}
	}
	found := 0
	entries, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range entries {
		if line, err := os.ReadFile(name); err == nil && strings.Contains(string(line), "javascript="+dir) {
			found++
		}
	}
	if found != 2 {
		t.Errorf("%d processes for two workspaces", found)
	}
}

// Code that does not parse is refused when the workflow is saved, with its line.
func TestAPI_RefusesCodeThatDoesNotParse(t *testing.T) {
	t.Parallel()
	if err := python(); err != nil {
		t.Fatal(err)
	}
	x := openSite(t)
	flow := func(conversion string) map[string]any {
		return map[string]any{
			"metadata": map[string]any{"id": "c", "name": "c", "description": "d"},
			"nodes": []any{
				map[string]any{"id": "start", "description": "d", "type": "TRIGGER", "subtype": "MANUAL"},
				map[string]any{"id": "out", "description": "d", "type": "CALL", "subtype": "EMPTY"},
			},
			"connections": []any{map[string]any{"from_node": "start", "to_node": "out", "conversion_function": conversion}},
		}
	}
	for name, c := range map[string]struct{ conversion, part string }{
		"Python":     {"def convert(x):\n    y = (1\n    return y", "line 2"},
		"Lambda":     {"lambda x: {", "'{' was never closed"},
		"JavaScript": {"x => { return (x }", "expecting"},
		"Function":   {"function convert(x) { retrn x }", ""},
		"Fine":       {"def convert(x):\n    return {**x}", "fine"},
		"FineLambda": {"(lambda x: x)", "fine"},
		"FineArrow":  {"// doubles\n(x) => ({n: x.n * 2})", "fine"},
		"FineHelper": {"const k = 2\nfunction convert(x) { return x.n * k }", "fine"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := flow(c.conversion)
			body["metadata"].(map[string]any)["id"] = name
			a := x.call(t, "editor", "POST", "/workflows", body)
			if c.part == "fine" {
				want[api.Saved](t, a, http.StatusCreated)
				return
			}
			f := refused(t, a, http.StatusUnprocessableEntity, "invalid")
			if len(f.Errors) != 1 || f.Errors[0].Path != "connections[0].conversion_function" || !strings.Contains(f.Errors[0].Message, c.part) {
				t.Errorf("refused with %+v", f.Errors)
			}
		})
	}
}

// Code that has no function to call is refused when the workflow is saved, and so it is told of what is set and does nothing.
func TestAPI_RefusesCodeWithoutFunction(t *testing.T) {
	t.Parallel()
	if err := python(); err != nil {
		t.Fatal(err)
	}
	x := openSite(t)
	for name, c := range map[string]struct {
		language, code string
		fine           bool
	}{
		"script":   {"javascript", "const total = 1 + 1", false},
		"value":    {"javascript", "({a: 1})", false},
		"python":   {"python", "total = 1 + 1", false},
		"arrow":    {"javascript", "x => x", true},
		"named":    {"javascript", "JSON.stringify", true},
		"method":   {"javascript", "({main(x) { return x }}).main", true},
		"def":      {"python", "def main(data):\n    return data", true},
		"builtin":  {"python", "str.upper", true},
		"callable": {"python", "from json import dumps as main", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := x.call(t, "editor", "POST", "/workflows", map[string]any{
				"metadata": map[string]any{"id": name, "name": name, "description": "d"},
				"nodes": []any{
					map[string]any{"id": "start", "description": "d", "type": "TRIGGER", "subtype": "MANUAL"},
					map[string]any{"id": "run", "description": "d", "type": "ACTION", "subtype": "RUN_CODE", "configurations": map[string]any{"language": c.language, "code": c.code}},
				},
				"connections": []any{map[string]any{"from_node": "start", "to_node": "run"}},
			})
			if c.fine {
				want[api.Saved](t, a, http.StatusCreated)
				return
			}
			f := refused(t, a, http.StatusUnprocessableEntity, "invalid")
			if len(f.Errors) != 1 || f.Errors[0].Path != "nodes[1].configurations.code" || !strings.Contains(f.Errors[0].Message, "defines no function") {
				t.Errorf("refused with %+v", f.Errors)
			}
		})
	}
}

// A name in output_params that the output never has is told of.
func TestAPI_WarnsOfOutputsThatNeverCome(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	warned := func(node map[string]any) (paths []string) {
		t.Helper()
		node["id"], node["description"] = "n", "d"
		a := want[api.Validation](t, x.call(t, "editor", "POST", "/workflows/validate", map[string]any{
			"metadata":    map[string]any{"id": "w", "name": "w", "description": "d"},
			"nodes":       []any{map[string]any{"id": "start", "description": "d", "type": "TRIGGER", "subtype": "MANUAL"}, node},
			"connections": []any{map[string]any{"from_node": "start", "to_node": "n"}},
		}), http.StatusOK)
		for _, p := range a.Problems {
			paths = append(paths, p.Path+": "+p.Message)
		}
		return paths
	}
	code := map[string]any{"code": "def main(d):\n    return d"}
	if got := warned(map[string]any{"type": "ACTION", "subtype": "RUN_CODE", "configurations": code, "output_params": map[string]any{"result": "", "stdot": ""}}); len(got) != 1 || !strings.HasPrefix(got[0], "nodes[1].output_params.stdot: ") || !strings.Contains(got[0], `"stdout"`) {
		t.Errorf("told %q", got)
	}
	for _, open := range []map[string]any{
		{"type": "CALL", "subtype": "EMPTY", "configurations": map[string]any{"pass_through": true}, "output_params": map[string]any{"anything": ""}},
		{"type": "ACTION", "subtype": "RUN_CODE", "configurations": code, "output_params": map[string]any{"duration_ms": "d"}},
	} {
		if got := warned(open); len(got) > 0 {
			t.Errorf("told %q", got)
		}
	}
}
