// Package temporal drives executions on a Temporal cluster.
//
// Temporal says when an execution goes on and on which worker; what it is and what becomes of it is in the journal, as on every
// host. Each execution has a Temporal workflow, which is a loop that knows ids and times and nothing else ([loop]): it has attempts
// run, as activities, and has the execution attended to when it is woken or something is due. The activities are in [Host]. They
// record with a local host that has a carrier ([local.Options].Carrier); what follows from a row comes back to the loop as ids.
//
// The loop is frozen: workflows that were begun years ago replay it. What executions mean is in the engine, by the version in
// their first event.
//
// Package app puts it together; tests hold it to the suite hosttest.
package temporal
