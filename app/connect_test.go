package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/api"
	"tandem/client"
	"tandem/engine"
	"tandem/fault"
	"tandem/reference"
	"tandem/store/sqlite/sqlitetest"
	"tandem/validation"
	"tandem/workflow"
)

func connectTo(t *testing.T, dir string) *Connection {
	t.Helper()
	c, err := NewConnection(t.Context(), Connect{Dir: dir, Make: true, Drives: true, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *Connection) applyText(t *testing.T, text string) api.Saved {
	t.Helper()
	report, saved, err := c.ApplyFile(t.Context(), "-", strings.NewReader(text))
	if err != nil || !report.Valid {
		t.Fatal(report, err)
	}
	return saved
}

// The API works in this process as it does over a network: streams come while they are made, several at once, and end when
// nobody reads them or the connection is closed.
func TestConnection_Streams(t *testing.T) {
	t.Parallel()
	c := connectTo(t, sqlitetest.Dir(t))
	c.applyText(t, waitingFlow)
	e, err := c.Execute(t.Context(), "kid", api.ExecuteRequest{}, "")
	if err != nil {
		t.Fatal(err)
	}
	const readers = 20
	waits, done := make(chan struct{}, readers), make(chan error, readers)
	for range readers {
		go func() {
			done <- c.Watch(t.Context(), e.ExecutionID, "", client.VocabularyExecution, func(e api.Event) error {
				if e.EventType == "node_started" {
					waits <- struct{}{}
				}
				return nil
			})
		}()
	}
	for range readers { // all of them have seen it wait: nothing is held back until the end
		<-waits
	}
	if _, err := c.Input(t.Context(), e.ExecutionID, api.InputRequest{NodeID: "w", InputData: json.RawMessage(`{}`)}); err != nil {
		t.Fatal(err)
	}
	for range readers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if got, err := c.Execution(t.Context(), e.ExecutionID); err != nil || got.Status != string(engine.StatusSuccess) {
		t.Errorf("%+v, %v", got, err)
	}
	// One that is being read does not keep the connection from closing.
	e, err = c.Execute(t.Context(), "kid", api.ExecuteRequest{}, "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	reading, ended := make(chan struct{}), make(chan error, 1)
	once := sync.OnceFunc(func() { close(reading) })
	go func() {
		ended <- c.Watch(ctx, e.ExecutionID, "", "", func(api.Event) error { once(); return nil })
	}()
	<-reading
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	stop()
	if err := <-ended; err == nil {
		t.Error("a stream that was broken off ended as if the execution had")
	}
	if _, err := c.Execution(t.Context(), e.ExecutionID); fault.CodeOf(err) != fault.NetworkError {
		t.Errorf("after closing: %v", err)
	}
}

func TestNewConnection_Refuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	none := filepath.Join(dir, "none")
	if _, err := NewConnection(t.Context(), Connect{Dir: none, Version: "test"}); fault.CodeOf(err) != fault.NotFound || !strings.Contains(err.Error(), "--data") {
		t.Errorf("a directory without data: %v", err)
	}
	if _, err := os.Stat(none); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it was made: %v", err)
	}
	c := connectTo(t, dir)
	defer c.Close()
	if _, err := NewConnection(t.Context(), Connect{Dir: dir, Version: "test"}); fault.CodeOf(err) != fault.Conflict || !strings.Contains(err.Error(), "--server") {
		t.Errorf("a directory in use: %v", err)
	}
	if _, err := NewConnection(t.Context(), Connect{Server: "nonsense"}); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("a wrong address: %v", err)
	}
}

// park starts executions of a workflow and closes the directory before they end.
func park(t *testing.T, dir, text, id string, n int) []string {
	t.Helper()
	c := connectTo(t, dir)
	c.applyText(t, text)
	var ids []string
	for range n {
		e, err := c.Execute(t.Context(), id, api.ExecuteRequest{}, "")
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, e.ExecutionID)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	return ids
}

