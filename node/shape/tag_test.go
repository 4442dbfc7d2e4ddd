package shape

import (
	"reflect"
	"testing"
)

// A tag that is taken apart says what it says to package reflect, also where its end cannot be read.
func TestTag(t *testing.T) {
	t.Parallel()
	for _, raw := range []reflect.StructTag{
		``, ` `, `json:"a"`, `json:"a,omitempty" doc:"the \"name\" of it: short" zh:"名称：它的名字" required:"true"`, ` json:"a"  doc:""   zh:"x" `,
		`json:"a" json:"b"`, `json:"a" doc`, `json:"a" doc:x zh:"y"`, `json:"a" doc:"unfinished`, `json:"a"doc:"b"`,
	} {
		read := readTag(raw)
		for _, name := range []string{"json", "doc", "zh", "required", "enum", ""} {
			if got, want := read.get(name), raw.Get(name); got != want {
				t.Errorf("%s of %q is %q, want %q", name, raw, got, want)
			}
		}
	}
}
