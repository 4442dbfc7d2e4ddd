package postgres

// journalRow is a row of a journal that waits to be written.
type journalRow struct {
	execution, seq int64
	workspace      string
	time           int64
	body           []byte
}

// maxGathered bounds the bytes that one statement takes, but for a single row.
const maxGathered = 8 << 20

// addRow lets a row of a journal wait.
func (t *transaction) addRow(r journalRow) {
	t.rows = append(t.rows, r)
	t.queued++
}

// gather makes statements of the rows that wait: for the server one of many rows in a statement is far less work than a statement.
func (t *transaction) gather() {
	rest := t.rows
	if len(rest) == 0 {
		return
	}
	for len(rest) > 0 {
		size, n := 0, 0
		for n < len(rest) && (n == 0 || size+len(rest[n].body) <= maxGathered) {
			size += len(rest[n].body)
			n++
		}
		t.insert(rest[:n])
		rest = rest[n:]
	}
	clear(t.rows) // the bodies belong to the statements now
	t.rows = t.rows[:0]
	t.gathered++
}

// insert lets a statement wait that writes rows.
func (t *transaction) insert(rows []journalRow) {
	if len(rows) == 1 {
		r := rows[0]
		t.addStatement(`INSERT INTO journal (execution, seq, workspace_id, time, body) VALUES ($1, $2, $3, $4, $5)`, r.execution, r.seq, kept(r.workspace), r.time, r.body)
		return
	}
	executions, seqs, times := make([]int64, len(rows)), make([]int64, len(rows)), make([]int64, len(rows))
	workspaces, bodies := make([]string, len(rows)), make([][]byte, len(rows))
	for i, r := range rows {
		executions[i], seqs[i], workspaces[i], times[i], bodies[i] = r.execution, r.seq, kept(r.workspace), r.time, r.body
	}
	t.addStatement(`INSERT INTO journal (execution, seq, workspace_id, time, body)
		SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::bytea[])`, executions, seqs, workspaces, times, bodies)
}
