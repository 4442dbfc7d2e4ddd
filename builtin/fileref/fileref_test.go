package fileref

import (
	"testing"

	"tandem/node/nodetest"
)

// TestOpen_MediaTypes: the media type of a file stands in headers. What is not one, or would end a line there, is replaced by that of the name.
func TestOpen_MediaTypes(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		`text/html; charset=utf-8`:              "text/html; charset=utf-8",
		`Text/CSV; header=present`:              "Text/CSV; header=present",
		``:                                      "image/png",
		`text/plain;\r\n\r\nevil=1`:             "image/png",
		`text/plain;\n evil=1`:                  "image/png",
		`text/plain\r\nContent-Type: text/html`: "image/png",
		`text/plain;\tx=1`:                      "image/png",
	} {
		raw := []byte(`{"base64":"aGk=","name":"a.png","content_type":"` + given + `"}`)
		s, err := Open(t.Context(), nil, nodetest.NewCall(t, `{}`, ``), raw, "file", 10)
		if err != nil || s.ContentType != want {
			t.Errorf("%q: %+v, %v", given, s, err)
		}
	}
}
