package story

import (
	"testing"
	"time"

	"tandem/story/storytest"
)

// staged is a stage and the library that tells its execution.
type staged struct {
	*storytest.Stage
	lib *Library
}

func newStaged(t testing.TB) *staged {
	t.Helper()
	return withLibrary(storytest.New(t))
}

// newStagedOf is newStaged for any workflow and start.
func newStagedOf(t testing.TB, definition, start string) *staged {
	t.Helper()
	return withLibrary(storytest.NewOf(t, definition, start))
}

func withLibrary(st *storytest.Stage) *staged {
	return &staged{st, &Library{Executions: storytest.Executions{St: st}, Interactions: storytest.Interactions{}, Source: st, Hub: st.Hub, Revisions: storytest.Revisions{st}, Now: time.Now}}
}
