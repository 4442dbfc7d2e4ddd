// Package budget keeps to the budgets of profiles: it reserves what a call of a model may cost before the call, gives back what was not
// used, lets those wait for whom nothing is left, and tells what is spent, what is allowed and who waits. What is spent is in the store.
//
// Package app gives a [Purse] to the kinds that call models; no package below app may import it.
package budget
