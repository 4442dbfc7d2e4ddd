package node

import (
	"testing"

	"tandem/fault"
	"tandem/text"
)

// TestInput_Words: what is wrong with the input of a node is told in the language of the reader.
func TestInput_Words(t *testing.T) {
	t.Parallel()
	_, err := input[struct {
		Count int `json:"count"`
	}]([]byte(`{"count":"x"}`))
	e := fault.From(err)
	en, zh := `"count" must be a whole number, not string`, `"count" 必须为整数，而不是 string`
	if gotEN, gotZH := text.ErrorIn(text.English, e), text.ErrorIn(text.Chinese, e); gotEN != en || gotZH != zh {
		t.Errorf("it says %s and %s, want %s and %s", gotEN, gotZH, en, zh)
	}
}
