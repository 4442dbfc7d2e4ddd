// Package local drives executions in this process, on a store that is at hand.
//
// Each execution that has something to do has an owner: one goroutine that turns what happens into rows of the journal,
// one append at a time, and carries the engine's commands out after the append. An execution that only waits has no
// goroutine and no memory; a timer, an answer or a signal brings it back from its journal.
//
// Who owns what: the [Host] owns the table of owners, the timers and the workers; an owner owns its fold and its queue;
// a worker owns nothing but the job it was handed.
package local
