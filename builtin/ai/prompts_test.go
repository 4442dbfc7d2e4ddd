package ai

import (
	"encoding/json"
	"strings"
	"testing"

	"tandem/builtin/values"
	"tandem/dataflow"
	"tandem/human/form/formtest"
	"tandem/node"
)

// What a model is told of a value has no escapes in it, no matter who wrote the JSON.
func TestPrompts_ReadableValues(t *testing.T) {
	t.Parallel()
	value := json.RawMessage(`{"\u540d":"\u5f20\u003cb\u003e"}`)
	const want = `{"名":"张<b>"}`
	messages := slotMessages("zh", node.Slots{}, value, value, dataflow.Context{})
	if text := messages[1].Content; strings.Count(text, want) != 2 {
		t.Errorf("the slots are told as %s", text)
	}
	formtest.Readable(t, slotMessages("zh", node.Slots{}, formtest.Value(), formtest.Value(), dataflow.Context{})[1].Content)
	for name, text := range map[string]string{
		"Text": values.Text(value), "told": told([]node.Past{{Output: value}}), "Readable": values.Readable(value, 100),
	} {
		if !strings.Contains(strings.ReplaceAll(text, `\"`, `"`), want) {
			t.Errorf("%s: %s", name, text)
		}
	}
}
