package app

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"tandem/engine"
	"tandem/host"
)

// crashDir is set in the environment of a process that this test starts to be killed.
const crashDir = "TANDEM_TEST_CRASH_DIR"

// crashes is how often the process is killed.
const crashes = 12

const crashFlow = `
metadata: {id: crash, name: crash, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: each, description: d, type: FLOW, subtype: FOR_EACH, configurations: {items_path: list, max_concurrency: 3}}
  - {id: work, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}, input_params: {got: "{{item}}"}}
  - {id: nap, description: d, type: FLOW, subtype: DELAY, configurations: {duration_seconds: 0.01}}
  - {id: sub, description: d, type: FLOW, subtype: SUB_WORKFLOW, configurations: {workflow_id: crash_child, revision: latest}}
  - {id: sum, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}, input_params: {list: "{{each.outputs.results}}"}}
connections:
  - {from_node: start, to_node: each}
  - {from_node: each, to_node: work, output_key: iteration}
  - {from_node: work, to_node: nap}
  - {from_node: nap, to_node: each}
  - {from_node: each, to_node: sub, output_key: completed}
  - {from_node: sub, to_node: sum}
`

const crashChildFlow = `
metadata: {id: crash_child, name: crash_child, description: d}
nodes:
  - {id: a, description: d, type: CALL, subtype: EMPTY}
  - {id: b, description: d, type: CALL, subtype: EMPTY, input_params: {x: 1}, configurations: {pass_through: true}}
connections:
  - {from_node: a, to_node: b}
`

// TestCrash_Process is the process that is killed: it starts executions and says so when each is accepted.
func TestCrash_Process(t *testing.T) {
	dir := os.Getenv(crashDir)
	if dir == "" {
		return // not in such a process: TestCrash_KillNine starts it
	}
	i, err := Open(context.Background(), Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; ; n++ {
		id, err := i.Start(context.Background(), user, "crash", json.RawMessage(`{"list":[1,2,3,4,5,6,7,8,9,10,11,12,13,14]}`))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("accepted %s\n", id)
	}
}

// TestCrash_KillNine kills a process again and again while it works, and then looks whether anything is missing.
func TestCrash_KillNine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	i := openInstance(t, dir)
	for _, text := range []string{crashFlow, crashChildFlow} {
		i.saveText(t, text)
	}
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	var accepted []string
	for range crashes {
		accepted = append(accepted, killed(t, dir)...)
	}
	if len(accepted) < crashes {
		t.Fatalf("only %d executions were accepted by %d processes", len(accepted), crashes)
	}
	again := openInstance(t, dir)
	defer again.Close()
	for _, id := range accepted {
		again.ends(t, id, engine.StatusSuccess)
		checkJournal(t, again, id)
	}
	t.Logf("%d executions went through %d crashes", len(accepted), crashes)
}

// killed starts a process on the data directory, kills it after a moment, and returns what it had accepted.
func killed(t *testing.T, dir string) []string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestCrash_Process$")
	cmd.Env = append(os.Environ(), crashDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var ids []string
	limit := 3 + rand.IntN(25)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		id, ok := strings.CutPrefix(lines.Text(), "accepted ")
		if !ok {
			t.Fatalf("the process says: %s", lines.Text())
		}
		if ids = append(ids, id); len(ids) == limit {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil || len(ids) < limit {
		t.Fatalf("the process ended by itself after %d executions: %v", len(ids), err)
	}
	return ids
}

// checkJournal looks for gaps, for activations that were completed twice, and for a wrong result.
func checkJournal(t *testing.T, i *Instance, id string) {
	t.Helper()
	seq := uint64(0)
	completed := map[string]bool{}
	var values []json.RawMessage
	for stored, err := range i.stores.Journal.Rows(t.Context(), user, id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if stored.Seq != seq+1 {
			t.Errorf("execution %s: row %d follows row %d", id, stored.Seq, seq)
		}
		seq = stored.Seq
		row, err := host.DecodeRow(stored.Seq, stored.Time, stored.Body)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range row.Facts {
			done, ok := f.(engine.NodeCompleted)
			if !ok {
				continue
			}
			if key := string(done.Activation); completed[key] {
				t.Errorf("execution %s: %s was completed twice", id, key)
			} else {
				completed[key] = true
			}
		}
		values = row.Values
	}
	if len(completed) != 4+2*14 {
		t.Errorf("execution %s: %d activations completed, want 32: %v", id, len(completed), completed)
	}
	var last struct{ List []struct{ Got int } }
	if err := json.Unmarshal(values[len(values)-1], &last); err != nil || len(last.List) != 14 {
		t.Fatalf("execution %s ended with %s: %v", id, values, err)
	}
	for n, item := range last.List {
		if item.Got != n+1 {
			t.Errorf("execution %s: iteration %d gave %d", id, n, item.Got)
		}
	}
}
