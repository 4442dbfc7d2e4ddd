package memory

import (
	"encoding/json"
	"testing"

	"github.com/tidwall/gjson"
)

// TestDocument_FieldsKeepDigits: a filter sees the numbers of the metadata as they were written, and a document's own fields.
func TestDocument_FieldsKeepDigits(t *testing.T) {
	t.Parallel()
	d := Document{DocumentID: "d", Title: "<t>", Tags: []string{"x"}, Metadata: json.RawMessage(`{"z":12345678901234567890,"title":"other","a":1.10}`)}
	if got, want := string(d.fields()), `{"z":12345678901234567890,"title":"<t>","a":1.10,"document_id":"d","tags":["x"]}`; got != want {
		t.Errorf("got %s; want %s", got, want)
	}
	d.Metadata = json.RawMessage(`[1]`)
	if got, want := string(d.fields()), `{"document_id":"d","title":"<t>","tags":["x"]}`; got != want {
		t.Errorf("got %s; want %s", got, want)
	}
}

// TestFilter_LargeNumbers: whole numbers that a float64 does not tell apart are told apart.
func TestFilter_LargeNumbers(t *testing.T) {
	t.Parallel()
	number := func(text string) gjson.Result { return gjson.Parse(text) }
	less, more := number("12345678901234567890"), number("12345678901234567891")
	if same(less, more) || !same(less, less) || !same(number("1.10"), number("1.1")) {
		t.Error("numbers are taken for others")
	}
	if ordered(more, less) || !ordered(less, more) || !ordered(less, less) || !ordered(number("1.1"), number("1.10")) {
		t.Error("numbers are out of order")
	}
}
