package mcp

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"tandem/store"
)

// Suggestion is a policy that somebody might choose for a tool. Nothing follows from it: what a tool is called and how it describes itself
// is its server's word.
type Suggestion struct {
	Policy string
	Reason string
}

// word finds the words of a name or a text; those of a name may be joined by case. read-only
var word = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)

// readingWords begin the names of tools that only read, harmWords are those of tools that do harm. read-only
var (
	readingWords = []string{"get", "list", "read", "search", "find", "show", "describe", "fetch", "look", "count", "check",
		"view", "browse", "lookup", "stat"}
	harmWords = []string{
		"delete", "remove", "drop", "destroy", "erase", "wipe", "truncate", "purge", "kill", "shutdown", "revoke", "overwrite", "format",
		"write", "create", "update", "edit",
		"move", "send", "pay", "transfer", "execute", "run", "post", "publish", "deploy", "install", "set", "put", "insert", "merge",
		"push", "cancel", "reset", "grant",
	}
)

// harms finds the first word that means harm. A form of a word counts as the word.
func harms(text string) (string, bool) {
	for _, w := range word.FindAllString(text, -1) {
		w = strings.ToLower(w)
		for _, form := range []string{w, strings.TrimSuffix(w, "s"), strings.TrimSuffix(w, "es"), strings.TrimSuffix(w, "d"),
			strings.TrimSuffix(w, "ing"), strings.TrimSuffix(w, "ing") + "e"} {
			if slices.Contains(harmWords, form) {
				return w, true
			}
		}
	}
	return "", false
}

// Suggest offers a policy for a tool by what is said of it.
func Suggest(t Tool) Suggestion {
	if w, yes := harms(t.Name); yes {
		return Suggestion{store.MCPAsk, fmt.Sprintf("its name says %q", w)}
	}
	if w, yes := harms(t.Description); yes {
		return Suggestion{store.MCPAsk, fmt.Sprintf("its description says %q", w)}
	}
	if ClassOf(t) == Destructive {
		return Suggestion{store.MCPAsk, "its server says that it destroys"}
	}
	first := strings.ToLower(word.FindString(t.Name))
	switch {
	case ClassOf(t) == ReadOnly:
		return Suggestion{store.MCPReadOnly, "its server says that it only reads"}
	case slices.Contains(readingWords, first):
		return Suggestion{store.MCPReadOnly, fmt.Sprintf("its name begins with %q", first)}
	}
	return Suggestion{store.MCPAsk, "nothing is said of what it does to the world"}
}
