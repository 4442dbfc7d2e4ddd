package sandbox

import (
	"errors"
	"testing"
)

func TestMarshal(t *testing.T) {
	t.Parallel()
	texts := []string{
		`null`, `true`, `false`, `0`, `-1`, `2147483648`, `-123456789012345678901234567890`, `1.5`, `-0.25`, `1e+300`, `1.0`,
		`""`, `"ü😀"`, `"a\"b\\\n\t\u0001"`, `[]`, `{}`, `[[],{}]`, `{"a":1,"b":[1,2,{"a":"a"}],"c":{"a":null}}`,
	}
	t.Run("RoundTrip", func(t *testing.T) {
		t.Parallel()
		for _, text := range texts {
			b, ok := appendValue(nil, []byte(text), map[string]uint32{})
			if !ok {
				t.Errorf("%s was not translated", text)
				continue
			}
			if got, err := appendJSON(nil, b, 1<<10); err != nil || string(got) != text {
				t.Errorf("%s came back as %s, %v", text, got, err)
			}
		}
	})
	t.Run("RefusesDamage", func(t *testing.T) {
		t.Parallel()
		for _, text := range texts {
			b, _ := appendValue(nil, []byte(text), map[string]uint32{})
			for n := range b {
				if got, err := appendJSON(nil, b[:n], 1<<10); err == nil {
					t.Errorf("the first %d bytes of %q gave %s", n, b, got)
				}
			}
		}
		// A list that holds itself, a reference to nothing, lengths beyond the end.
		for _, b := range []string{"\xdb\x01\x00\x00\x00r\x00\x00\x00\x00", "r\x05\x00\x00\x00", "[\xff\xff\xff\x7f", "l\x00\x00\x00\x80", "u\xff\xff\xff\xff", "s\x00\x00\x00\x00"} {
			if got, err := appendJSON(nil, []byte(b), 1<<10); err == nil {
				t.Errorf("%q gave %s", b, got)
			}
		}
	})
	t.Run("StopsAtTheLimit", func(t *testing.T) {
		t.Parallel()
		b, _ := appendValue(nil, []byte(`["0123456789","0123456789"]`), map[string]uint32{})
		if _, err := appendJSON(nil, b, 20); !errors.Is(err, errTooLong) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("LeavesDeepNestingAlone", func(t *testing.T) {
		t.Parallel()
		deep := make([]byte, 2*(marshalDepth+2))
		for i := range deep {
			deep[i] = "[]"[2*i/len(deep)]
		}
		if _, ok := appendValue(nil, deep, map[string]uint32{}); ok {
			t.Error("it was translated")
		}
	})
}
