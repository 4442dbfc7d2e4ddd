package web

import (
	"encoding/json"
	"strings"
	"testing"

	"tandem/builtin/values"
)

// A value that a webhook sends as text has no escapes in it, no matter who wrote the JSON.
func TestAsText_Readable(t *testing.T) {
	t.Parallel()
	got := values.Text(asText(json.RawMessage(`{"\u540d":"\u5f20\u003cb\u003e"}`)))
	if !strings.Contains(got, `{"名":"张<b>"}`) {
		t.Errorf("it is sent as %s", got)
	}
}
