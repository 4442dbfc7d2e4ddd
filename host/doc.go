// Package host is what drivers of executions have in common.
//
// A host owns executions: it records events before anything acts on them and carries out the engine's commands. This package has the part
// that needs no clock, disk or network: the rows of a journal with the values they hold ([Row]), and an execution in memory as the fold of
// its rows ([Fold]): the engine's state, the data layers, and what is kept of open scopes. The drivers are in packages below this one.
//
// It imports the engine and the data flow. It runs no node and knows no kind.
package host
