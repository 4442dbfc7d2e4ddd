package printed

import (
	"encoding/json"
	"sync"

	"tandem/fault"
	"tandem/payload"
)

// Chunks is what the chunks of a run add up to: text follows text, an object takes the place of the object before. A kind
// may emit from several goroutines.
type Chunks struct {
	mu   sync.Mutex
	text []byte
	data json.RawMessage
	// some says that there was a chunk, be it empty text.
	some bool
}

// maxChunks bounds the text that is collected, in bytes.
const maxChunks = 32 << 20

// Add adds text.
func (c *Chunks) Add(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.some = true
	if len(c.text) <= maxChunks { // what is beyond it is refused at the end
		c.text = append(c.text, text...)
	}
}

// Put puts an object in the place of the one before.
func (c *Chunks) Put(data json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.some, c.data = true, data
}

// Any says that there was a chunk.
func (c *Chunks) Any() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.some
}

// Spoke says that there was text.
func (c *Chunks) Spoke() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.text) > 0
}

// Payload is all of it, as the result of a run that has no other.
func (c *Chunks) Payload() (json.RawMessage, error) {
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
