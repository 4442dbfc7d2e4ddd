package host

import (
	"tandem/dataflow"
	"tandem/engine"
)

// Traced is what a success, or the end of an iteration, did to the data of an execution. One of Sync and Fold is set.
type Traced struct {
	Activation engine.ActivationID
	// Sync says which fields of an output became names of the data, and which values they replaced.
	Sync *dataflow.SyncTrace
	// Fold says what happened to the data of an iteration.
	Fold *dataflow.FoldTrace
}

// Trace sets the function that is called with each change of the execution's data from now on; nil ends that.
func (f *Fold) Trace(told func(Traced)) { f.traced = told }

// sync writes an output into the layers, and reports what that did.
func (f *Fold) sync(s dataflow.Step) error {
	trace, err := f.layers.Sync(s)
	if err == nil && f.traced != nil {
		told := trace // which is not made unless it is reported
		f.traced(Traced{Activation: engine.ActivationID(s.Activation), Sync: &told})
	}
	return err
}

// closeOverlay folds the data of an iteration into what is around it, and reports what that did.
func (f *Fold) closeOverlay(scope string, seq uint64) error {
	trace, err := f.layers.CloseScope(scope, seq)
	if owner, ok := OwnerOf(scope); ok && err == nil && f.traced != nil {
		f.traced(Traced{Activation: owner, Fold: &trace})
	}
	return err
}
