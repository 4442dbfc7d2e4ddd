package host

import (
	"crypto/sha256"
	"fmt"

	"tandem/engine"
)

// InteractionID is the id by which people know a question. It follows from the question, so that whoever reads the
// journal can say it, and asking again is the same interaction.
func InteractionID(workspace, execution string, ask engine.AskID) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s %d:%s %s", len(workspace), workspace, len(execution), execution, ask))
	sum[6] = sum[6]&0x0f | 0x80 // version 8, of our own making
	sum[8] = sum[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// AskedBelow is a question of an execution below, as the executions above it are told of it.
type AskedBelow struct {
	Interaction string `json:"interaction_id"`
	Execution   string `json:"execution_id"`
	Node        string `json:"node_id,omitempty"`
	Purpose     string `json:"purpose,omitempty"`
	Type        string `json:"interaction_type,omitempty"`
	Title       string `json:"title,omitempty"`
}
