package host_test

import (
	"testing"

	"tandem/fault"
	"tandem/host"
	words "tandem/text"
)

// TestUnreadable_Words: what recorded data lacks is told in the language of the reader, with what it comes from.
func TestUnreadable_Words(t *testing.T) {
	t.Parallel()
	e := fault.From(host.Unreadable(fault.New(fault.NotFound, "there is no such record in this workspace"), "row %d of execution %q: %w", 3, "e"))
	if got, want := words.ErrorIn(words.Chinese, e), `第 3 条记录（执行 "e"）：此工作区中没有这条记录`; got != want {
		t.Errorf("it says %s, want %s", got, want)
	}
}
