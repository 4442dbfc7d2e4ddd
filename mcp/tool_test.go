package mcp

import (
	"encoding/json"
	"strings"
	"testing"

	"tandem/payload"
	"tandem/store"
	"tandem/workflow"
)

func read(t *testing.T, raw string) Tool {
	t.Helper()
	tool, err := ReadTool("s", json.RawMessage(raw))
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

func TestEffect(t *testing.T) {
	t.Parallel()
	for annotations, want := range map[string]workflow.Effect{
		`{}`:                       workflow.Once,
		`{"readOnlyHint":true}`:    workflow.Idempotent,
		`{"idempotentHint":true}`:  workflow.Idempotent,
		`{"idempotentHint":false}`: workflow.Once,
		`{"destructiveHint":true,"idempotentHint":true}`: workflow.Idempotent,
		`{"destructiveHint":false}`:                      workflow.Once,
	} {
		if got := Effect(read(t, `{"name":"x","annotations":`+annotations+`}`)); got != want {
			t.Errorf("%s is %s", annotations, got)
		}
	}
}

func TestDrift(t *testing.T) {
	t.Parallel()
	before := []Tool{
		read(t, `{"name":"a","description":"A","inputSchema":{"type":"object","properties":{"p":{"type":"string"}}}}`),
		read(t, `{"name":"b","description":"B"}`),
		read(t, `{"name":"c","inputSchema":{"type":"object","required":["x","y"]}}`),
	}
	same := []Tool{
		// Order, space, and what a server keeps for itself do not count as a difference.
		read(t, `{ "inputSchema":{"properties":{"p":{"type":"string"}},"type":"object"}, "description":"A", "name":"a", "_meta":{"t":1}, "icons":[] }`),
		before[1], before[2],
	}
	if changes := Drift(Pin(before), same); len(changes) != 0 {
		t.Errorf("got %+v", changes)
	}
	changes := Drift(Pin(before), []Tool{
		read(t, `{"name":"a","description":"A!","inputSchema":{"type":"object","properties":{"p":{"type":"number"},"q":{}}},"annotations":{"readOnlyHint":true}}`),
		read(t, `{"name":"c","inputSchema":{"type":"object","required":["y","x"]}}`),
		read(t, `{"name":"d"}`),
	})
	var all []string
	for _, c := range changes {
		all = append(all, string(c.Kind)+" "+c.Summary)
	}
	want := `changed "a" has changed: annotations, description, inputSchema.properties.p.type, inputSchema.properties.q
removed "b" is gone
changed "c" has changed: inputSchema.required
added "d" is new`
	if got := strings.Join(all, "\n"); got != want {
		t.Errorf("got\n%s", got)
	}
	if changes[0].Before == nil || changes[0].After == nil || changes[1].After != nil || changes[3].Before != nil {
		t.Errorf("got %+v", changes)
	}
	if c := Drift(map[string]store.MCPPin{}, nil); len(c) != 0 {
		t.Errorf("got %+v", c)
	}
}

func TestCanonical(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"b":1, "a":[ 12345678901234567890, 1.50, "<&>" ]}`: `{"a":[12345678901234567890,1.50,"<&>"],"b":1}`,
		`"x"`: `"x"`,
	} {
		got, err := payload.Canonical(json.RawMessage(in))
		if err != nil || string(got) != want {
			t.Errorf("%s became %s, %v", in, got, err)
		}
	}
	for _, bad := range []string{``, `{`, `{} {}`} {
		if got, err := payload.Canonical(json.RawMessage(bad)); err == nil {
			t.Errorf("%q became %s", bad, got)
		}
	}
}

func FuzzCanonical(f *testing.F) {
	f.Add(`{"b":{"c":null},"a":[1e400,-0,"\u0000"]}`)
	f.Fuzz(func(t *testing.T, text string) {
		once, err := payload.Canonical(json.RawMessage(text))
		if err != nil {
			return
		}
		twice, err := payload.Canonical(once)
		if err != nil || string(once) != string(twice) {
			t.Errorf("%q became %s, then %s (%v)", text, once, twice, err)
		}
	})
}

func TestNames(t *testing.T) {
	t.Parallel()
	if s, n, ok := SplitToolID("a/b/c"); !ok || s != "a" || n != "b/c" {
		t.Errorf("got %q, %q, %v", s, n, ok)
	}
	for _, bad := range []string{"a", "/b", "a/"} {
		if _, _, ok := SplitToolID(bad); ok {
			t.Errorf("%q was split", bad)
		}
	}
	if got := ModelName("files", "read_file"); got != "files__read_file" {
		t.Errorf("got %q", got)
	}
	long := strings.Repeat("x", 80)
	names := map[string]bool{}
	for _, n := range []string{ModelName("s", long+"1"), ModelName("s", long+"2"), ModelName("s", "a.b"), ModelName("s", "a/b"), ModelName("s", "a_b"), ModelName("s", "读")} {
		if len(n) > 64 || strings.Trim(n, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" || names[n] {
			t.Errorf("name %q", n)
		}
		names[n] = true
	}
}
