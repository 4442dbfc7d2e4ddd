package credential

import (
	"strings"
	"testing"
)

func TestConceal(t *testing.T) {
	t.Parallel()
	key := "sk-" + strings.Repeat("a1B2c3D4", 5)
	for in, want := range map[string]string{
		`{"city":"Bern","n":[1,2.50,true,null]}`:              `{"city":"Bern","n":[1,2.50,true,null]}`,
		`{"token":"short"}`:                                   `{"token":"[redacted]"}`,
		`{"apiKey":"x","Authorization":["Bearer y"],"pin":4}`: `{"apiKey":"[redacted]","Authorization":["[redacted]"],"pin":4}`,
		`{"password":12345}`:                                  `{"password":"[redacted]"}`,
		`{"token":"{{token}}","secret":""}`:                   `{"token":"{{token}}","secret":""}`,
		`{"a":{"b":["say ` + key + `"]}}`:                     `{"a":{"b":["[redacted]"]}}`,
		`{"url":"https://u:hunter22secret@x.org/"}`:           `{"url":"[redacted]"}`,
		`{"body":"{\"client_secret\":\"Zx9kQ2mP7vL4nR8t\"}"}`: `{"body":"[redacted]"}`,
		`no JSON`: `"[redacted]"`,
		``:        ``,
	} {
		if got := string(Conceal([]byte(in))); got != want {
			t.Errorf("%s\n is %s\nwant %s", in, got, want)
		}
	}
}
