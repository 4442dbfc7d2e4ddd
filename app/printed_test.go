package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"tandem/api"
	"tandem/engine"
	"tandem/store/sqlite/sqlitetest"
)

// told are the lines of an execution as LEVEL node: message, in the order of the log.
func (x *site) told(t testing.TB, id string) []string {
	t.Helper()
	logs := want[api.Logs](t, x.call(t, "viewer", "GET", "/executions/"+id+"/logs?limit=1000", nil), http.StatusOK)
	var list []string
	for _, l := range logs.Lines {
		list = append(list, l.Level+" "+l.NodeID+": "+l.Message)
	}
	return list
}

// tells waits until an execution has so many lines.
func (x *site) tells(t testing.TB, id string, lines int) []string {
	t.Helper()
	until := time.Now().Add(2 * time.Minute)
	for {
		list := x.told(t, id)
		if len(list) >= lines {
			return list
		}
		if time.Now().After(until) {
			t.Fatalf("the log has %q, want %d lines", list, lines)
		}
	}
}

// step is a workflow of one node behind a trigger.
func step(id, subtype, configurations string) string {
	return fmt.Sprintf(`
metadata: {id: %s, name: %s, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: work, description: d, type: ACTION, subtype: %s, configurations: %s}
connections:
  - {from_node: start, to_node: work}
`, id, id, subtype, configurations)
}

// What code and processes print is in the log of the node and in the stream, also when they fail.
func TestPrinted_KeptWhenItFails(t *testing.T) {
	t.Parallel()
	if err := python(); err != nil {
		t.Fatal(err)
	}
	x := openSiteAs(t, func(o *Options, _ string) {
		if runtime.GOOS != "linux" {
			return
		}
		scripts, err := ParseScripts("sh", "")
		if err != nil {
			t.Fatal(err)
		}
		o.Scripts = scripts
	})
	// What is printed is told to those who listen, so nothing is printed before.
	const gate = `  - {id: gate, description: d, type: FLOW, subtype: WAIT, configurations: {wait_type: signal, signal_name: go, timeout_seconds: 1000}}
connections:
  - {from_node: start, to_node: gate}`
	for name, c := range map[string]struct {
		workflow string
		lines    []string
		details  []string // in the error's details
	}{
		"python": {step("python", "RUN_CODE", `{code: "import sys\ndef main(d):\n  print('one', 1)\n  print('two', file=sys.stderr)\n  print('three', end='')\n  raise ValueError('no')"}`),
			[]string{"INFO work: one 1", "WARN work: two", "INFO work: three", "ERROR work: the node failed: line 6: ValueError: no"}, []string{`"stdout":"one 1\nthree"`, `"stderr":"two\n"`}},
		"javascript": {step("javascript", "RUN_CODE", `{language: javascript, code: "function main(d) { console.log('one'); console.error('two'); throw new Error('no') }"}`),
			[]string{"INFO work: one", "WARN work: two", "ERROR work: the node failed: line 1: Error: no"}, []string{`"stdout":"one\n"`}},
		"endless": {step("endless", "RUN_CODE", `{time_limit_ms: 2500, code: "def main(d):\n  print('one')\n  while True: pass"}`),
			[]string{"INFO work: one", "ERROR work: the node failed: the code did not end within 2.5s; raise time_limit_ms or do less"}, []string{`"stdout":"one\n"`}},
		"script": {step("script", "EXECUTE_SCRIPT", `{interpreter: sh, script: "echo one; echo two >&2; exit 3"}`),
			[]string{"INFO work: one", "WARN work: two", "ERROR work: the node failed: the process ended with exit code 3"}, []string{`"stdout":"one\n"`, `"stderr":"two\n"`}},
		"late": {step("late", "RUN_CODE", `{timeout: 20, max_retries: 0, time_limit_ms: 60000, code: "import time\ndef main(d):\n  print('one')\n  while True: time.sleep(0.1)"}`),
			[]string{"INFO work: one", "ERROR work: the node failed: the attempt took longer than its 20 s"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "script" && runtime.GOOS != "linux" {
				t.Skip("host processes run on Linux only")
			}
			x.save(t, strings.NewReplacer("connections:", gate, "from_node: start", "from_node: gate").Replace(c.workflow))
			id := x.execute(t, name, api.ExecuteRequest{})
			var live strings.Builder
			x.follow(t, "viewer", "/executions/"+id+"/events", "", func(e heard) bool {
				if live.Len() == 0 { // somebody listens
					want[api.ActionResponse](t, x.call(t, "operator", "POST", "/executions/"+id+"/input", api.InputRequest{NodeID: "gate", InputData: json.RawMessage(`{"signal":"go"}`)}), http.StatusOK)
				}
				live.WriteString(e.Data)
				return false
			})
			x.reaches(t, id, engine.StatusError)
			got := x.tells(t, id, len(c.lines)) // an attempt that was too late tells what it printed when it has ended
			for _, line := range c.lines {
				if !slices.ContainsFunc(got, func(l string) bool { return strings.HasPrefix(l, line) }) {
					t.Errorf("the log has %q, not %q", got, line)
				}
			}
			if len(got) != len(c.lines) {
				t.Errorf("the log has %q, want %q", got, c.lines)
			}
			if !strings.Contains(live.String(), `{"stdout":"one`) {
				t.Errorf("the stream does not tell what was printed: %s", live.String())
			}
			node := x.read(t, id).NodeExecutions["work"]
			for _, part := range c.details {
				if node.Error == nil || !strings.Contains(string(node.Error.ErrorDetails), part) {
					t.Errorf("the error is %+v, without %s", node.Error, part)
				}
			}
		})
	}
}

