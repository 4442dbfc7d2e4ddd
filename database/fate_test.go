package database_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"tandem/database"
	"tandem/fault"
)

// TestDo_Cut cuts the connection at every step of a transaction.
func TestDo_Cut(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, r *rig) {
		r.people()
		count := func() string {
			t.Helper()
			rows, err := r.query(text("select count(*) as n from people"))
			if err != nil {
				t.Fatal(err)
			}
			return string(rows.Rows)
		}
		insert := database.Operation{Kind: database.Insert, Table: "people", Rows: rowsOf(`{"name": "cut"}`)}
		for _, word := range []string{"BEGIN READ WRITE", "START TRANSACTION READ WRITE", "INSERT INTO"} {
			if strings.HasPrefix(word, "BEGIN") != (r.driver == "postgres") && word != "INSERT INTO" {
				continue
			}
			for _, pass := range []bool{false, true} {
				r.through.cutAt(word, pass)
				_, err := r.pools.Do(t.Context(), r.target, insert)
				wantFault(t, err, fault.SQLError, true, "nothing was done")
				if r.through.cuts() != 1 {
					t.Fatalf("%s: %d cuts", word, r.through.cuts())
				}
				if got := count(); got != `[{"n":0}]` {
					t.Errorf("cut at %s, passed on %v: %s", word, pass, got)
				}
			}
		}
		// COMMIT was sent: whether it arrived is not known, and both can be.
		for pass, want := range map[bool]string{false: `[{"n":0}]`, true: `[{"n":1}]`} {
			r.through.cutAt("COMMIT", pass)
			_, err := r.pools.Do(t.Context(), r.target, insert)
			wantFault(t, err, fault.OutcomeUnknown, false, "not known")
			if got := count(); got != want {
				t.Errorf("COMMIT passed on %v: %s", pass, got)
			}
			r.do(database.Operation{Kind: database.Delete, Table: "people", AllRows: true})
		}
		// An upsert does no harm when it is done twice.
		upsert := database.Operation{Kind: database.Upsert, Table: "people", ConflictKeys: []string{"name"}, Rows: rowsOf(`{"name": "cut"}`), Repeatable: true}
		r.through.cutAt("COMMIT", true)
		_, err := r.pools.Do(t.Context(), r.target, upsert)
		wantFault(t, err, fault.SQLError, true, "does no harm")
		r.do(upsert)
		if got := count(); got != `[{"n":1}]` {
			t.Errorf("an upsert that was repeated: %s", got)
		}
		r.through.cutAt("pe_ople", false)
		_, err = r.query(text("select 'pe_ople'"))
		wantFault(t, err, fault.SQLError, true, "lost")
	})
}

// TestDo_CutWithoutTransaction cuts where a server commits by itself.
func TestDo_CutWithoutTransaction(t *testing.T) {
	t.Parallel()
	r := newRig(t, "mysql")
	r.execute("create table safe (v int) engine=InnoDB", "create table unsafe (v int) engine=MyISAM")
	r.through.cutAt("create table", true)
	_, err := r.pools.Do(t.Context(), r.target, database.Operation{Kind: database.Execute, Statements: []database.Text{text("create table later (v int)")}})
	wantFault(t, err, fault.OutcomeUnknown, false, "cannot be rolled back")
	r.through.cutAt("INSERT INTO", true)
	_, err = r.pools.Do(t.Context(), r.target, database.Operation{Kind: database.Insert, Table: "unsafe", Rows: rowsOf(`{"v": 1}`)})
	wantFault(t, err, fault.OutcomeUnknown, false, "cannot be rolled back")
	r.through.cutAt("INSERT INTO", true)
	_, err = r.pools.Do(t.Context(), r.target, database.Operation{Kind: database.Insert, Table: "safe", Rows: rowsOf(`{"v": 1}`)})
	wantFault(t, err, fault.SQLError, true, "nothing was done")
	_, err = r.pools.Do(t.Context(), r.target, database.Operation{Kind: database.Transaction, Statements: []database.Text{text("delete from safe"), text("create table x (v int)")}})
	wantFault(t, err, fault.InvalidInput, false, "ends a transaction")
}

