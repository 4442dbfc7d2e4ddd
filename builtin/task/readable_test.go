package task

import (
	"encoding/json"
	"strings"
	"testing"

	"tandem/human/form/formtest"
)

// What a person gives instead of a result has no escapes in it when a model reads it, no matter who wrote the JSON.
func TestGivenResult_Readable(t *testing.T) {
	t.Parallel()
	got := string(givenResult(json.RawMessage(`{"\u540d":"\u5f20\u003cb\u003e"}`)))
	if !strings.Contains(strings.ReplaceAll(got, `\"`, `"`), `{"名":"张<b>"}`) {
		t.Errorf("it is told as %s", got)
	}
	var told string
	if err := json.Unmarshal(givenResult(formtest.Value()), &told); err != nil {
		told = string(givenResult(formtest.Value()))
	}
	formtest.Readable(t, told)
}
