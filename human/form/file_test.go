package form

import (
	"encoding/base64"
	"encoding/json"
	"testing"
)

func TestReadFile_IsBounded(t *testing.T) {
	t.Parallel()
	for size := range 12 {
		var found Problems
		readFile("f", json.RawMessage(`{"name":"x","base64":"`+base64.StdEncoding.EncodeToString(make([]byte, size))+`"}`), 7, &found)
		if (found.err() != nil) != (size > 7) {
			t.Errorf("a file of %d bytes where 7 may be: %v", size, found)
		}
	}
}
