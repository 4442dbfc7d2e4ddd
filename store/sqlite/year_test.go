package sqlite_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tandem/api"
	"tandem/identity"
	"tandem/limits"
	"tandem/store"
	"tandem/store/sqlite"
	"tandem/store/sqlite/datadir"
	"tandem/store/sqlite/sqlitetest"
)

// peoplesDoing are tables that grow by what people set up, not by what runs. A table that is in this list may not be filled by the load of
// the test.
var peoplesDoing = map[string]string{ // read-only
	"accepted_losses":  "an operator accepts a loss",
	"address_proofs":   "people prove addresses; a proof replaces those of the same person that are out of date",
	"contact_channels": "admins say by which accounts people are reached",
	"credentials":      "people keep credentials",
	"deployers":        "people deploy workflows",
	"drafts":           "people test definitions; a draft goes with its execution",
	"goose_db_version": "an upgrade",
	"logins":           "people who log in at a provider",
	"mcp_acceptances":  "people accept changed tools",
	"mcp_activations":  "people activate servers",
	"mcp_policies":     "people decide about tools",
	"mcp_servers":      "admins register servers",
	"memory_vectors":   "goes with memory_records, which are counted",
	"profiles":         "people keep profiles",
	"revision_sources": "people write workflows",
	"templates":        "people keep templates",
	"triggers":         "people deploy workflows",
}

// shadow says that a table belongs to a full text index, whose size follows that of the records.
func shadow(table string) bool { return strings.HasPrefix(table, "memory_text") }

// yearLoad is what an installation does.
type yearLoad struct {
	db *sqlite.DB
	s  store.Stores
	p  identity.Principal
	n  int
}

// day lets an installation work for a day: executions with all that belongs to them, one of them with a child and now and then a fork,
// deliveries that start nothing, logins, tokens, invitations, memories that expire.
func (y *yearLoad) day(t *testing.T, at time.Time, executions int) {
	t.Helper()
	ctx, ms := t.Context(), at.UnixMilli()
	for i := range executions {
		y.n++
		l := &life{s: y.s, p: y.p, id: fmt.Sprintf("exec-%05d", y.n), at: at.Add(time.Duration(i) * time.Minute), mark: fmt.Sprintf("mark%05d", y.n), rows: 5}
		if i > 0 {
			l.parent = fmt.Sprintf("exec-%05d", y.n-i)
		} else if y.n%5 == 0 {
			l.forkedFrom = fmt.Sprintf("exec-%05d", y.n-executions)
		}
		l.lead(t)
	}
	y.n++
	id := fmt.Sprint(y.n)
	for _, decision := range []store.Decision{store.DeliveryIgnored, store.DeliveryRefused} {
		check(t, y.s.Triggers.Record(ctx, y.p, store.TriggerDelivery{ID: fmt.Sprint("dlv", y.n, decision), WorkflowID: "w", Node: "hook", Kind: "K", Received: ms, Decision: decision, Payload: []byte(`{"n":1}`)}, nil))
	}
	check(t, y.s.Sessions.Create(ctx, y.p, identity.Session{Workspace: "ws", ID: "ses" + id, User: "ann", Method: "token", Created: ms, Seen: ms, Expires: at.AddDate(0, 0, 30).UnixMilli()}, identity.HashSecret("session"+id)))
	check(t, y.s.Tokens.Create(ctx, y.p, identity.Token{Workspace: "ws", ID: "tok" + id, User: "ann", Name: "for a day", Created: ms, Expires: at.AddDate(0, 0, 1).UnixMilli()}, identity.HashSecret("token"+id)))
	check(t, y.s.Tokens.Used(ctx, y.p, "tok"+id, ms))
	check(t, y.s.Invitations.Create(ctx, y.p, identity.Invitation{Workspace: "ws", ID: "inv" + id, Email: "e", Created: ms, Expires: at.AddDate(0, 0, 7).UnixMilli()}, identity.HashSecret("invitation"+id)))
	_, err := y.s.Memories.Change(ctx, y.p, store.MemoryChange{Scope: store.MemoryScope{ID: "of-ann", User: "ann", Kind: "k"}, Time: ms, Mark: "m" + id, Put: []store.MemoryRecord{
		{Sort: "s", ID: id, Body: []byte(`{"x":"` + strings.Repeat("y", 200) + `"}`), Text: &store.MemoryText{Content: "some words " + id}, Expires: at.AddDate(0, 0, 3).UnixMilli()}}})
	check(t, err)
	_, err = y.s.Budgets.Raise(ctx, y.p, "raise"+id, store.Raise{Budget: "m/day/" + at.UTC().Format(time.DateOnly), Tokens: 5}, ms)
	check(t, err)
	_, err = y.s.Blobs.Put(ctx, y.p, strings.NewReader("nobody names it "+id+strings.Repeat("z", 2000)))
	check(t, err)
}

