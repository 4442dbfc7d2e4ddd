package temporal

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/host/hosttest"
)

// TestSame_LogsOfBothHosts plays cases on the local host and on Temporal: of each activation the journals say the same, in the same
// order, and nothing comes before what it follows from.
func TestSame_LogsOfBothHosts(t *testing.T) {
	t.Parallel()
	names := []string{"Flow/Chain", "Flow/FanOutAndJoin", "Flow/DeadBranchIsSkipped", "Flow/SequentialLoop", "Flow/LoopKeepsGoing", "Failure/RetriesWithBackoff", "Failure/Handled", "Wait/Timer", "Wait/Answer", "Child/IsWaitedFor"}
	for _, c := range hosttest.Cases() {
		if !slices.Contains(names, c.Name) {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			here := c.Play(t, localRig(hosttest.NewDisk().Stores), hosttest.Fate{})
			there := c.Play(t, newSite(t).rig(hosttest.NewDisk().Stores), hosttest.Fate{})
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
