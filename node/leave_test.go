package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"tandem/credential"
	"tandem/dataflow"
	"tandem/engine"
	"tandem/fault"
	"tandem/node/rundata"
	"tandem/payload"
)

// ear hears what a run says, and has one credential.
type ear struct {
	mu       sync.Mutex
	heard    []string
	released int
}

func (e *ear) hear(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.heard = append(e.heard, text)
}

func (e *ear) Emit(chunk any) {
	raw, err := payload.Encode(chunk)
	if err != nil {
		raw = []byte(err.Error())
	}
	e.hear("chunk " + string(raw))
}

func (e *ear) Log(level Level, message string, fields map[string]any) {
	raw, err := payload.Encode(fields)
	if err != nil {
		raw = []byte(err.Error())
	}
	e.hear("log " + string(level) + " " + message + " " + string(raw))
}

func (e *ear) Detail(fields map[string]any) {
	raw, err := payload.Encode(fields)
	if err != nil {
		raw = []byte(err.Error())
	}
	e.hear("detail " + string(raw))
}

func (e *ear) Used(u Usage) { e.hear(fmt.Sprintf("used %d tokens", u.InputTokens+u.OutputTokens)) }

func (e *ear) Credential(_ context.Context, id string, _ ...string) (credential.Opened, error) {
	if id != "c1" {
		return credential.Opened{}, fault.Newf(fault.CredentialMissing, "credential %q does not exist", id)
	}
	opened := credential.Opened{ID: id, Type: "t", Data: json.RawMessage(`{"token":"canary"}`)}
	return opened.OnRelease(func() { e.released++ }), nil
}

// stars takes the word canary out.
type stars struct{}

func (stars) Text(s string) string { return strings.ReplaceAll(s, "canary", "***") }
func (s stars) JSON(raw json.RawMessage) json.RawMessage {
	return json.RawMessage(s.Text(string(raw)))
}
func (s stars) Fault(e *fault.Error) *fault.Error {
	return fault.New(e.Code, s.Text(e.Message))
}

// heard runs a kind and returns its result, whose references are the values themselves, and what it said.
func heard(ctx context.Context, t *testing.T, kind Kind) (Result, *ear) {
	t.Helper()
	r, e := newRig(t, kind, `{}`, ``), &ear{}
	result := r.revision.Run(ctx, Job{
		Run:   engine.RunNode{Attempt: engine.Attempt{Activation: "node", Attempt: 1}, Node: 1, Cause: engine.Cause{Kind: engine.CauseRun}, Inputs: []engine.Input{{Edge: 0, Ref: "in"}}, AsOf: 1, LastTry: true},
		Data:  rundata.Data{Layers: r.layers, Lock: &sync.RWMutex{}, View: dataflow.View{AsOf: 1}},
		Value: func(ref engine.Ref) (json.RawMessage, error) { return r.values[ref], nil },
		Out:   e, Redact: stars{},
	})
	fact := result.Fact(func(v json.RawMessage, _ ...payload.Part) engine.Ref { return engine.Ref(v) })
	result.Fact = func(Put) engine.Fact { return fact }
	return result, e
}

func outputOf(t *testing.T, result Result) string {
	t.Helper()
	done, ok := result.Fact(nil).(engine.NodeCompleted)
	if !ok {
		t.Fatalf("the run ended with %+v", result.Fact(nil))
	}
	return string(done.Outputs[0].Ref)
}

func TestRun_KeepsSecretsIn(t *testing.T) {
	t.Parallel()
	t.Run("Success", func(t *testing.T) {
		t.Parallel()
		result, e := heard(context.Background(), t, step(func(ctx context.Context, c *Call) (Outcome, error) {
			if _, err := c.Credential(ctx, "c1"); err != nil {
				return nil, err
			}
			c.Emit("a canary sings")
			c.Emit(map[string]any{"bird": "canary"})
			c.Log(Notice, "canary", map[string]any{"x": "canary"})
			c.Detail(map[string]any{"header": "canary"})
			return Done{"result": json.RawMessage(`{"echo":"canary"}`)}, nil
		}))
		if got := outputOf(t, result); got != `{"echo":"***"}` {
			t.Errorf("the output is %s", got)
		}
		if all := strings.Join(e.heard, "\n"); strings.Contains(all, "canary") || len(e.heard) != 4 {
			t.Errorf("heard: %s", all)
		}
		if e.released != 1 {
			t.Errorf("the credential was released %d times", e.released)
		}
	})
	t.Run("Failure", func(t *testing.T) {
		t.Parallel()
		result, e := heard(context.Background(), t, step(func(ctx context.Context, c *Call) (Outcome, error) {
			if _, err := c.Credential(ctx, "c1"); err != nil {
				return nil, err
			}
			return nil, fault.New(fault.RemoteRejected, "the server does not like canary")
		}))
		failed, ok := result.Fact(nil).(engine.NodeFailed)
		if !ok || strings.Contains(failed.Error.Message, "canary") || e.released != 1 {
			t.Errorf("the run ended with %+v, released %d", result.Fact(nil), e.released)
		}
	})
	t.Run("NoCredential", func(t *testing.T) {
		t.Parallel()
		for _, id := range []string{"", "c2"} {
			result, _ := heard(context.Background(), t, step(func(ctx context.Context, c *Call) (Outcome, error) {
				_, err := c.Credential(ctx, id)
				return nil, err
			}))
			if failed, ok := result.Fact(nil).(engine.NodeFailed); !ok || failed.Error.Code != fault.CredentialMissing {
				t.Errorf("%q: the run ended with %+v", id, result.Fact(nil))
			}
		}
	})
}

