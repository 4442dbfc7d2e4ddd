package live_test

import (
	"testing"

	"tandem/engine"
	"tandem/host"
	"tandem/live"
)

// TestRuns_Ended: what a run has handed out is let go when it has ended, also if nothing of it was recorded; not what goes on after a wait, and not what a
// later attempt has said.
func TestRuns_Ended(t *testing.T) {
	t.Parallel()
	first, second := say(1, "one"), say(2, "two")
	for name, c := range map[string]struct {
		facts []engine.Fact
		said  []host.Chunk
		want  string
	}{
		"nothing was recorded":       {nil, []host.Chunk{first}, ""},
		"it waits":                   {[]engine.Fact{engine.NodeSuspended{Attempt: first.Attempt}}, []host.Chunk{first}, "one"},
		"its scope begins":           {[]engine.Fact{engine.ScopeOpened{Attempt: first.Attempt}}, []host.Chunk{first}, "one"},
		"its scope goes on":          {[]engine.Fact{engine.ScopeAdvanced{Attempt: first.Attempt}}, []host.Chunk{first}, "one"},
		"another waits":              {[]engine.Fact{engine.NodeSuspended{Attempt: second.Attempt}}, []host.Chunk{first}, ""},
		"a later attempt has spoken": {nil, []host.Chunk{first, second}, "two"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hub := host.NewHub()
			runs := live.NewRuns(hub)
			for _, said := range c.said {
				hub.Emit(ref, said)
			}
			runs.Recorded(ref, &host.Row{Facts: c.facts})
			runs.Ended(ref, first.Attempt)
			sub := hub.Subscribe(ref)
			defer sub.Close()
			_, outputs, _ := sub.Sync()
			if got := outputs; len(got) > 1 || len(got) == 1 && got[0].Text != c.want || len(got) == 0 && c.want != "" {
				t.Errorf("there is %+v, want %q", got, c.want)
			}
			runs.Ended(ref, first.Attempt) // it has waited, has gone on, and has ended
			if _, outputs, _ = sub.Sync(); len(outputs) > 0 && outputs[0].Attempt == first.Attempt {
				t.Errorf("then there is %+v", outputs)
			}
		})
	}
}
