// Package nodetest is what tests of kinds share: a call as a kind sees it, runs of a kind by its name, comparing what came out, and what
// every kind must do ([Conform]). Only tests import it, those of this repository and those of programs that bring kinds of their own.
package nodetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"tandem/expr"
	"tandem/fault"
	"tandem/node"
	"tandem/payload"
)

// Start is when every activation of a [NewCall] starts.
func Start() time.Time { return time.Date(2030, 1, 31, 9, 0, 0, 0, time.UTC) }

// Value decodes JSON the way kinds do.
func Value(t testing.TB, text string) any {
	t.Helper()
	v, err := payload.Decode([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// NewCall makes a call with real expressions and real code, in a scope like that of a node at the top level. An empty configuration or
// input is {}.
func NewCall(t testing.TB, config, input string) *node.Call {
	t.Helper()
	if config == "" {
		config = "{}"
	}
	if input == "" {
		input = "{}"
	}
	call := &node.Call{
		ExecutionID: "exec_1", ActivationID: "n", NodeID: "n", NodeName: "n", WorkflowID: "wf_1", UserID: "ada",
		Config: json.RawMessage(config), Input: json.RawMessage(input), Now: Start(),
		Connected: func(string) bool { return true },
		Emit:      func(any) {},
		Code:      Code,
		Log:       func(node.Level, string, map[string]any) {},
	}
	in := Value(t, input)
	call.Eval = func(source string, extra map[string]any) (any, error) {
		program, err := expr.Compile(source)
		if err != nil {
			return nil, err
		}
		names := map[string]any{"input": in, "data": in, "context": nil, "variables": nil,
			"runtime": map[string]any{}, "steps": map[string]any{}}
		if fields, ok := in.(map[string]any); ok {
			maps.Copy(names, fields)
		}
		maps.Copy(names, extra)
		return program.Eval(expr.Vars{Values: names, At: Start()}, expr.Limits{})
	}
	return call
}

// Kinds are the kinds of a test, by name.
type Kinds struct{ registry *node.Registry }

// Of makes the kinds of a test. It infers their schemas, which takes a while: a package makes them once.
func Of(list ...node.Kind) Kinds {
	r := &node.Registry{}
	r.Register(list...)
	return Kinds{r}
}

// Kind finds a kind by its name.
func (k Kinds) Kind(t testing.TB, name string) node.Kind {
	t.Helper()
	found, ok := k.registry.Get(name)
	if !ok {
		t.Fatalf("there is no kind %q", name)
	}
	return found
}

// Run runs a kind once. One that runs a body must end without opening it.
func (k Kinds) Run(t testing.TB, name string, call *node.Call) (node.Outcome, error) {
	t.Helper()
	found := k.Kind(t, name)
	if found.Run != nil {
		return found.Run(context.Background(), call)
	}
	opening, err := found.Scope.Open(context.Background(), call)
	if err == nil && opening.Done == nil {
		t.Fatalf("%s opened its body: %+v", name, opening)
	}
	return opening.Done, err
}

// Done runs a kind that must end at once and returns its output.
func (k Kinds) Done(t testing.TB, name string, call *node.Call) node.Done {
	t.Helper()
	out, err := k.Run(t, name, call)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	d, ok := out.(node.Done)
	if !ok {
		t.Fatalf("%s: %#v is not an end", name, out)
	}
	return d
}

// Case is one run of a kind: its output by key, or the code of its error and a part of its message.
type Case struct {
	Name   string
	Config string
	Input  string
	Want   map[string]string
	// Exactly is the whole of the result, white space apart: nothing more may be in it, and the fields are in this order.
	Exactly string
	Code    fault.Code
	Part    string
}

// Check runs cases, each as a test of its own.
func (k Kinds) Check(t *testing.T, name string, cases []Case) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			out, err := k.Run(t, name, NewCall(t, c.Config, c.Input))
			if c.Code != "" {
				WantError(t, err, c.Code, c.Part)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			d, ok := out.(node.Done)
			if !ok {
				t.Fatalf("%#v is not an end", out)
			}
			if c.Exactly == "" {
				CheckDone(t, d, c.Want)
				return
			}
			var got, want bytes.Buffer
			if err := errors.Join(json.Compact(&got, d["result"]), json.Compact(&want, []byte(c.Exactly))); err != nil ||
				got.String() != want.String() {
				t.Errorf("the result is %s, want %s: %v", &got, &want, err)
			}
		})
	}
}

// CheckDone compares an output with the keys that are wanted and their payloads, see [Differences].
func CheckDone(t testing.TB, got node.Done, want map[string]string) {
	t.Helper()
	if g, w := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)); !slices.Equal(g, w) {
		t.Fatalf("keys are %v, want %v", g, w)
	}
	for key, wanted := range want {
		for _, d := range Differences(key, Value(t, wanted), Value(t, string(got[key]))) {
			t.Error(d)
		}
	}
}

// Differences compares JSON: of objects only the fields that are wanted, everything else in full. At is where the values stand.
func Differences(at string, want, got any) []string {
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
			list = append(list, Differences(at+"."+key, wantObject[key], v)...)
		}
		return list
	}
	wantList, ok := want.([]any)
	gotList, both := got.([]any)
	if ok && both && len(wantList) == len(gotList) {
		var list []string
		for i := range wantList {
			list = append(list, Differences(fmt.Sprintf("%s[%d]", at, i), wantList[i], gotList[i])...)
		}
		return list
	}
	if a, b := Text(want), Text(got); a != b {
		return []string{fmt.Sprintf("%s is %s, want %s", at, b, a)}
	}
	return nil
}

// Text is a value as compact JSON.
func Text(v any) string {
	raw, err := payload.Encode(v)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// WantError checks the code of an error that trying again does not help, and a part of its message.
func WantError(t testing.TB, err error, code fault.Code, part string) {
	t.Helper()
	if fault.CodeOf(err) != code || !strings.Contains(err.Error(), part) {
		t.Fatalf("got error %v, want %s with %q", err, code, part)
	}
	if e := fault.From(err); e.Retryable {
		t.Errorf("%v is retryable", err)
	}
}
