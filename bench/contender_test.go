package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// Each contender in Go does every workload, and what it did is on disk (perform sees to that).
func TestPerform(t *testing.T) {
	t.Parallel()
	for name := range openers() {
		for _, workload := range []string{workChain, workFanOut, workPark} {
			t.Run(name+"/"+workload, func(t *testing.T) {
				t.Parallel()
				s := step{Contender: name, Workload: workload, Runs: 3, Repeat: 2, Nodes: 4, Width: 5}
				r, err := perform(t.Context(), s, t.TempDir())
				if err != nil {
					t.Fatal(err)
				}
				if r.Seconds <= 0 || r.Synchronous != full {
					t.Errorf("result %+v", r)
				}
			})
		}
	}
}

func TestPerform_RefusesTheUnknown(t *testing.T) {
	t.Parallel()
	for _, s := range []step{{Contender: "nobody", Workload: workChain}, {Contender: ours, Workload: "nothing", Nodes: 1, Width: 1}} {
		if _, err := perform(t.Context(), s, t.TempDir()); err == nil || !strings.Contains(err.Error(), "unknown") {
			t.Errorf("%+v: error %v", s, err)
		}
	}
}

// On PostgreSQL only those are compared that can work on it, and an address that leads nowhere is an error.
func TestCompare_OnPostgres(t *testing.T) {
	t.Parallel()
	nowhere := "postgres://nobody@127.0.0.1:1/none"
	err := compare(t.Context(), options{peers: "langgraph", rounds: 1, parked: 1, scratch: t.TempDir(), database: nowhere, limit: time.Minute})
	if err == nil || !strings.Contains(err.Error(), "cannot be compared on PostgreSQL, only dbos") {
		t.Errorf("langgraph: error %v", err)
	}
	for _, name := range onPostgres {
		_, err := perform(t.Context(), step{Contender: name, Workload: workChain, Runs: 1, Repeat: 1, Nodes: 1, Width: 1, Database: nowhere}, t.TempDir())
		if err == nil || !strings.Contains(err.Error(), "make a database") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestPrintTable(t *testing.T) {
	t.Parallel()
	w := &workload{Name: "chain", Nodes: 100, all: map[string][]result{
		ours:   {{Seconds: 1}, {Seconds: 2}, {Seconds: 1}},
		"dbos": {{Seconds: 2}, {Seconds: 8}, {Seconds: 3}},
	}}
	names := []string{ours, "dbos"}
	for _, name := range names {
		w.Figures = append(w.Figures, w.figure(name))
	}
	var out bytes.Buffer
	if err := printTable(&out, []*workload{w}, names, 3); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"chain, nodes/s", "100", "33", "3.0 (2.0-4.0)"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}
