// Package story tells executions, tasks, steps and events: it reads what is recorded of an execution and says it in the shapes of package
// api.
//
// It decides nothing, starts nothing and knows nothing of HTTP. A [Library] is where executions are looked up; a [Reading] is one that is
// being read; a [Reader] follows one while it goes on, in one of two vocabularies. Package server answers requests with it; no package
// below that one may import it.
package story
