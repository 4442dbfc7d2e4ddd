package form

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDecided: each place knows its words, and a word never means both.
func TestDecided(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		place   place
		yes, no string
	}{
		"Typed": {typed, "y yes true on pass passed approve 是 通过 YES Pass", "n no false off fail failed reject 否 不通过 No"},
		"Score": {scored, "true pass passed yes 是 通过 TRUE Passed", "false fail failed no 否 不通过 FALSE"},
		"Field": {ticked, "true on yes On", "false off no"},
		"Name":  {named, "approve yes confirm Approve", "reject no deny"},
		"Act":   {acted, "approve approved APPROVED", "reject rejected deny no"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			yes, no := strings.Fields(c.yes), strings.Fields(c.no)
			for _, word := range slices.Concat(yes, no) {
				if got, ok := c.place.decided(word); !ok || got != slices.Contains(yes, word) {
					t.Errorf("%s: %t, %t", word, got, ok)
				}
			}
			for word := range decisions {
				if _, ok := c.place.decided(word); ok && !slices.Contains(yes, word) && !slices.Contains(no, word) {
					t.Errorf("%s means something", word)
				}
			}
			for _, word := range []string{"", "maybe", "1", "yes "} {
				if _, ok := c.place.decided(word); ok {
					t.Errorf("%q means something", word)
				}
			}
		})
	}
}

// TestEntry_Words: who draws a form is told every word that a person may type for a score, and nothing for other entries.
func TestEntry_Words(t *testing.T) {
	t.Parallel()
	want := map[string]bool{
		"yes": true, "true": true, "on": true, "y": true, "是": true, "通过": true, "pass": true, "passed": true, "approve": true,
		"no": false, "false": false, "off": false, "n": false, "否": false, "不通过": false, "fail": false, "failed": false, "reject": false,
	}
	if diff := cmp.Diff(want, (&Entry{Kind: Score}).Words()); diff != "" {
		t.Errorf("words (-want +got):\n%s", diff)
	}
	for word, yes := range want { // order does not matter
		if got, ok := typed.decided(word); !ok || got != yes {
			t.Errorf("%s: %t, %t; want %t", word, got, ok, yes)
		}
	}
	if words := (&Entry{Kind: YesNo}).Words(); words != nil {
		t.Errorf("an entry that is no score has words: %v", words)
	}
}
