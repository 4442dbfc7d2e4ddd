package code_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"tandem/builtin/code"
	"tandem/fault"
	"tandem/node"
	"tandem/node/nodetest"
)

func TestMain(m *testing.M) {
	if code.IsWarden() {
		code.Warden()
	}
	nodetest.Main(m)
}

func TestRunCode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config map[string]any
		input  string
		want   string
		code   fault.Code
		part   string
	}{
		"Python":     {map[string]any{"code": "def main(x):\n    print('hi')\n    return {**x, 'n': len(x['list'])}"}, `{"list":[1,2]}`, `"result":{"list":[1,2],"n":2},"stdout":"hi\n"`, "", ""},
		"JavaScript": {map[string]any{"language": "javascript", "code": "const twice = x => x * 2; function main(x) { return x.list.map(twice) }"}, `{"list":[1,2]}`, `"result":[2,4]`, "", ""},
		"Entry":      {map[string]any{"entry": "second", "code": "def first(x): return 1\ndef second(x): return 2\ndef third(x): return 3"}, `{}`, `"result":2`, "", ""},
		"LastOne":    {map[string]any{"code": "def first(x): return 1\ndef other(x): return 2"}, `{}`, `"result":2`, "", ""},
		"Exception":  {map[string]any{"code": "def main(x):\n    y = 1\n    return x['missing']"}, `{}`, ``, fault.CodeError, "missing"},
		"Endless":    {map[string]any{"time_limit_ms": 300, "code": "def main(x):\n    while True: pass"}, `{}`, ``, fault.CodeLimit, ""},
		"NotJSON":    {map[string]any{"code": "def main(x): return float('nan')"}, `{}`, ``, fault.OutputInvalid, ""},
		"NoFiles":    {map[string]any{"code": "def main(x): return open('/etc/passwd').read()"}, `{}`, ``, fault.CodeError, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outcome, err := kinds().Run(t, "ACTION.RUN_CODE", nodetest.NewCall(t, nodetest.Text(c.config), c.input))
			if c.code != "" {
				if fault.CodeOf(err) != c.code || !strings.Contains(fault.From(err).Message, c.part) {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := string(outcome.(node.Done)["result"]); !strings.Contains(got, c.want) {
				t.Errorf("got %s, want %s in it", got, c.want)
			}
		})
	}
	t.Run("TellsTheLine", func(t *testing.T) {
		t.Parallel()
		_, err := kinds().Run(t, "ACTION.RUN_CODE", nodetest.NewCall(t, nodetest.Text(map[string]any{"code": "def main(x):\n    y = 1\n    return x['missing']"}), `{}`))
		if line := fmt.Sprint(fault.From(err).Details["line"]); line != "3" {
			t.Errorf("the line is %s: %v", line, err)
		}
	})
}

func TestCodeTool(t *testing.T) {
	t.Parallel()
	fixed := nodetest.Text(map[string]any{
		"tool_name": "add", "code": "def add(x): return x['a'] + x['b']", "parameters": map[string]any{"type": "object", "required": []string{"a", "b"}},
	})
	outcome, err := kinds().Run(t, "TOOL.CODE_TOOL", nodetest.NewCall(t, fixed, `{"function_args":{"a":1,"b":2}}`))
	if err != nil || !strings.Contains(string(outcome.(node.Done)["result"]), `"result":{"result":3,`) {
		t.Errorf("got %v, %v", outcome, err)
	}
	if _, err := kinds().Run(t, "TOOL.CODE_TOOL", nodetest.NewCall(t, fixed, `{"function_args":{"a":1}}`)); fault.CodeOf(err) != fault.ParameterMissing || fmt.Sprint(fault.From(err).Details["missing_fields"]) != "[b]" {
		t.Errorf("error %v", err)
	}
	free := nodetest.Text(map[string]any{"language": "javascript", "function_args": map[string]any{"code": "x => x + 1", "input": 41}})
	outcome, err = kinds().Run(t, "TOOL.CODE_TOOL", nodetest.NewCall(t, free, `{}`))
	if err != nil || !strings.Contains(string(outcome.(node.Done)["result"]), `"result":{"result":42,`) {
		t.Errorf("got %v, %v", outcome, err)
	}
}

// A fixed function is given an object, also when the model names no arguments.
func TestCodeTool_NoArguments(t *testing.T) {
	t.Parallel()
	fixed := nodetest.Text(map[string]any{"tool_name": "ping", "code": "def ping(x): return len(x)", "parameters": map[string]any{"type": "object"}})
	outcome, err := kinds().Run(t, "TOOL.CODE_TOOL", nodetest.NewCall(t, fixed, `{}`))
	if err != nil || !strings.Contains(string(outcome.(node.Done)["result"]), `"result":{"result":0,`) {
		t.Errorf("got %v, %v", outcome, err)
	}
}

// What code prints never costs a model the result.
func TestCodeTool_CutsWhatIsPrinted(t *testing.T) {
	t.Parallel()
	free := nodetest.Text(map[string]any{"language": "javascript", "function_args": map[string]any{"code": `x => { console.log("\"".repeat(60000)); console.error("é".repeat(30000)); return 7 }`}})
	outcome, err := kinds().Run(t, "TOOL.CODE_TOOL", nodetest.NewCall(t, free, `{}`))
	if err != nil {
		t.Fatal(err)
	}
	var out struct {
		Result struct {
			Result         int
			Stdout, Stderr string
		}
	}
	if err := json.Unmarshal(outcome.(node.Done)["result"], &out); err != nil {
		t.Fatal(err)
	}
	if r := out.Result; r.Result != 7 || len(r.Stdout) < 10_000 || len(r.Stderr) < 10_000 {
		t.Errorf("result %d, %d and %d bytes", r.Result, len(r.Stdout), len(r.Stderr))
	}
}
