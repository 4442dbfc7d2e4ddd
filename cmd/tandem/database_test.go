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
