package temporal

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/host/hosttest"
)

// TestSame_LogsOfBothHosts plays the cases whose logs are determined on the local host and on Temporal: of each activation the journals say
// the same, in the same order, and nothing comes before what it follows from. It is some of them, unless all are asked for.
func TestSame_LogsOfBothHosts(t *testing.T) {
	t.Parallel()
	for i, c := range hosttest.Cases() {
		if hosttest.Undetermined(c) != "" || crashEvery() > 1 && i%sameEvery != 0 {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			here := c.Play(t, localRig(hosttest.NewDisk().Stores), hosttest.Fate{})
			s := newSite(t)
			s.split = c.MaxRunning+c.MaxTasks > 0 // one process has the limits
			there := c.Play(t, s.rig(hosttest.NewDisk().Stores), hosttest.Fate{})
			if diff := cmp.Diff(here.Logs, there.Logs); diff != "" {
				t.Errorf("the local host (-) and Temporal (+): %s", diff)
			}
			if diff := cmp.Diff(here.Ends, there.Ends); diff != "" {
				t.Errorf("the local host (-) and Temporal (+): %s", diff)
			}
			for _, p := range slices.Concat(here.Problems, there.Problems) {
				t.Error(p)
			}
		})
	}
}

// sameEvery is of how many cases one is compared, unless all are asked for.
const sameEvery = 5
