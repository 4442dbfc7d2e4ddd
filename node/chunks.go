package node

import (
	"encoding/json"
	"sync"

	"github.com/tidwall/gjson"

	"tandem/dataflow"
	"tandem/fault"
	"tandem/payload"
)

// chunks is what the chunks of a run add up to: text follows text, an object takes the place of the object before. A kind
// may emit from several goroutines.
type chunks struct {
	mu   sync.Mutex
	text []byte
	data json.RawMessage
	// some says that there was a chunk, be it empty text.
	some bool
}

// maxChunks bounds the text that is collected, in bytes.
const maxChunks = 32 << 20

func (c *chunks) add(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.some = true
	if len(c.text) <= maxChunks { // what is beyond it is refused at the end
		c.text = append(c.text, text...)
	}
}

func (c *chunks) put(data json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.some, c.data = true, data
}

func (c *chunks) any() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.some
}

// spoke says that there was text.
func (c *chunks) spoke() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.text) > 0
}

// speak hands out the text of a node that is for the user and has handed out none while it ran, whole. What a program leads speaks step by step.
func (x *run) speak(outputs Done) {
	if x.job.Out == nil || x.job.Run.Step != nil || x.node.kind.Run == nil || !gjson.GetBytes(x.call.Config, "to_user").Bool() || x.chunks.spoke() {
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

// payload is all of it, as the result of a run that has no other.
func (c *chunks) payload() (json.RawMessage, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.text) > maxChunks {
		return nil, fault.Newf(fault.TooLarge, "the node has emitted more than %d bytes of text", maxChunks)
	}
	all := map[string]any{}
	if len(c.text) > 0 || c.data == nil {
		all["text"] = string(c.text)
	}
	if c.data != nil {
		all["data"] = c.data
	}
	return payload.Encode(all)
}