// TestDo_Deadlock lets two transactions wait for each other, again and again: one is given up, and doing it again works.
func TestDo_Deadlock(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, r *rig) {
		r.execute("create table account (id int primary key, balance int)", "insert into account values (1, 100), (2, 100)")
		pause := map[string]string{"postgres": "select pg_sleep(0.3)", "mysql": "select sleep(0.3)"}[r.driver]
		move := func(from, to string) error {
			_, err := r.pools.Do(t.Context(), r.target, database.Operation{Kind: database.Transaction, Statements: []database.Text{
				with("update account set balance = balance - 1 where id = ?", "["+from+"]"), text(pause),
				with("update account set balance = balance + 1 where id = ?", "["+to+"]"),
			}})
			return err
		}
		deadlocks := 0
		var mu sync.Mutex
		var work sync.WaitGroup
		for _, pair := range [][2]string{{"1", "2"}, {"2", "1"}} {
			work.Go(func() {
				for range 5 {
					err := move(pair[0], pair[1])
					if err == nil {
						return
					}
					wantFault(t, err, fault.SQLError, true, "gave the transaction up")
					mu.Lock()
					deadlocks++
					mu.Unlock()
				}
				t.Error("five deadlocks in a row")
			})
		}
		work.Wait()
		if deadlocks == 0 {
			t.Error("the transactions did not meet")
		}
		r.wantRows(text("select id, balance from account order by id"), `[{"id":1,"balance":100},{"id":2,"balance":100}]`)
	})
}

