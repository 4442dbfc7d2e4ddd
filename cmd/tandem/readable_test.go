package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"tandem/human/form/formtest"
)

// Terminals show characters, not the escapes that programs write for them.
func TestReadableValues(t *testing.T) {
	t.Parallel()
	value := json.RawMessage(`{"\u540d":"\u5f20\u003cb\u003e"}`)
	const want = `{"名":"张<b>"}`
	var printed bytes.Buffer
	if err := printValue(&printed, map[string]any{"v": value}); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"cell": cell(value), "plain": plain(value), "named": strings.Join(named(map[string]json.RawMessage{"x": value}), ""), "arguments": shortArguments(`{"x":` + string(value) + `}`),
		"indented": strings.NewReplacer(" ", "").Replace(strings.Join(indented(value), "")), "printed": strings.NewReplacer(" ", "", "\n", "").Replace(printed.String()),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s: %s", name, text)
		}
	}
	formtest.Readable(t, strings.Join(indented(formtest.Value()), "\n"))
	formtest.Readable(t, cell(formtest.Value()))
}
