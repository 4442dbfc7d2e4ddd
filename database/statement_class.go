package database

import (
	"slices"
	"strings"

	"tandem/fault"
)

// What a statement does decides where it may stand. The servers enforce the same with a transaction that cannot write;
// the words are looked at so that a mistake reads well, and for what such a transaction lets pass.

// checkRead refuses what is no reading.
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
	return nil
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

// readingPragma lists the pragmas of SQLite that change nothing.
func readingPragma(name string) bool {
	switch strings.ToLower(name) {
	case "table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo", "foreign_key_list", "foreign_key_check",
		"database_list", "collation_list", "function_list", "compile_options", "integrity_check", "quick_check":
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
	case "SELECT", "VALUES", "TABLE", "WITH", "INSERT", "UPDATE", "DELETE", "REPLACE", "MERGE", "SHOW", "DESCRIBE", "DESC", "EXPLAIN":
		return s.names("set_config", "get_lock", "pg_advisory_lock", "pg_try_advisory_lock", "pg_advisory_lock_shared", "pg_try_advisory_lock_shared") ||
			s.dialect == mysqlDialect && slices.ContainsFunc(s.tokens, func(t token) bool { return t.kind == tokenSymbol && t.text == "@" })
	}
	return true
}

// names says whether one of the functions is called.
func (s *statement) names(functions ...string) bool {
	return slices.ContainsFunc(s.tokens, func(t token) bool {
		return t.kind == tokenWord && slices.Contains(functions, strings.ToLower(t.text))
	})
}

// setsVariable says that SET is about a variable of the user's own: SET @name.
func (s *statement) setsVariable() bool {
	var first []token
	for _, t := range s.tokens {
		if t.kind != tokenSpace {
			first = append(first, t)
		}
	}
	return len(first) > 2 && first[1].text == "@" && first[2].text != "@"
}
