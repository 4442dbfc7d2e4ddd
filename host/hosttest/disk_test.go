package hosttest_test

import (
	"testing"

	"tandem/host/hosttest"
	"tandem/store"
	"tandem/store/storetest"
)

// The simulated disk is a store like any other.
func TestDisk(t *testing.T) {
	t.Parallel()
	storetest.RunHost(t, func(*testing.T) store.Stores { return hosttest.NewDisk().Stores() })
}
