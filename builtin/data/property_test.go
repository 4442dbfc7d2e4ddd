package data_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"tandem/node/nodetest"
)

// read decodes a part of an output.
func read[T any](t rapid.TB, raw json.RawMessage) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return v
}

// What is written and read again is what it was, as far as the format keeps types.
func TestFormatting_RoundTrips(t *testing.T) {
	t.Parallel()
	there := func(r rapid.TB, format, options, data string) string {
		out := kinds().Done(t, "ACTION.DATA_FORMATTING", nodetest.NewCall(t, fmt.Sprintf(`{"format_type": %q, "options": %s}`, format, options), `{"data": `+data+`}`))
		formatted := read[struct {
			Formatted string `json:"formatted"`
		}](r, out["result"]).Formatted
		back := kinds().Done(t, "ACTION.DATA_FORMATTING", nodetest.NewCall(t, fmt.Sprintf(`{"format_type": %q, "direction": "parse", "options": %s}`, format, options), `{"data": `+nodetest.Text(formatted)+`}`))
		return nodetest.Text(read[struct {
			Data any `json:"data"`
		}](r, back["result"]).Data)
	}
	word := rapid.StringOf(rapid.SampledFrom([]rune(`ab=+-@'",;` + " \n<&|日1")))
	rapid.Check(t, func(r *rapid.T) {
		cell := word.Draw(r, "cell")
		record := nodetest.Text([]any{map[string]any{"a": cell, "b": word.Draw(r, "other")}})
		for _, format := range []string{"json", "yaml", "csv"} {
			if got := there(r, format, `{}`, record); got != record {
				r.Fatalf("%s: %s came back as %s", format, record, got)
			}
		}
		for _, format := range []string{"base64", "url", "text", "json", "yaml"} {
			if got := there(r, format, `{}`, nodetest.Text(cell)); got != nodetest.Text(cell) {
				r.Fatalf("%s: %q came back as %s", format, cell, got)
			}
		}
		flat := nodetest.Text(map[string]any{"a": cell, "b": "x"})
		if got := there(r, "xml", `{}`, flat); got != flat {
			r.Fatalf("xml: %s came back as %s", flat, got)
		}
		if got := there(r, "url", `{"query": true}`, flat); got != flat {
			r.Fatalf("url: %s came back as %s", flat, got)
		}
	})
}
