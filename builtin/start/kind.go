package start

import (
	"tandem/builtin/values"
	"tandem/node"
)

// Fields are what every trigger says of a start besides what its event has brought. Message is what has started it, in words. Vendors that
// bring triggers use it.
func Fields(call *node.Call, message string) []values.Member { return startedFields(call, message) }

// Meanings describes them.
func Meanings() []node.Value { return startedMeanings() }
