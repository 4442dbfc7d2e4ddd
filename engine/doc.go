// Package engine decides what an execution does next, and nothing else.
//
// [State] folds the events of one execution's journal and answers each with commands for the host: [State.Apply] does
// all of it. A state holds keys, counters and references, never values: what a node produced, whether a condition held,
// what a conversion returned was evaluated by the node runtime and recorded as an outcome, so no decision is ever made
// twice and the same journal always gives the same state, byte for byte.
//
// A scope (the top level, an iteration of a loop, one turn of an AI node's tools) is run by a [Program]. The graph
// program follows a compiled workflow; other programs may write their plan as they go. Whatever the program, the life of
// an activation is the engine's: attempts, backoff, waits, questions, children, unknown outcomes, pause, cancel,
// failure, recovery and fork are written once.
//
// The package is pure: no clock (events carry their time), no disk, no network, no goroutine, no expression, no data
// flow. It imports workflow and fault; hosts, programs and stores import it.
//
// Files: event.go and command.go are the language; activation.go is the life of one activation, wait.go its waits, scope.go the life of
// a scope and its iterations, ending.go how scopes and executions end early, operator.go what people and hosts do to an execution,
// program.go the seam for programs, graph.go, tool_loop.go and filling.go the programs, snapshot.go the encoding.
package engine
