package main

import (
	"cmp"
	"net/url"
	"os"

	"github.com/spf13/pflag"
)

// databaseFlag says which database is used, if not the one in the data directory.
type databaseFlag struct{ given string }

// databaseHelp says what --database does.
const databaseHelp = "the address of a database of PostgreSQL, as postgres://USER:PASSWORD@HOST:PORT/NAME, to use instead of the one in the data directory; better given as TANDEM_DATABASE, which other users of the machine cannot see"

// add adds the flag. What it is for stands in front of its help; empty: nothing does.
func (d *databaseFlag) add(flags *pflag.FlagSet, when string) {
	// The default is not the variable's value: help would show it.
	flags.StringVar(&d.given, "database", "", when+databaseHelp)
}

// address is that of the database; empty: it is in the data directory.
func (d *databaseFlag) address() string { return cmp.Or(d.given, os.Getenv("TANDEM_DATABASE")) }

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
