package main

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"tandem/benchmark"
	"tandem/store/postgres/postgrestest"
)

// Every measurement works on a server of PostgreSQL, in processes that are told of it without an argument, and leaves nothing there.
func TestBench_OnAServer(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	address := server.Database(t)
	measured := func(t *testing.T, args ...string) []byte {
		t.Helper()
		dir := t.TempDir()
		cmd := exec.CommandContext(t.Context(), "tandem", append([]string{"bench"}, append(args, "--json", "--data", filepath.Join(dir, "data"))...)...)
		cmd.Env = append(cmd.Environ(), "TANDEM_DATABASE="+address)
		var said strings.Builder
		cmd.Stderr = &said
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, said.String())
		}
		if left, err := filepath.Glob(filepath.Join(dir, "data", "*")); err != nil || len(left) > 0 {
			t.Errorf("left behind %q, %v", left, err)
		}
		return out
	}
	var phases []benchmark.ScaleReport
	if err := json.Unmarshal(measured(t, "scale", "--parked", "500", "--iterations", "20", "--phases", "wake,loop"), &phases); err != nil || len(phases) != 3 {
		t.Fatalf("phases %+v, %v", phases, err)
	}
	for i, want := range []struct {
		phase string
		count int
	}{{"park", 500}, {"wake", 0}, {"loop", 20}} {
		if r := phases[i]; r.Phase != want.phase || r.Count != want.count || r.PerSecond <= 0 && want.count > 0 || r.WakeP50MS <= 0 && want.phase == "wake" ||
			(r.DiskBytes > 0) != (want.phase == "park") || !strings.HasPrefix(r.Server, "PostgreSQL ") {
			t.Errorf("phase %+v", r)
		}
	}
	var r benchmark.APIReport
	if err := json.Unmarshal(measured(t, "api", "--quick", "--rounds", "1", "--executions", "30", "--clients", "1", "--readers", "2"), &r); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(r.Server, "PostgreSQL ") || len(r.Requests) != 5 || len(r.Streams) != 2 || r.ExecutionBytes <= 0 || r.Engine != "" {
		t.Errorf("report %+v", r)
	}
	for _, f := range r.Requests {
		if f.Tandem.PerSecond <= 0 || f.Bare.PerSecond <= 0 || f.Goal != 0 {
			t.Errorf("figures %+v", f)
		}
	}
	onTemporal := []string{"--engine", "temporal", "--temporal-address", startTemporal(t).address}
	phases = nil
	if err := json.Unmarshal(measured(t, append([]string{"scale", "--parked", "25"}, onTemporal...)...), &phases); err != nil {
		t.Fatal(err)
	}
	if len(phases) != 2 || phases[0].Phase != "park" || phases[0].Count != 25 || phases[1].Phase != "wake" || phases[1].Count != 5 {
		t.Errorf("phases on Temporal %+v", phases)
	}
	for _, p := range phases {
		if p.Engine != "Temporal" || p.PerSecond <= 0 || p.CPUMicros <= 0 {
			t.Errorf("phase on Temporal %+v", p)
		}
	}
	r = benchmark.APIReport{}
	if err := json.Unmarshal(measured(t, append([]string{"api", "--quick", "--rounds", "1", "--executions", "30", "--clients", "1", "--requests", "execute"},
		onTemporal...)...), &r); err != nil {
		t.Fatal(err)
	}
	if r.Engine != "Temporal" || len(r.Requests) != 1 || len(r.Streams) != 0 || r.Requests[0].Name != "execute" || r.Requests[0].Tandem.PerSecond <= 0 {
		t.Errorf("report on Temporal %+v", r)
	}
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	var left, tables int
	err = conn.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM pg_database WHERE datname LIKE 'tandem_bench_%'), (SELECT count(*) FROM pg_tables WHERE schemaname = 'public')`).Scan(&left, &tables)
	if cerr := conn.Close(t.Context()); err != nil || cerr != nil || left != 0 || tables != 0 {
		t.Errorf("%d databases and %d tables are left: %v, %v", left, tables, err, cerr)
	}
	for _, c := range []struct {
		args []string
		said string
	}{ // refused before anything is made, or by the process of the first phase, which is told how Temporal is reached
		{[]string{"--database", "mysql://host/name"}, "does not begin with postgres://"},
		{[]string{"--engine", "temporal"}, "needs a database that servers and workers share"},
		{[]string{"--engine", "temporal", "--database", "postgres://host/name", "--phases", "park,loop"}, `the phase "loop" is not measured on Temporal; name only park, wake`},
		{[]string{"--engine", "temporal", "--database", address, "--temporal-tls-ca", "missing.pem"}, "missing.pem"},
	} {
		cmd := exec.CommandContext(t.Context(), "tandem", append([]string{"bench", "scale", "--data", filepath.Join(t.TempDir(), "data")}, c.args...)...)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), c.said) {
			t.Errorf("%v: %v: %s", c.args, err, out)
		}
	}
}

// Two numbers of executions are woken in turns by processes of their own, and the figures tell how fast one was beside the other.
func TestBench_Beside(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	cmd := exec.CommandContext(t.Context(), "tandem", "bench", "scale", "--parked", "1600", "--beside", "620", "--phases", "wake", "--json", "--data", dir)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	var reports []benchmark.ScaleReport
	if err := json.Unmarshal(out, &reports); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var got []string
	for _, r := range reports {
		got = append(got, fmt.Sprint(r.Phase, " ", r.Count))
		if r.PerSecond <= 0 || r.ReadyMB <= 0 {
			t.Errorf("figures %+v", r)
		}
	}
	if want := []string{"park 1600", "park beside 620", "wake 1100", "wake beside 120"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	var table strings.Builder
	if err := benchmark.PrintScale(&table, reports); err != nil || !strings.Contains(table.String(), "In turns with those beside them, executions were woken at ") {
		t.Errorf("%v: %s", err, table.String())
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind %q, %v", left, err)
	}
}
