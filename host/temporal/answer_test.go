package temporal

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"tandem/engine"
	"tandem/host/local"
)

// TestAnswer_IsNeverTooLarge: of very many attempts an answer names some, the first ones, and has the loop ask again. It does not say then
// that those are all.
func TestAnswer_IsNeverTooLarge(t *testing.T) {
	t.Parallel()
	h := &Host{opts: Options{Part: Worker}, log: slog.New(slog.DiscardHandler)}
	h.search.asked = true
	attempts := make([]engine.Attempt, 100_000)
	for i := range attempts {
		attempts[i] = engine.Attempt{Activation: engine.ActivationID(fmt.Sprintf("each[%d]/inner[%d]/step", i/100, i%100)), Attempt: 1}
	}
	var many local.Next
	for _, at := range attempts {
		many.Run = append(many.Run, local.Work{Attempt: at, Limit: time.Hour})
	}
	many.All = true
	for name, c := range map[string]struct {
		next       local.Next
		runs, ends int
		all, again bool
	}{
		"Enough":  {local.Next{Run: many.Run[:mostNamed], All: true}, mostNamed, 0, true, false},
		"Many":    {many, fewNamed, 0, false, true},
		"ToStop":  {local.Next{Stop: attempts}, 0, fewNamed, false, true},
		"DueSoon": {local.Next{Run: many.Run, Due: 1}, fewNamed, 0, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := h.answerOf(c.next)
			soon := time.Now().Add(time.Minute).UnixMilli()
			if len(a.Run) != c.runs || len(a.Stop) != c.ends || a.All != c.all || (a.Due != 0 && a.Due < soon) != c.again {
				t.Errorf("%d to run, %d to stop, all %v, due %d", len(a.Run), len(a.Stop), a.All, a.Due)
			}
			if c.runs > 0 && a.Run[0].ID != idOf(attempts[0]) {
				t.Errorf("it begins with %v", a.Run[0])
			}
			if raw, err := json.Marshal(a); err != nil || len(raw) > 2<<20 {
				t.Errorf("it has %d bytes: %v", len(raw), err)
			}
		})
	}
}
