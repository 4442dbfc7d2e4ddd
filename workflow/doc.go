// Package workflow holds the definition of a workflow: its file format, its validation and its compiled graph.
//
// It reads JSON and YAML into a [Definition], reports every problem of one at once, gives a revision its hash, and
// compiles the definition into the [Graph] that the engine follows. It knows no kind of node: what it has to know about
// kinds it asks of [Kinds]. It runs nothing, stores nothing and resolves no placeholder.
//
// Files come from strangers, so everything here takes time and memory about in proportion to the file, and limits hold
// while reading, not after. YAML is the part of it that stands for JSON, with anchors, aliases and merge keys; keys that
// are not text, tags of one's own and several documents in a file are refused.
//
// It is pure: no clock, no disk, no network, no goroutine. It may import fault and expr only.
package workflow
