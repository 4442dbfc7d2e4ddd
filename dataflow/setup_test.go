package dataflow_test

import (
	"encoding/json"
	"errors"
	"testing"

	"tandem/dataflow"
	"tandem/fault"
)

// payload is an output that has only the default key.
func payload(raw string) map[string]json.RawMessage {
	return map[string]json.RawMessage{"result": json.RawMessage(raw)}
}

func newLayers(tb testing.TB, s dataflow.Start) *dataflow.Layers {
	tb.Helper()
	l, err := dataflow.New(s)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

func sync(tb testing.TB, l *dataflow.Layers, s dataflow.Step) dataflow.SyncTrace {
	tb.Helper()
	trace, err := l.Sync(s)
	if err != nil {
		tb.Fatal(err)
	}
	return trace
}

func open(tb testing.TB, l *dataflow.Layers, path string, seq uint64, vars map[string]json.RawMessage) {
	tb.Helper()
	if err := l.OpenScope(path, seq, vars); err != nil {
		tb.Fatal(err)
	}
}

func closeScope(tb testing.TB, l *dataflow.Layers, path string, seq uint64) dataflow.FoldTrace {
	tb.Helper()
	trace, err := l.CloseScope(path, seq)
	if err != nil {
		tb.Fatal(err)
	}
	return trace
}

func resolve(tb testing.TB, l *dataflow.Layers, raw string, r dataflow.Request) string {
	tb.Helper()
	t, err := dataflow.Compile(json.RawMessage(raw))
	if err != nil {
		tb.Fatal(err)
	}
	value, _, err := t.Resolve(l, r)
	if err != nil {
		tb.Fatal(err)
	}
	return string(value)
}

func resolveErr(tb testing.TB, l *dataflow.Layers, raw string, r dataflow.Request) *fault.Error {
	tb.Helper()
	t, err := dataflow.Compile(json.RawMessage(raw))
	if err != nil {
		tb.Fatal(err)
	}
	value, _, err := t.Resolve(l, r)
	e, ok := errors.AsType[*fault.Error](err)
	if !ok {
		tb.Fatalf("resolved %s to %s, error %v; want a fault", raw, value, err)
	}
	return e
}

// asOf is a request at the top level.
func asOf(seq uint64) dataflow.Request {
	return dataflow.Request{View: dataflow.View{AsOf: seq}}
}

// in is a request inside a scope.
func in(scope string, seq uint64) dataflow.Request {
	return dataflow.Request{View: dataflow.View{Scope: scope, AsOf: seq}}
}
