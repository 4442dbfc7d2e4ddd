package text_test

import (
	"encoding/json"
	"errors"
	"testing"

	"tandem/fault"
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

// TestErrorIn tells errors to readers of Chinese: those with words of their own, and those whose format has a translation. What says
// something else than its format by now, or has no translation, is told in English.
func TestErrorIn(t *testing.T) {
	t.Parallel()
	changed := fault.Newf(fault.NotFound, "there is no workflow %q", "a")
	changed.Message += "; list them first"
	for name, c := range map[string]struct {
		err  *fault.Error
		want string
	}{
		"Values":       {fault.Newf(fault.NotFound, "there is no workflow %q", "a"), "没有工作流 \"a\""},
		"Wrapped":      {fault.Newf(fault.InvalidInput, "the answer cannot be read: %w", errors.New("EOF")), "无法读取该答复：EOF"},
		"NoValues":     {fault.New(fault.NotReady, "the database does not answer"), "数据库没有响应"},
		"Words":        {fault.Say(fault.InvalidInput, text.Of("%d days left", 3)), "还有 3 天"},
		"Copied":       {fault.Newf(fault.NotFound, "there is no workflow %q", "a").With("id", "a").Final(), "没有工作流 \"a\""},
		"Changed":      {changed, "there is no workflow \"a\"; list them first"},
		"Unknown":      {fault.Newf(fault.NotFound, "there is no moon %q", "a"), "there is no moon \"a\""},
		"ForWorkflows": {fault.Newf(fault.NotFound, "there is no workflow %q", "a").Public(), "there is no workflow \"a\""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := text.ErrorIn("zh", c.err); got != c.want {
				t.Errorf("it says %s, want %s", got, c.want)
			}
			if got := text.ErrorIn(text.English, c.err); got != c.err.Message {
				t.Errorf("in English it says %s, want %s", got, c.err.Message)
			}
		})
	}
}
