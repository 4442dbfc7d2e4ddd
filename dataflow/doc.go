// Package dataflow says what a node reads: the three layers of an execution's data, the placeholders that read them,
// the synchronisation that writes them, the input that is built from both, and the lineage of every value in it.
//
// # Layers
//
// [Layers] holds initial_metadata (what the execution was started with, read-only), runtime_metadata (names written
// from outputs) and step_results (every node's full result). Every iteration or branch has an overlay of the last two;
// reads go from the inner scope outwards. Everything is versioned by journal sequence number, so that an activation
// reads the same in its first attempt, in a retry and after a crash: a [View] names a scope and an as_of.
//
// An execution that waits is dropped from memory. [Layers.Snapshot] keeps its data, [RestoreLayers] brings it back, and
// the rows of the journal that came later are applied to that.
//
// # Templates
//
// [Compile] finds the placeholders of a parameter object once; [Template.Resolve] puts values in their place. What a
// placeholder yields is data: it is never searched for placeholders again.
//
// # What it is not
//
// It stores nothing, logs nothing and runs nothing: traces are values that the caller may log. It never sees a secret;
// credentials are referred to by id and resolved inside the node. It does not evaluate expressions or conversions.
//
// It is pure: no clock, no disk, no network, no goroutine, no lock. The owner of an execution owns its Layers; reading
// changes nothing, so readers may share them while nobody writes. It may import fault only.
package dataflow
