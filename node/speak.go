package node

import (
	"encoding/json"

	"github.com/tidwall/gjson"

	"tandem/dataflow"
)

// speak hands out the text of a node that is for the user and has handed out none while it ran, whole. What a program leads speaks step by step.
func (x *run) speak(outputs Done) {
	if x.job.Out == nil || x.job.Run.Step != nil || x.node.kind.Run == nil || !gjson.GetBytes(x.call.Config, "to_user").Bool() || x.chunks.Spoke() {
		return
	}
	if text := Spoken(outputs[dataflow.DefaultKey]); text != "" {
		x.emit(text)
	}
}

// Spoken is the text of an output: the output itself, or the field of it that has what was said.
func Spoken(output json.RawMessage) string {
	value := gjson.ParseBytes(output)
	if value.Type == gjson.String {
		return value.Str
	}
	for _, name := range []string{"response", "text", "content", "summary", "message", "formatted"} {
		if field := value.Get(name); field.Type == gjson.String && field.Str != "" {
			return field.Str
		}
	}
	if result := value.Get("result"); result.Exists() { // of a tool, or of code
		return Spoken(json.RawMessage(result.Raw))
	}
	return ""
}
