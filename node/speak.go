package node

import (
	"github.com/tidwall/gjson"

	"tandem/dataflow"
	"tandem/node/printed"
)

// speak emits the whole text of a node that is for the user and has emitted none while it ran. A kind that a program leads emits its text
// step by step.
func (x *run) speak(outputs Done) {
	if x.job.Out == nil || x.job.Run.Step != nil || x.node.kind.Run == nil ||
		!gjson.GetBytes(x.call.Config, "to_user").Bool() || x.chunks.Spoke() {
		return
	}
	if text := printed.Spoken(outputs[dataflow.DefaultKey]); text != "" {
		x.emit(text)
	}
}