const delayFlow = `
metadata: {id: late, name: late, description: d}
nodes:
  - {id: d, description: d, type: FLOW, subtype: DELAY, configurations: {duration_seconds: 0.3}}
`

// Resuming one execution takes up that one, its timers and its children, and leaves the others alone.
func TestRunFile_ResumesOne(t *testing.T) {
	t.Parallel()
	dir := sqlitetest.Dir(t)
	ids := park(t, dir, delayFlow, "late", 3)
	before := rows(t, dir, ids)
	var frames []string
	report, e, err := RunFile(t.Context(), Run{Dir: dir, Resume: ids[1], Version: "test", Each: func(e api.Event) error {
		frames = append(frames, e.EventType)
		return nil
	}})
	if err != nil || !report.Valid || e.Status != string(engine.StatusSuccess) {
		t.Fatal(report, e, err)
	}
	if diff := cmp.Diff([]string{"node_completed", "execution_completed"}, frames); diff != "" {
		t.Errorf("frames (-want +got):\n%s", diff)
	}
	after := rows(t, dir, ids)
	if after[1] == before[1] || after[0] != before[0] || after[2] != before[2] {
		t.Errorf("the journals had %v rows and have %v; only the second may have more", before, after)
	}
}

// rows is how long the journals of executions are.
func rows(t *testing.T, dir string, ids []string) (list []uint64) {
	t.Helper()
	c := connectTo(t, dir)
	defer c.Close()
	for _, id := range ids {
		e, err := c.Execution(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e.Seq)
	}
	return list
}

