// Package turns is where work waits for its turn: runs for room among those that go on at once ([Gate]), executions for a place
// among those that may run ([Admission]).
//
// It keeps books in memory and starts what it is handed; it reads and records nothing. Hosts import it.
package turns
