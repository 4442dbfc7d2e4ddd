package host

import (
	"crypto/rand"
	"strings"
	"time"
)

// The digits of an execution id, in the order of their values, and how many of them tell the time.
const (
	idDigits = "234567abcdefghijklmnopqrstuvwxyz"
	idTime   = 9
)

// NewExecutionID makes an id that nobody has and nobody can guess: when it was made, to the millisecond, and 85 random bits. Those
// made later sort after those made before, so that an index of executions grows at its end: random ones would touch a page of it
// for each of the executions that begin together.
func NewExecutionID(now time.Time) string {
	var at [idTime]byte
	for i, ms := idTime-1, now.UnixMilli(); i >= 0; i, ms = i-1, ms>>5 {
		at[i] = idDigits[ms&31]
	}
	return "exec_" + string(at[:]) + strings.ToLower(rand.Text()[idTime:])
}