func TestRunFile_ResumesChildren(t *testing.T) {
	t.Parallel()
	dir := sqlitetest.Dir(t)
	c := connectTo(t, dir)
	c.applyText(t, strings.ReplaceAll(delayFlow, "late", "kid"))
	c.applyText(t, subFlow("true"))
	e, err := c.Execute(t.Context(), "par", api.ExecuteRequest{}, "")
	if err != nil {
		t.Fatal(err)
	}
	child := engine.ChildID(e.ExecutionID, "k", 0)
	enough := errors.New("it waits")
	for _, id := range []string{e.ExecutionID, child} {
		err = c.Watch(t.Context(), id, "", "", func(e api.Event) error {
			if e.EventType == "node_started" {
				return enough
			}
			return nil
		})
		if !errors.Is(err, enough) && fault.CodeOf(err) != fault.NotFound {
			t.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	_, got, err := RunFile(t.Context(), Run{Dir: dir, Resume: e.ExecutionID, Version: "test"})
	if err != nil || got.Status != string(engine.StatusSuccess) {
		t.Errorf("%+v, %v", got, err)
	}
}

// An interrupted run is parked, and what it has done stays done.
func TestRunFile_Parks(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "w.yaml")
	if err := os.WriteFile(file, []byte(waitingFlow), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := sqlitetest.Dir(t)
	why := errors.New("enough")
	ctx, stop := context.WithCancelCause(t.Context())
	id := ""
	_, _, err := RunFile(ctx, Run{File: file, Dir: dir, Version: "test", Started: func(e string, _ bool) { id = e }, Each: func(e api.Event) error {
		if e.EventType == "node_started" {
			stop(why)
		}
		return nil
	}})
	if !errors.Is(err, why) || id == "" {
		t.Fatalf("%v, execution %q", err, id)
	}
	c := connectTo(t, dir)
	defer c.Close()
	if e, err := c.Execution(t.Context(), id); err != nil || engine.Status(e.Status).Final() {
		t.Errorf("%+v, %v", e, err)
	}
}

// What is exported is what was kept, to the last digit, as YAML and as JSON.
func TestConnection_ExportsWhatWasApplied(t *testing.T) {
	t.Parallel()
	c := connectTo(t, sqlitetest.Dir(t))
	defer c.Close()
	odd := `{"metadata": {"id": "odd", "name": "0x1F", "description": "line\nbreak \"and\" 'quotes' \ud83d\ude00 \u0007 #no comment: yes"}, "nodes": [
		{"id": "n", "description": "~", "type": "CALL", "subtype": "EMPTY", "input_params": {"z": 1.50, "a": 1e300, "big": 123456789012345678901234567890, "t": "true", "n": null, "e": "", "s": " lead", "list": [], "obj": {}, "deep": [[{"k": ["- x", "? y", "2026-01-02", "1_000", "0o7", ".5", "="]}]]}}]}`
	texts := map[string]string{"odd.json": odd}
	for _, pattern := range []string{"*.yaml", "*.json"} {
		files, err := filepath.Glob(filepath.Join("..", "examples", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			texts[filepath.Base(f)] = string(data)
		}
	}
	for name, text := range texts {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		report, saved, err := c.ApplyFile(t.Context(), file, nil)
		if err != nil || !report.Valid {
			t.Errorf("%s: %v %v", name, report, err)
			continue
		}
		for _, asJSON := range []bool{true, false} {
			out, err := c.Export(t.Context(), saved.Workflow.ID, 0, asJSON)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			source, problems := workflow.Parse(out, workflow.Options{Kinds: Kinds()})
			if source == nil {
				t.Errorf("%s: what was exported cannot be read: %v\n%s", name, problems, out)
				continue
			}
			if got := workflow.Hash(source.Definition); got != saved.Workflow.RevisionHash {
				t.Errorf("%s (JSON %v): what was exported is another definition:\n%s", name, asJSON, out)
			}
		}
	}
}

func TestConnection_ApplyTellsPlaces(t *testing.T) {
	t.Parallel()
	c := connectTo(t, sqlitetest.Dir(t))
	defer c.Close()
	report, _, err := c.ApplyFile(t.Context(), "-", strings.NewReader("metadata: {name: n}\nnodes:\n  - {id: a, description: d, type: FLOW, subtype: IFF}\n"))
	if err != nil || report.Valid || len(report.Problems) == 0 || report.Problems[0].Line != 3 || report.Problems[0].Code != "unknown_kind" {
		t.Errorf("%+v, %v", report, err)
	}
	if list, err := c.Workflows(t.Context(), client.WorkflowQuery{}); err != nil || list.TotalCount != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

// Every kind can be explained: its fields are named once, and its example is a node that is right as far as it goes.
func TestNodeKinds(t *testing.T) {
	t.Parallel()
	kinds := NodeKinds()
	if len(kinds) < 15 {
		t.Fatalf("only %d kinds", len(kinds))
	}
	for _, k := range kinds {
		fields, err := reference.Fields(k.ConfigSchema)
		if err != nil {
			t.Errorf("%s: %v", k.Name, err)
		}
		seen := map[string]bool{}
		for _, f := range fields {
			if seen[f.Name] || f.Name == "" || f.Type == "" {
				t.Errorf("%s: field %+v", k.Name, f)
			}
			seen[f.Name] = true
		}
		if len(k.Examples) == 0 {
			t.Errorf("%s has no example", k.Name)
			continue
		}
		example, err := reference.ReadExample(k, k.Examples[0])
		if err != nil {
			t.Errorf("%s: %v", k.Name, err)
			continue
		}
		text := "metadata: {name: x, description: d}\nnodes:\n"
		prefix := "  - "
		for line := range strings.Lines(example.Node) {
			text += prefix + line
			prefix = "    "
		}
		source, problems := workflow.Parse([]byte(text), workflow.Options{Kinds: Kinds()})
		if source == nil {
			t.Errorf("%s: %v\n%s", k.Name, problems, text)
			continue
		}
		for _, p := range source.Validate(validation.Rules(Kinds())) {
			if p.Code == workflow.ProblemUnknownKind || strings.HasPrefix(p.Code, "unknown_config") {
				t.Errorf("%s: %v\n%s", k.Name, p, text)
			}
		}
	}
	if _, err := NodeKind("flow.if"); err != nil {
		t.Error(err)
	}
	if _, err := NodeKind("FLOW.IFF"); fault.CodeOf(err) != fault.NotFound || !strings.Contains(fmt.Sprint(err), "FLOW.IF") {
		t.Error(err)
	}
}