func TestRun_CollectsChunks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		chunks []any
		want   string
	}{
		"Text":   {[]any{"a", "", "b"}, `{"text":"ab"}`},
		"Object": {[]any{map[string]int{"n": 1}, map[string]int{"n": 2}}, `{"data":{"n":2}}`},
		"Both":   {[]any{"a", map[string]int{"n": 1}, "b"}, `{"data":{"n":1},"text":"ab"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result, e := heard(context.Background(), t, step(func(_ context.Context, call *Call) (Outcome, error) {
				for _, chunk := range c.chunks {
					call.Emit(chunk)
				}
				return Done{}, nil
			}))
			if got := outputOf(t, result); got != c.want || len(e.heard) != len(c.chunks) {
				t.Errorf("the output is %s, want %s; heard %q", got, c.want, e.heard)
			}
		})
	}
	t.Run("NothingAfterTheEnd", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(context.Background())
		_, e := heard(ctx, t, step(func(_ context.Context, call *Call) (Outcome, error) {
			call.Emit("heard")
			cancel()
			call.Emit("too late")
			return Done{"result": json.RawMessage(`1`)}, nil
		}))
		if !slices.Equal(e.heard, []string{`chunk "heard"`}) {
			t.Errorf("heard %q", e.heard)
		}
	})
}

func TestRun_Hooks(t *testing.T) {
	t.Parallel()
	kind := step(func(_ context.Context, c *Call) (Outcome, error) { return Done{"result": c.Input}, nil })
	kind.Prepare = func(_ context.Context, c *Call) (json.RawMessage, error) {
		return json.RawMessage(`{"prepared":true}`), nil
	}
	var told Done
	kind.After = func(_ context.Context, c *Call, outputs Done) error {
		told = outputs
		return errors.New("no matter")
	}
	result, _ := heard(context.Background(), t, kind)
	if got := outputOf(t, result); got != `{"prepared":true}` {
		t.Errorf("the output is %s", got)
	}
	if told != nil || result.After == nil {
		t.Fatal("what follows the success came before it was recorded, or not at all")
	}
	if err := result.After(context.Background()); err == nil || string(told["result"]) != `{"prepared":true}` {
		t.Errorf("error %v, outputs %s", err, told)
	}

	kind.Prepare = func(context.Context, *Call) (json.RawMessage, error) { return nil, fault.New(fault.InvalidInput, "no") }
	result, _ = heard(context.Background(), t, kind)
	if failed, ok := result.Fact(nil).(engine.NodeFailed); !ok || failed.Error.Code != fault.InvalidInput || result.After != nil {
		t.Errorf("the run ended with %+v", result.Fact(nil))
	}
}

func TestSchema(t *testing.T) {
	t.Parallel()
	o, err := Override{Input: json.RawMessage(`{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}`)}.compile("t")
	if err != nil {
		t.Fatal(err)
	}
	if err := checkSchema(o.input, fault.InvalidInput, "input", json.RawMessage(`{"n":1}`)); err != nil {
		t.Error(err)
	}
	if err := checkSchema(o.input, fault.InvalidInput, "input", json.RawMessage(`{"n":"x"}`)); fault.CodeOf(err) != fault.InvalidInput || fault.From(err).Details["path"] != "n" {
		t.Errorf("error %v", err)
	}
	if err := checkSchema(o.output, fault.OutputInvalid, "output", json.RawMessage(`1`)); err != nil {
		t.Error(err)
	}
	if _, err := (Override{Output: json.RawMessage(`{"type":"nonsense"}`)}).compile("t"); fault.CodeOf(err) != fault.InvalidConfig {
		t.Errorf("error %v", err)
	}
	if _, err := payload.CompileSchema(json.RawMessage(`{"$ref":"file:///etc/passwd"}`)); err == nil {
		t.Error("a schema has reached outside of itself")
	}
}

// What a person gives in the place of an output is the result, or, where there is none, a payload by key.
func TestRun_GivenOutputs(t *testing.T) {
	t.Parallel()
	kind := step(func(context.Context, *Call) (Outcome, error) { return nil, errors.New("it is not run") })
	for _, c := range []struct{ config, given, key, ref string }{
		{`{}`, `{"true":1}`, "result", `{"true":1}`},
		{`{"keys":["result","error"]}`, `5`, "result", `5`},
		{`{"keys":["true","false"]}`, `{"true":{"x":1}}`, "true", `{"x":1}`},
		{`{"keys":["true","false"]}`, `{"maybe":1}`, "", ""},
		{`{"keys":["true","false"]}`, `5`, "", ""},
	} {
		r := newRig(t, kind, c.config, ``)
		r.values["given"] = json.RawMessage(c.given)
		switch fact := r.run(engine.Cause{Kind: engine.CauseOutput, Ref: "given"}).(type) {
		case engine.NodeCompleted:
			if len(fact.Outputs) != 1 || fact.Outputs[0].Key != c.key || string(fact.Outputs[0].Ref) != c.ref {
				t.Errorf("%s with %s: %+v", c.config, c.given, fact.Outputs)
			}
		case engine.NodeFailed:
			if c.key != "" || fact.Error.Code != fault.InvalidInput {
				t.Errorf("%s with %s: %v", c.config, c.given, fact.Error)
			}
		}
	}
}
