// Package host is what drivers of executions have in common.
//
// A host owns executions: it records events before anything acts on them and carries the engine's commands out. Here is
// the part of that which no clock, disk or network is needed for: the rows of a journal with the values they hold
// ([Row]), and an execution in memory as the fold of its rows ([Fold]): the engine's state, the data layers, and what is
// kept of open scopes. What drives it stands in packages below this one.
//
// It imports the engine and the data flow. It runs no node and knows no kind.
package host
