// Package workflow holds the definition of a workflow: its file format, its validation and its compiled graph.
//
// It reads JSON and YAML into a [Definition], reports every problem of one at once, gives a revision its hash, and
// compiles the definition into the [Graph] that the engine follows. It knows no kind of node: what it has to know about
// kinds it asks of [Kinds]. It runs nothing, stores nothing and resolves no placeholder.
//
// It is pure: no clock, no disk, no network, no goroutine. It may import fault and expr only.
package workflow
