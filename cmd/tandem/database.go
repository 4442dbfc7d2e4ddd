package main

import (
	"cmp"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/pflag"
)

// databaseFlag says which database is used, if not the one in the data directory.
type databaseFlag struct{ given string }

// databaseHelp says what --database does.
const databaseHelp = "the address of a database of PostgreSQL, as postgres://USER:PASSWORD@HOST:PORT/NAME, to use instead of the one in the data directory; better given as TANDEM_DATABASE, which other users of the machine cannot see"

// addDatabaseFlag adds the flag. What it is for stands in front of its help; empty: nothing does.
func (d *databaseFlag) addDatabaseFlag(flags *pflag.FlagSet, when string) {
	// The default is not the variable's value: help would show it.
	flags.StringVar(&d.given, "database", "", when+databaseHelp)
}

// address is that of the database; empty: it is in the data directory.
func (d *databaseFlag) address() string { return cmp.Or(d.given, os.Getenv("TANDEM_DATABASE")) }

// again is the flag for a command that is suggested, with a space before it; empty: the flag was not given, and the environment
// says the same to the next command. Who has given a password puts the address in by themselves.
func (d *databaseFlag) again() string {
	if d.given == "" {
		return ""
	}
	address := cmp.Or(d.repeatable(), "ADDRESS")
	if strings.ContainsAny(address, "?&;()$ ") { // which a shell reads otherwise
		address = "'" + strings.ReplaceAll(address, "'", `'\''`) + "'"
	}
	return " --database " + address
}

// repeatable is the address as it was given, to be shown; empty when it has a password, which is not.
func (d *databaseFlag) repeatable() string {
	u, err := url.Parse(d.given)
	if err != nil || u.Query().Has("password") || u.Query().Has("sslpassword") {
		return ""
	}
	if _, secret := u.User.Password(); secret {
		return ""
	}
	return d.given
}
