package benchmark

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"tandem/store/postgres/postgrestest"
)

// TestMeasure_OnAServer measures on PostgreSQL, in databases that are gone afterwards.
func TestMeasure_OnAServer(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	address := server.Database(t)
	r, err := Measure(t.Context(), Engine{Dir: t.TempDir(), Database: address, Rounds: 1, Quick: true, Nodes: benchNodes, FanOut: 12, Concurrency: []int{1}})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(r.Server, "PostgreSQL ") || r.Chains[0].TandemPerSecond <= 0 || r.Chains[0].BarePerSecond <= 0 || r.Chains[0].Goal != 0 {
		t.Errorf("report %+v", r)
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
}
