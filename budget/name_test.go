package budget

import (
	"testing"
)

func TestBudgetName(t *testing.T) {
	t.Parallel()
	for _, n := range []Name{
		{"m", PerDay, false, "2026-11-15"}, {"m.x", PerDay, true, "2026-11-15"}, {"m", perWorkflow, true, "a/b"}, {"m", PerExecution, false, "exec_1"},
	} {
		if got, ok := ReadName(n.String()); !ok || got != n {
			t.Errorf("%q is read as %+v, %v", n, got, ok)
		}
	}
	for _, text := range []string{"", "m", "m/day", "m/day/", "/day/x", "m/month/x", "m/_cost/x"} {
		if got, ok := ReadName(text); ok {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}
