package database

import (
	"slices"
	"strings"

	"tandem/fault"
)

// What a statement does decides where it may stand. The servers enforce the same with a transaction that cannot write;
// the words are looked at so that a mistake reads well, and for what such a transaction lets pass.

// checkRead refuses what is not a reading.
func (s *statement) checkRead() error {
	reads := []string{"SELECT", "WITH", "VALUES", "EXPLAIN"}
	switch s.dialect {
	case postgresDialect:
		reads = append(reads, "TABLE", "SHOW")
	case mysqlDialect:
		reads = append(reads, "TABLE", "SHOW", "DESCRIBE", "DESC")
	case sqliteDialect:
		reads = append(reads, "PRAGMA")
	}
	if !slices.Contains(reads, s.keyword) {
		return notReading(s.keyword)
	}
	if s.keyword == "PRAGMA" {
		return s.checkPragma()
	}
	// SELECT … INTO makes a table, a file or a variable, also where a transaction may not write.
	for _, word := range []string{"INTO", "INSERT", "DELETE", "MERGE"} {
		if s.has(word) {
			return notReading(word)
		}
	}
	if name := s.calls(sideEffects(s.dialect)); name != "" {
		return notReading(name)
	}
	return nil
}

// sideEffects lists functions that do something outside of the transaction, so that one which only reads lets them pass.
// Who may call them is a matter of the database's own rights; this keeps a question or a mistake from doing harm.
func sideEffects(d dialect) []string {
	if d != postgresDialect {
		return nil
	}
	return []string{
		"lo_export", "dblink", "dblink_exec", "dblink_send_query", "pg_file_write", "pg_file_rename", "pg_file_unlink", "pg_file_sync",
		"pg_terminate_backend", "pg_cancel_backend", "pg_reload_conf", "pg_rotate_logfile", "pg_promote",
		"pg_switch_wal", "pg_create_restore_point",
		"pg_wal_replay_pause", "pg_wal_replay_resume", "pg_log_backend_memory_contexts", "pg_backup_start",
		"pg_backup_stop", "pg_logical_emit_message",
		"pg_create_physical_replication_slot", "pg_create_logical_replication_slot", "pg_drop_replication_slot",
		"pg_logical_slot_get_changes",
		"pg_stat_reset", "pg_stat_reset_shared", "pg_stat_reset_single_table_counters", "pg_stat_statements_reset", "pg_prewarm",
	}
}

// calls is the first of the functions that is called, "" if none is.
func (s *statement) calls(functions []string) string {
	for i, t := range s.tokens {
		if name := bare(t); slices.Contains(functions, name) && s.beside(i, 1).text == "(" {
			return name
		}
	}
	return ""
}

// bare is a name as the server compares those of its functions, with quotes or without.
func bare(t token) string {
	switch {
	case t.kind == tokenWord:
		return strings.ToLower(t.text)
	case t.kind == tokenQuoted && len(t.text) > 1:
		return strings.ToLower(t.text[1 : len(t.text)-1])
	}
	return ""
}

func notReading(word string) error {
	return fault.Newf(fault.InvalidInput, "a query reads and does not write, and %s does; use ACTION.DATABASE_OPERATION", word)
}

// checkPragma lets pass what tells about tables.
func (s *statement) checkPragma() error {
	for i, t := range s.tokens {
		if t.kind != tokenWord || strings.EqualFold(t.text, "pragma") {
			continue
		}
		if after := s.beside(i, 1); after.text == "." {
			continue // the schema before the name
		}
		if !readingPragma(t.text) {
			return fault.Newf(fault.InvalidInput, "PRAGMA %s is not taken; those that tell about tables are, such as table_info", t.text)
		}
		if after := s.beside(i, 1); after.text == "=" {
			return notReading("PRAGMA " + t.text + " =")
		}
		return nil
	}
	return wrongStatement("has no pragma; name one, such as table_info")
}

// readingPragma lists the pragmas of SQLite that change nothing and tell nothing of the machine: database_list, for one, has the path of
// the file.
func readingPragma(name string) bool {
	switch strings.ToLower(name) {
	case "table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo", "foreign_key_list", "foreign_key_check",
		"collation_list", "function_list", "compile_options", "integrity_check", "quick_check":
		return true
	}
	return false
}

