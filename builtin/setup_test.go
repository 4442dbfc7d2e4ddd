package builtin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tandem/builtin"
	"tandem/expr"
	"tandem/fault"
	"tandem/node"
)

// start is when every activation of these tests starts.
var start = time.Date(2030, 1, 31, 9, 0, 0, 0, time.UTC)

// registered are all kinds; making them infers their schemas, which takes a while.
var registered = sync.OnceValue(func() *node.Registry {
	r := &node.Registry{}
	r.Register(builtin.Kinds(builtin.Options{})...)
	return r
})

// kind finds a kind by name.
func kind(t testing.TB, name string) node.Kind {
	t.Helper()
	k, ok := registered().Get(name)
	if !ok {
		t.Fatalf("there is no kind %q", name)
	}
	return k
}

// value decodes JSON the way kinds do.
func value(t testing.TB, text string) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// newCall makes a call with real expressions, in a scope like that of a node at the top level.
func newCall(t testing.TB, config, input string) *node.Call {
	t.Helper()
	if config == "" {
		config = "{}"
	}
	if input == "" {
		input = "{}"
	}
	call := &node.Call{
		ExecutionID: "exec_1", ActivationID: "n", NodeID: "n", NodeName: "n", WorkflowID: "wf_1", UserID: "ada",
		Config: json.RawMessage(config), Input: json.RawMessage(input), Now: start,
		Connected: func(string) bool { return true },
		Emit:      func(any) {},
		Code:      code,
		Log:       func(node.Level, string, map[string]any) {},
	}
	in := value(t, input)
	call.Eval = func(source string, extra map[string]any) (any, error) {
		program, err := expr.Compile(source)
		if err != nil {
			return nil, err
		}
		names := map[string]any{"input": in, "data": in, "context": nil, "variables": nil, "runtime": map[string]any{}, "steps": map[string]any{}}
		if fields, ok := in.(map[string]any); ok {
			maps.Copy(names, fields)
		}
		maps.Copy(names, extra)
		return program.Eval(expr.Vars{Values: names, At: start}, expr.Limits{})
	}
	return call
}

func run(t testing.TB, name string, call *node.Call) (node.Outcome, error) {
	t.Helper()
	k := kind(t, name)
	if k.Run != nil {
		return k.Run(context.Background(), call)
	}
	opening, err := k.Scope.Open(context.Background(), call)
	if err == nil && opening.Done == nil {
		t.Fatalf("%s opened its body: %+v", name, opening)
	}
	return opening.Done, err
}

// done runs a kind that must end at once and returns its output.
func done(t testing.TB, name string, call *node.Call) node.Done {
	t.Helper()
	out, err := run(t, name, call)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	d, ok := out.(node.Done)
	if !ok {
		t.Fatalf("%s: %#v is no end", name, out)
	}
	return d
}

// differences compares JSON: of objects only the fields that are wanted, everything else in full.
func differences(at string, want, got any) []string {
	wantObject, ok := want.(map[string]any)
	gotObject, both := got.(map[string]any)
	if ok && both {
		var list []string
		for _, key := range slices.Sorted(maps.Keys(wantObject)) {
			v, has := gotObject[key]
			if !has {
				list = append(list, fmt.Sprintf("%s.%s is missing", at, key))
				continue
			}
			list = append(list, differences(at+"."+key, wantObject[key], v)...)
		}
		return list
	}
	wantList, ok := want.([]any)
	gotList, both := got.([]any)
	if ok && both && len(wantList) == len(gotList) {
		var list []string
		for i := range wantList {
			list = append(list, differences(fmt.Sprintf("%s[%d]", at, i), wantList[i], gotList[i])...)
		}
		return list
	}
	if a, b := text(want), text(got); a != b {
		return []string{fmt.Sprintf("%s is %s, want %s", at, b, a)}
	}
	return nil
}

func text(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(b.String())
}

// keyCase is one run of a kind: its output by key, or the code of its error and a part of its message.
type keyCase struct {
	name   string
	config string
	input  string
	want   map[string]string
	code   fault.Code
	part   string
}

func checkCases(t *testing.T, name string, cases []keyCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out, err := run(t, name, newCall(t, c.config, c.input))
			if c.code != "" {
				wantError(t, err, c.code, c.part)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			d, ok := out.(node.Done)
			if !ok {
				t.Fatalf("%#v is no end", out)
			}
			checkDone(t, d, c.want)
		})
	}
}

func checkDone(t testing.TB, got node.Done, want map[string]string) {
	t.Helper()
	if g, w := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)); !slices.Equal(g, w) {
		t.Fatalf("keys are %v, want %v", g, w)
	}
	for key, wanted := range want {
		for _, d := range differences(key, value(t, wanted), value(t, string(got[key]))) {
			t.Error(d)
		}
	}
}

func wantError(t testing.TB, err error, code fault.Code, part string) {
	t.Helper()
	if fault.CodeOf(err) != code || !strings.Contains(err.Error(), part) {
		t.Fatalf("got error %v, want %s with %q", err, code, part)
	}
	if e := fault.From(err); e.Retryable {
		t.Errorf("%v is retryable", err)
	}
}