func TestDo_SQLiteBusy(t *testing.T) {
	t.Parallel()
	r := newRig(t, "sqlite")
	r.people()
	// Many write at once; each waits for its turn.
	var work sync.WaitGroup
	for i := range 20 {
		work.Go(func() {
			_, err := r.pools.Do(t.Context(), r.target, database.Operation{Kind: database.Insert, Table: "people", Rows: rowsOf(`{"name": "p` + string(rune('a'+i)) + `"}`)})
			if err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	r.wantRows(text("select count(*) as n from people"), `[{"n":20}]`)
}

// TestTarget_TellsNothing makes connections fail in every way there is: nothing of the dsn is told.
func TestTarget_TellsNothing(t *testing.T) {
	t.Parallel()
	check(t, start())
	mysqlAddress := strings.TrimSuffix(mariadbDSN[strings.IndexByte(mariadbDSN, '@'):], "/tandem")
	for driver, dsns := range map[string]map[string]fault.Code{
		"postgres": {
			"postgres://u:" + canary + "@127.0.0.1:1/x?sslmode=disable":                                      fault.NetworkError,
			"host=127.0.0.1 port=1 user=u password='" + canary + "' dbname=x":                                fault.NetworkError,
			"postgres://u:" + canary + "@10.0.0.1/x":                                                         fault.BlockedAddress,
			"postgres://u:" + canary + "@169.254.169.254/x":                                                  fault.BlockedAddress,
			"postgres://u:" + canary + "@[::1]/x":                                                            fault.BlockedAddress,
			"postgres://u:" + canary + "@/x?host=/var/run/postgresql":                                        fault.BlockedAddress,
			"postgres://u:" + canary + "@host%20x:99999/" + canary:                                           fault.CredentialInvalid,
			"postgres://" + canary + ":x@127.0.0.1:" + postgresPort + "/none?sslmode=disable":                fault.CredentialInvalid,
			"postgres://tandem:" + canary + "@127.0.0.1:" + postgresPort + "/" + canary + "?sslmode=disable": fault.CredentialInvalid,
			"postgres://tandem:" + canary + "@127.0.0.1/x?sslrootcert=/etc/passwd":                           fault.CredentialInvalid,
			"postgres://tandem:" + canary + "@127.0.0.1/x?service=a":                                         fault.CredentialInvalid,
			"postgres://tandem:" + canary + "@127.0.0.1/x?passfile=/etc/passwd":                              fault.CredentialInvalid,
			"postgres://tandem:" + canary + "@a,b/x":                                                         fault.BlockedAddress,
			"nonsense " + canary:                                                                             fault.CredentialInvalid,
			"":                                                                                               fault.CredentialInvalid,
			"postgres://tandem:" + canary + "@127.0.0.1:" + postgresPort + "/x?sslmode=verify-full":          fault.NetworkError,
		},
		"mysql": {
			"u:" + canary + "@tcp(127.0.0.1:1)/x":                 fault.NetworkError,
			"u:" + canary + "@tcp(192.168.0.1:3306)/x":            fault.BlockedAddress,
			"u:" + canary + "@unix(/run/mysqld/mysqld.sock)/x":    fault.BlockedAddress,
			"u:" + canary + mysqlAddress + "/x":                   fault.CredentialInvalid,
			"tandem:tandem" + mysqlAddress + "/" + canary:         fault.CredentialInvalid,
			"u:" + canary + "@tcp(127.0.0.1:1)/x?tls=registered":  fault.CredentialInvalid,
			"u:" + canary + "@tcp(127.0.0.1:1":                    fault.CredentialInvalid,
			"u:" + canary + "@tcp(no-such-host.invalid:3306)/x":   fault.NetworkError,
			"u:" + canary + "@tcp(127.0.0.1:1)/x?serverPubKey=kk": fault.CredentialInvalid,
		},
		"sqlite": {
			"../" + canary + ".db": fault.ForbiddenPath, "/etc/passwd": fault.ForbiddenPath, "file:/etc/passwd": fault.ForbiddenPath, "a/../../x.db": fault.ForbiddenPath,
			":memory:": fault.CredentialInvalid, "": fault.CredentialInvalid, "x.db?mode=memory": fault.CredentialInvalid, "file:x.db?vfs=unix-none": fault.CredentialInvalid,
			canary + ".db": fault.NotFound, `..\x.db`: fault.ForbiddenPath, ".tandem/drafts/x": fault.ForbiddenPath, "c:/x.db": fault.ForbiddenPath, "file:..%2f..%2fx.db": fault.CredentialInvalid,
		},
		"oracle": {"x": fault.CredentialInvalid},
	} {
		for dsn, want := range dsns {
			t.Run(driver+"/"+strings.ReplaceAll(dsn, "/", "|"), func(t *testing.T) {
				t.Parallel()
				p := pools(t, t.TempDir(), database.Options{})
				data, err := json.Marshal(map[string]string{"driver": driver, "dsn": dsn})
				check(t, err)
				_, err = p.Query(t.Context(), database.Target{Workspace: "default", Credential: "c", Data: data}, database.Query{Text: text("select 1"), MaxRows: 1})
				wantFault(t, err, want, want == fault.NetworkError, "")
				raw, merr := json.Marshal(fault.From(err))
				check(t, merr)
				if dsn != "" && len(dsn) > 10 && strings.Contains(string(raw), dsn) {
					t.Errorf("the error tells the dsn: %s", raw)
				}
			})
		}
	}
}

// TestDo_AnsweredWithoutTransaction fails after something was done that cannot be rolled back: trying again would do it
// twice, whatever the server says.
func TestDo_AnsweredWithoutTransaction(t *testing.T) {
	t.Parallel()
	r := newRig(t, "mysql")
	r.execute("create table log (v int)")
	_, name, _ := strings.Cut(r.dsn(), ")/")
	for procedure, body := range map[string]string{
		"deadlock": "signal sqlstate '40001' set mysql_errno = 1213, message_text = 'deadlock found'",
		"killed":   "kill connection_id()",
		"stopped":  "signal sqlstate '70100' set mysql_errno = 1317, message_text = 'interrupted'",
		"flood":    "with recursive c(n) as (select 1 union all select n + 1 from c where n < 100010) select n from c",
	} {
		_, err := r.admin.Exec("create procedure `" + name + "`." + procedure + "() begin set max_recursive_iterations = 1000000; insert into log values (1); " + body + "; end")
		check(t, err)
		_, err = r.pools.Do(t.Context(), r.target, database.Operation{Kind: database.Execute, Statements: []database.Text{text("call " + procedure + "()")}})
		wantFault(t, err, fault.OutcomeUnknown, false, "cannot be rolled back")
	}
	_, err := r.pools.Do(t.Context(), r.target, database.Operation{Kind: database.Execute, Statements: []database.Text{text("create table log (v int)")}})
	if fault.CodeOf(err) == fault.OutcomeUnknown {
		t.Errorf("an answer is a known outcome: %v", err)
	}
}
