package sqlite

import (
	"regexp"
	"sync/atomic"
)

// kept says which records are kept at hand somewhere, so that reading them does not go to the database.
type kept uint8

const (
	keptAccounts  kept = 1 << iota // tokens and users
	keptWorkflows                  // what a start has to know of a workflow
)

// The tables of what is kept at hand, where a statement changes them.
var (
	changesAccounts  = regexp.MustCompile(`(?i)\b(INTO|UPDATE(\s+OR\s+\w+)?|FROM)\s+(tokens|users)\b`) // read-only
	changesWorkflows = regexp.MustCompile(`(?i)\b(INTO|UPDATE(\s+OR\s+\w+)?|FROM)\s+workflows\b`)      // read-only
)

// changesOf says of a statement that is executed what it may change.
func changesOf(text string) (k kept) {
	if changesAccounts.MatchString(text) {
		k |= keptAccounts
	}
	if changesWorkflows.MatchString(text) {
		k |= keptWorkflows
	}
	return k
}

// generations count the transactions that may have changed what is kept at hand. A caller that keeps something notes the generation
// before reading it, and uses it as long as the generation is the same: the next one begins when a change is on disk, before
// anybody is told of it.
type generations struct {
	accounts, workflows atomic.Uint64
}

func (g *generations) noteChange(k kept) {
	if k&keptAccounts != 0 {
		g.accounts.Add(1)
	}
	if k&keptWorkflows != 0 {
		g.workflows.Add(1)
	}
}
