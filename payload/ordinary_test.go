package payload

import (
	"encoding/binary"
	"encoding/json"
	"testing"
)

// TestOrdinary: every byte, in every place of eight and beside every neighbour that matters, is told apart; and a text is JSON to the
// checker if and only if it is to encoding/json.
func TestOrdinary(t *testing.T) {
	t.Parallel()
	for b := range 256 {
		special := b < 0x20 || b == '"' || b == '\\'
		for place := range 8 {
			for _, beside := range []byte{' ', '!', '#', 'a', '[', ']', 0x7f, 0x80, 0xff} {
				eight := [8]byte{beside, beside, beside, beside, beside, beside, beside, beside}
				eight[place] = byte(b)
				if got := ordinary(binary.LittleEndian.Uint64(eight[:])); got == special {
					t.Fatalf("%v is ordinary: %v", eight, got)
				}
				text := append(append([]byte{'"', 'x'}, eight[:]...), '"')
				if b < 0x80 && beside < 0x80 && (Check(text, Limits{}) == nil) != json.Valid(text) {
					t.Fatalf("%q is JSON: %v", text, json.Valid(text))
				}
			}
		}
	}
}
