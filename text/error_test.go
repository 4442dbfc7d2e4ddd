package text_test

import (
	"encoding/json"
	"testing"

	"tandem/text"
)

// stored is an error that says more in English than its words do.
type stored struct{ words []byte }

// English implements text.Told.
func (stored) English() string { return "yes, and more" }

// Words implements text.Told.
func (s stored) Words() json.RawMessage { return s.words }

// MadeOf implements text.Told.
func (stored) MadeOf() (string, []any) { return "yes", nil }

// TestErrorIn_Stored: words take the place of the message for those whose language they have.
func TestErrorIn_Stored(t *testing.T) {
	t.Parallel()
	yes := text.Of("Yes").Stored()
	for _, c := range []struct {
		language string
		words    []byte
		want     string
	}{
		{"zh-CN", yes, "是"}, {"en", yes, "yes, and more"}, {"fr", yes, "yes, and more"}, {"zh", nil, "yes, and more"}, {"zh", []byte("[1]"), "yes, and more"},
		{"zh", text.As("Yes").Stored(), "yes, and more"},
	} {
		if got := text.ErrorIn(c.language, stored{c.words}); got != c.want {
			t.Errorf("%s: %s: %q; want %q", c.language, c.words, got, c.want)
		}
	}
}
