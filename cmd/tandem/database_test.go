package main

import "testing"

// TestDatabaseFlag_Repeatable: an address is shown again only when it tells no password.
func TestDatabaseFlag_Repeatable(t *testing.T) {
	t.Parallel()
	for address, shown := range map[string]bool{
		"postgres://ann@host/name?sslmode=require": true,
		"postgres://ann:hunter2@host/name":         false,
		"postgres://host/name?password=hunter2":    false,
		"postgres://host/name?sslpassword=hunter2": false,
		"postgres://ann:hunter2%zz@host/name":      false,
	} {
		if got := (&databaseFlag{address}).repeatable(); (got == address) != shown || !shown && got != "" {
			t.Errorf("%s is shown as %q", address, got)
		}
	}
}

// TestDatabaseFlag_Again: a command that is suggested reaches the same database, and tells no password.
func TestDatabaseFlag_Again(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"":                                 "",
		"postgres://ann@host/name":         " --database postgres://ann@host/name",
		"postgres://ann:hunter2@host/name": " --database ADDRESS",
		"postgres://host/name?a=b&c=d":     " --database 'postgres://host/name?a=b&c=d'",
	} {
		if got := (&databaseFlag{address}).again(); got != want {
			t.Errorf("for %q it is %q, want %q", address, got, want)
		}
	}
}
