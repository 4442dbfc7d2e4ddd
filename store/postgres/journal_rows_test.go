package postgres

import (
	"slices"
	"testing"
)

// rowsOf are the rows that statements write, by how many each of them does.
func rowsOf(t *transaction) (counts []int) {
	for _, s := range t.waiting {
		if executions, many := s.args[0].([]int64); many {
			counts = append(counts, len(executions))
		} else {
			counts = append(counts, 1)
		}
	}
	return counts
}

// Rows that wait together are one statement, however many executions they are of, unless they are too large for one.
func TestGather(t *testing.T) {
	t.Parallel()
	large := make([]byte, maxGathered/2+1)
	for name, c := range map[string]struct {
		bodies [][]byte
		want   []int
	}{
		"none":          {nil, nil},
		"one":           {[][]byte{nil}, []int{1}},
		"many":          {make([][]byte, 1000), []int{1000}},
		"large":         {[][]byte{{1}, large, large, {2}}, []int{2, 2}},
		"one too large": {[][]byte{slices.Repeat(large, 3), {1}}, []int{1, 1}},
	} {
		tx := &transaction{}
		for i, body := range c.bodies {
			tx.addRow(journalRow{execution: int64(i), seq: 1, body: body})
		}
		tx.gather()
		if got := rowsOf(tx); !slices.Equal(got, c.want) || tx.queued != len(c.bodies) || len(tx.rows) != 0 {
			t.Errorf("%s: statements of %v rows, want %v; %d are counted, %d wait", name, got, c.want, tx.queued, len(tx.rows))
		}
	}
}

// What a part has added is taken back with its rows, and with those alone; what is in a statement with the rows of others is not.
func TestUndo_Rows(t *testing.T) {
	t.Parallel()
	tx := &transaction{db: &DB{}}
	add := func(rows int) {
		t.Helper()
		if _, err := tx.Exec(`UPDATE executions SET status = ?`, "RUNNING"); err != nil {
			t.Fatal(err)
		}
		for range rows {
			tx.addRow(journalRow{execution: 7})
		}
	}
	add(2)
	m := tx.mark()
	add(3)
	if !tx.undo(m) || tx.queued != 3 || len(tx.rows) != 2 || len(tx.waiting) != 1 {
		t.Errorf("%d are counted, %d rows and %d statements wait; want 3, 2 and 1", tx.queued, len(tx.rows), len(tx.waiting))
	}
	add(3)
	tx.gather()
	if tx.undo(m) {
		t.Error("rows were taken back that are in a statement with others")
	}
}