// checkWrite refuses what would take the transaction out of our hands.
func (s *statement) checkWrite() error {
	switch s.keyword {
	case "BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE", "XA", "LOCK", "UNLOCK":
		if s.keyword == "LOCK" && s.dialect == postgresDialect {
			return nil
		}
		return fault.Newf(fault.InvalidInput, "%s is not taken: the node begins and ends the transaction itself; leave it out", s.keyword)
	case "PREPARE", "EXECUTE", "DEALLOCATE", "HANDLER", "LISTEN", "UNLISTEN", "DISCARD", "USE", "DELIMITER":
		return fault.Newf(fault.Unsupported, "%s is not taken: a connection is used for one node and then for another, so nothing is left in it", s.keyword)
	case "COPY", "LOAD", "IMPORT":
		return fault.Newf(fault.Unsupported, "%s is not taken; use the operation \"insert\" with rows", s.keyword)
	case "ATTACH", "DETACH", "VACUUM", "PRAGMA":
		if s.dialect == sqliteDialect {
			return fault.Newf(fault.Forbidden, "%s is not taken: a database of the workspace reaches no other file", s.keyword)
		}
	case "SET":
		if s.dialect == mysqlDialect && !s.setsVariable() || s.names("transaction", "session", "role", "authorization") {
			return fault.New(fault.InvalidInput, "SET of a setting is not taken: it would outlive the statement; set it in the credential's dsn")
		}
	}
	if s.has("OUTFILE") || s.has("DUMPFILE") {
		return fault.New(fault.Forbidden, "a statement that writes a file of the server is not taken")
	}
	return nil
}

// commitsItself says that the server ends a transaction before and after the statement, as MySQL does for whatever
// changes more than rows: then nothing can be rolled back, and a connection that is lost leaves the outcome unknown.
func (s *statement) commitsItself() bool {
	if s.dialect != mysqlDialect {
		return false
	}
	switch s.keyword {
	case "SELECT", "VALUES", "TABLE", "WITH", "INSERT", "UPDATE", "DELETE", "REPLACE", "DO", "SET", "SHOW", "DESCRIBE", "DESC", "EXPLAIN":
		return false
	}
	return true
}

// leavesTraces says that the connection may be another after the statement, so that it is not used again.
func (s *statement) leavesTraces() bool {
	switch s.keyword {
	case "SELECT", "VALUES", "TABLE", "WITH":
		if s.has("INTO") { // a table for this session, or a variable
			return true
		}
	}
	switch s.keyword {
	case "SELECT", "VALUES", "TABLE", "WITH", "INSERT", "UPDATE", "DELETE", "REPLACE", "MERGE", "SHOW", "DESCRIBE", "DESC", "EXPLAIN":
		return s.names("set_config", "get_lock", "pg_advisory_lock", "pg_try_advisory_lock", "pg_advisory_lock_shared",
			"pg_try_advisory_lock_shared") ||
			s.dialect == mysqlDialect && slices.ContainsFunc(s.tokens, func(t token) bool { return t.kind == tokenSymbol && t.text == "@" })
	}
	return true
}

// names says whether one of the names stands in the statement.
func (s *statement) names(names ...string) bool {
	return slices.ContainsFunc(s.tokens, func(t token) bool { return slices.Contains(names, bare(t)) })
}

// setsVariable says that SET is about variables of the user's own and nothing else: SET @name = 1, @other = 2.
func (s *statement) setsVariable() bool {
	depth, begins := 0, true // begins: an assignment does
	for i, t := range s.tokens {
		switch {
		case t.kind == tokenSpace || t.kind == tokenWord && i == 0:
			continue
		case begins && (t.text != "@" || s.beside(i, 1).text == "@"):
			return false
		case t.text == "(":
			depth++
		case t.text == ")":
			depth--
		}
		begins = t.kind == tokenSymbol && t.text == "," && depth == 0
	}
	return !begins
}
