package host_test

import (
	"regexp"
	"slices"
	"testing"
	"time"

	"tandem/host"
)

func TestNewExecutionID_SortsByTime(t *testing.T) {
	t.Parallel()
	shape := regexp.MustCompile(`^exec_[a-z2-7]{26}$`)
	at := time.UnixMilli(1_700_000_000_000)
	var ids []string
	for n := range 2000 {
		ids = append(ids, host.NewExecutionID(at.Add(time.Duration(n*n)*time.Millisecond)))
	}
	for _, id := range ids {
		if !shape.MatchString(id) {
			t.Fatalf("%q does not look like an id", id)
		}
	}
	if !slices.IsSorted(ids) {
		t.Error("one that was made later sorts before one that was made earlier")
	}
	same := map[string]bool{}
	for range 2000 {
		same[host.NewExecutionID(at)] = true
	}
	if len(same) != 2000 {
		t.Errorf("of 2000 ids of one moment %d differ", len(same))
	}
}
