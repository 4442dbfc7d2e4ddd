package sqlite_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"tandem/engine"
	"tandem/host"
	"tandem/store/sqlite"
	"tandem/store/sqlite/datadir"
)

// partsOfRows are the parts that a row of a journal is written in, each with the first version of a database whose programs read it. A
// program that does not know a part reads the row without it, so a new part needs a new version: an empty change in migrations is enough.
var partsOfRows = map[string]int64{"facts": 1, "values": 1, "large": 1, "told": 1, "closed": 1, "beside": 26}

// TestMigrate_KeepsOlderProgramsFromRows shows that a program which would lose a part of a row is kept from the database.
func TestMigrate_KeepsOlderProgramsFromRows(t *testing.T) {
	t.Parallel()
	row := host.Row{
		Seq: 1, Time: 1, Facts: []engine.Fact{engine.ExecutionStarted{}}, Values: []json.RawMessage{[]byte("{}")}, Large: map[int]host.Blob{0: {Hash: "h"}},
		Beside: map[int][]host.Beside{0: {{Key: "k"}}}, Told: []host.Told{{What: host.ToldNode}}, Closed: true,
	}
	notWritten := map[string]bool{"Stored": true, "Unreadable": true}
	for v, i := reflect.ValueOf(row), 0; i < v.NumField(); i++ {
		if name := v.Type().Field(i).Name; v.Field(i).IsZero() != notWritten[name] {
			t.Errorf("the row of this test has %s: %v, want what is written to be set", name, v.Field(i))
		}
	}
	body, err := row.Encode()
	check(t, err)
	var written map[string]json.RawMessage
	check(t, json.Unmarshal(body, &written))
	if len(written) != len(partsOfRows) {
		t.Errorf("a row is written in %d parts, want the %d of the list", len(written), len(partsOfRows))
	}
	for part := range written {
		since, known := partsOfRows[part]
		if !known || since == 1 {
			if !known {
				t.Errorf("%q of rows has no version", part)
			}
			continue
		}
		dir := t.TempDir()
		check(t, sqlite.MigrateTo(t.Context(), dir, since-1)) // by the last program that does not know it
		check(t, openDir(t, dir).Close())
		found, err := datadir.Inspect(t.Context(), dir)
		check(t, err)
		if found.Version < since {
			t.Errorf("a database that may have %q in its rows has version %d, which programs open that do not know it; want %d", part, found.Version, since)
		}
	}
}
