// Package llm is how Tandem speaks with models: messages, tools, one completion at a time.
//
// A [Provider] speaks one service's protocol; there is a package for each below this one, and llmtest is the suite that
// each of them has to pass. A [Profile] says which model is meant, how it is reached, what it costs and what takes its
// place when it fails. The [Executor] does one completion: it finds the provider, keeps the time limits, tells observers,
// and returns the answer or a fault that says what went wrong.
//
// What a model wants done, in which order and how often, is decided elsewhere: the package knows nothing of nodes,
// executions or journals. Kinds, memories and the agent import it.
package llm
