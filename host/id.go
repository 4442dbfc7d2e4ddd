package host

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"tandem/engine"
)

// The digits of an execution id, in the order of their values, and how many of them tell the time.
const (
	idDigits = "234567abcdefghijklmnopqrstuvwxyz"
	idTime   = 9
)

// NewExecutionID makes an id that is unique and cannot be guessed: the time, to the millisecond, and 85 random bits. Later ids
// sort after earlier ones, so that an index of executions grows at its end: random ones would touch a page of it for each of the
// executions that begin together.
func NewExecutionID(now time.Time) string {
	var at [idTime]byte
	for i, ms := idTime-1, now.UnixMilli(); i >= 0; i, ms = i-1, ms>>5 {
		at[i] = idDigits[ms&31]
	}
	return "exec_" + string(at[:]) + strings.ToLower(rand.Text()[idTime:])
}

// InteractionID is the id by which people know a question. It follows from the question, so that every reader of the
// journal can find it, and asking again is the same interaction.
func InteractionID(workspace, execution string, ask engine.AskID) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s %d:%s %s", len(workspace), workspace, len(execution), execution, ask))
	sum[6] = sum[6]&0x0f | 0x80 // version 8: an application-defined UUID
	sum[8] = sum[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// AskedBelow is a question of an execution below, in the form that the executions above it get.
type AskedBelow struct {
	Interaction string `json:"interaction_id"`
	Execution   string `json:"execution_id"`
	Node        string `json:"node_id,omitempty"`
	Purpose     string `json:"purpose,omitempty"`
	Type        string `json:"interaction_type,omitempty"`
	Title       string `json:"title,omitempty"`
}
