package route_test

import (
	"errors"
	"testing"

	"tandem/fault"
	"tandem/text"
)

// TestProblem_Words tells errors to readers of Chinese: those with words of their own, and those whose format has a translation. What says
// something else than its format by now, or has no translation, is told in English.
func TestProblem_Words(t *testing.T) {
	t.Parallel()
	changed := fault.Newf(fault.NotFound, "there is no workflow %q", "a")
	changed.Message += "; list them first"
	for name, c := range map[string]struct {
		err  *fault.Error
		want string
	}{
		"Values":       {fault.Newf(fault.NotFound, "there is no workflow %q", "a"), "没有工作流 \"a\""},
		"Wrapped":      {fault.Newf(fault.InvalidInput, "the answer cannot be read: %w", errors.New("EOF")), "无法读取该答复：EOF"},
		"Refused":      {fault.Newf(fault.InvalidInput, "the answer cannot be read: %w", fault.Newf(fault.NotFound, "there is no workflow %q", "a")), "无法读取该答复：没有工作流 \"a\""},
		"Placed":       {fault.Newf(fault.InvalidInput, "%s: %s", "a.b", text.Of("Yes")), "a.b：是"},
		"Wordless":     {fault.Newf(fault.InvalidInput, "%s <%s>", "a.b", text.Of("Yes")), "a.b <是>"},
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
