package llm_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"tandem/llm"
)

func TestScrub(t *testing.T) {
	t.Parallel()
	if got := llm.Scrub("your key sk-1 is wrong: sk-1", "sk-1"); got != "your key *** is wrong: ***" {
		t.Errorf("got %q", got)
	}
	if got := llm.Scrub("nothing to hide", ""); got != "nothing to hide" {
		t.Errorf("got %q", got)
	}
	// A key that lies across the cut leaves no half, and no character is cut in two.
	got := llm.Scrub(strings.Repeat("ü", 498)+"secret-key"+strings.Repeat("ü", 500), "secret-key")
	if strings.Contains(got, "sec") || !utf8.ValidString(got) || len(got) > 1010 || !strings.HasSuffix(got, "…") {
		t.Errorf("got %q", got)
	}
}