// counts returns how many rows each table has, and what the files take up.
func (y *yearLoad) counts(t *testing.T, dir string) (rows map[string]int64) {
	t.Helper()
	rows = map[string]int64{}
	names, err := y.db.Tables(t.Context())
	check(t, err)
	for _, name := range names {
		n, err := y.db.Rows(t.Context(), `"`+name+`"`)
		check(t, err)
		rows[name] = n
	}
	info, err := os.Stat(filepath.Join(dir, datadir.DatabaseFile))
	check(t, err)
	rows["(bytes of the database)"] = info.Size()
	rows["(bytes of large values)"] = filesIn(t, dir)
	return rows
}

// yearVariable makes [TestYear] a whole year; without it two months are looked at after everything has settled, in which what grows is seen
// as well.
const yearVariable = "TANDEM_YEAR"

// TestYear runs an installation for months of simulated time under retention: after the time that things are kept for, no table grows any
// more, whoever has thought of it, and the files stay as large as they are.
func TestYear(t *testing.T) {
	t.Parallel()
	dir := sqlitetest.Dir(t)
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
	check(t, err)
	y := &yearLoad{db: db, s: db.Stores(), p: ann()}
	begin := time.Now()
	now := begin
	check(t, y.s.Workspaces.Create(t.Context(), identity.System(""), identity.Workspace{ID: "ws", Created: 1}))
	check(t, y.s.Users.Create(t.Context(), y.p, identity.User{Workspace: "ws", ID: "ann", Roles: []identity.Role{identity.Admin}, Created: 1}))
	_, _, err = y.s.Workflows.Save(t.Context(), y.p, store.SaveWorkflow{ID: "w", Name: "w", Hash: "h", Definition: []byte("d"), Time: 1})
	check(t, err)
	service := limits.New(limits.Options{Stores: y.s, Now: func() time.Time { return now }})
	check(t, service.Set(t.Context(), y.p, api.LimitSettings{Retention: api.RetentionSettings{
		Executions: api.Retained{Days: 30, Count: 1000}, Deliveries: api.Retained{Days: 20, Count: 50}, Audit: api.Retained{Days: 30}, BlobDays: 10}}))
	const monthDays, tidyDays, executions = 30, 6, 2
	months := 7
	if os.Getenv(yearVariable) != "" {
		months = 12
	}
	var history []map[string]int64
	for month := range months {
		for d := range monthDays {
			now = begin.AddDate(0, 0, month*monthDays+d)
			y.day(t, now, executions)
			if (d+1)%tidyDays == 0 {
				out, err := service.Tidy(t.Context(), now.Add(time.Hour), 12*time.Hour, 0.1)
				if err != nil {
					t.Fatalf("month %d, day %d: %v", month+1, d, err)
				}
				if month > 1 && (out.Executions == 0 || out.Deliveries == 0 || out.Audit == 0 || out.Blobs == 0 || out.Others == 0) {
					t.Errorf("month %d, day %d: removed %+v", month+1, d, out)
				}
			}
		}
		history = append(history, y.counts(t, dir))
	}
	// From the fifth month on everything that is kept for some time, which is at most 90 days, has reached what it comes to.
	const settled = 4
	passing := []string{"journal_in_order", "blob_doubts", "hil_accounts", "timers", "upkeep_due"} // they are mostly empty when nothing is under way
	for _, name := range slices.Sorted(maps.Keys(history[months-1])) {
		var line []int64
		most := int64(0)
		for _, rows := range history {
			line = append(line, rows[name])
			most = max(most, rows[name])
		}
		reached := slices.Max(line[:settled+1])
		for month := settled + 1; month < months; month++ {
			if line[month] > reached+reached/10+3 {
				t.Errorf("%s grows: month by month %d", name, line)
				break
			}
		}
		if why, known := peoplesDoing[name]; known && most > 0 && name != "goose_db_version" {
			t.Errorf("%s has rows, and the list says that it grows by this alone: %s", name, why)
		} else if !known && most == 0 && !shadow(name) && !slices.Contains(passing, name) {
			t.Errorf("%s never had a row: let the test fill it, or say why it does not grow by what runs", name)
		}
		t.Logf("%-28s %d", name, line)
	}
	check(t, db.Close())
	sound(t, dir)
}
