package console

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"tandem/console/table"
	"tandem/human/form/formtest"
)

// Terminals show characters, not the escapes that programs write for them.
func TestReadableValues(t *testing.T) {
	t.Parallel()
	value := json.RawMessage(`{"\u540d":"\u5f20\u003cb\u003e"}`)
	const want = `{"名":"张<b>"}`
	var printed bytes.Buffer
	if err := table.JSON(&printed, map[string]any{"v": value}); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"cell": table.Cell(value), "plain": plain(value), "named": strings.Join(named(map[string]json.RawMessage{"x": value}), ""),
		"indented": strings.NewReplacer(" ", "").Replace(strings.Join(indented(value), "")), "printed": strings.NewReplacer(" ", "", "\n", "").Replace(printed.String()),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s: %s", name, text)
		}
	}
	formtest.Readable(t, strings.Join(indented(formtest.Value()), "\n"))
	formtest.Readable(t, table.Cell(formtest.Value()))
}
