package payload

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Decode reads one JSON value as Go values, its numbers as they are written ([json.Number]). Something that follows it is refused.
func Decode(raw []byte) (any, error) {
	var v any
	err := Read(raw, &v)
	return v, err
}

// Read reads one JSON value into a Go value. Where that takes anything, numbers come as they are written. Something that follows is
// refused.
func Read(raw []byte, into any) error { return read(raw, into, false) }

// ReadKnown is [Read], and refuses fields that the Go value does not have.
func ReadKnown(raw []byte, into any) error { return read(raw, into, true) }

// following is the error of a text with something after its value.
type following struct{ at int }

func (f following) Error() string {
	return fmt.Sprintf("something follows the value at byte %d", f.at)
}

// Follows says that an error of this package is about something that follows a value.
func Follows(err error) bool {
	_, ok := err.(following)
	return ok
}

func read(raw []byte, into any, known bool) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if known {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(into); err != nil {
		return err
	}
	end := blankAfter(raw, int(d.InputOffset()))
	if end != len(raw) {
		return following{end}
	}
	return nil
}

// blankAfter returns the first place from i on that is not white space of JSON.
func blankAfter(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}