// The log has what a node says while it runs, before it has ended.
func TestPrinted_WhileItRuns(t *testing.T) {
	t.Parallel()
	if err := python(); err != nil {
		t.Fatal(err)
	}
	x := openSite(t)
	x.save(t, step("long", "RUN_CODE", `{time_limit_ms: 120000, code: "import time\ndef main(d):\n  print('begun')\n  time.sleep(100)"}`))
	id := x.execute(t, "long", api.ExecuteRequest{})
	printed := false
	x.follow(t, "viewer", "/executions/"+id+"/events", "", func(e heard) bool {
		printed = printed || e.Name == "node_output_update" && strings.Contains(e.Data, `{"stdout":"begun\n"}`)
		return e.Name == "node_logs_update" && strings.Contains(e.Data, `"written_lines":{"activation_id":"work","count":1}`) && strings.Contains(e.Data, `"node_id":"work"`)
	})
	if got := want[api.Logs](t, x.call(t, "viewer", "GET", "/executions/"+id+"/logs", nil), http.StatusOK).Lines; len(got) != 1 || got[0].Message != "begun" || !printed {
		t.Errorf("the log has %+v; the stream has told what was printed: %v", got, printed)
	}
	if s := x.read(t, id).NodeExecutions["work"].Status; s != string(engine.NodeRunning) {
		t.Errorf("the node is %s", s)
	}
	x.act(t, id, api.ActionRequest{Action: "cancel"})
	x.reaches(t, id, engine.StatusCanceled)
}

// A conversion that returns what it was given, whole, changed or inside of something else, does not hand on the names that it was given
// besides.
func TestConversion_HandsOnNoAliases(t *testing.T) {
	t.Parallel()
	i := openWithCode(t, sqlitetest.Dir(t))
	closeAfter(t, i)
	for name, c := range map[string]struct{ source, from, want string }{
		"unchanged":      {"def convert(input_data: Dict[str, Any]) -> Dict[str, Any]: return input_data", `{"a":1.5,"n":12345678901234567890}`, `{"a":1.5,"n":12345678901234567890}`},
		"in_javascript":  {"x => x", `{"a":1.5,"n":12345678901234567890}`, `{"a":1.5,"n":12345678901234567890}`},
		"one_field_more": {"lambda d: {**d, 'b': 2}", `{"a":1}`, `{"a":1,"b":2}`},
		"in_place":       {"def convert(d):\n  d['a'] += 1\n  print('converted')\n  return d", `{"a":1}`, `{"a":2}`},
		"wanted":         {"lambda d: {'data': d['data']}", `{"a":1}`, `{"data":{"a":1}}`},
		"wrapped":        {"lambda d: {'order': d}", `{"a":1,"n":12345678901234567890}`, `{"order":{"a":1,"n":12345678901234567890}}`},
		"in_a_list":      {"def convert(d): return {'l': [d, d['value']]}", `{"a":1}`, `{"l":[{"a":1},{"a":1}]}`},
		"js_wrapped":     {"(x) => ({order: x})", `{"a":1}`, `{"order":{"a":1}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i.saveText(t, fmt.Sprintf(`
metadata: {id: %s, name: %s, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: from, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
  - {id: out, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
connections:
  - {from_node: start, to_node: from, conversion_function: %q}
  - {from_node: from, to_node: out, conversion_function: %q}
`, name, name, "lambda d: json.loads('"+c.from+"')", c.source))
			id := i.startText(t, name, `{}`)
			i.ends(t, id, engine.StatusSuccess)
			outputs, err := i.Outputs(t.Context(), user, id)
			if err != nil || string(outputs["out"]) != c.want {
				t.Errorf("got %s, %v; want %s", outputs["out"], err, c.want)
			}
		})
	}
}
