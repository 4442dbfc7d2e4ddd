package oauth

import (
	"encoding/json"
	"testing"
	"time"
)

func TestTokenAnswer(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]struct {
		life   time.Duration
		bearer bool
	}{
		`{"expires_in":3600}`:                       {time.Hour, true},
		`{"expires_in":"60","token_type":"BEARER"}`: {time.Minute, true},
		`{"expires_in":1e300,"token_type":"mac"}`:   {1e9 * time.Second, false},
		`{"expires_in":-1}`:                         {0, true},
		`{"expires_in":"NaN"}`:                      {0, true},
		`{"expires_in":null,"token_type":"bearer"}`: {0, true},
		`{}`: {0, true},
	} {
		var a TokenAnswer
		if err := json.Unmarshal([]byte(raw), &a); err != nil {
			t.Fatal(err)
		}
		if a.Life() != want.life || a.Bearer() != want.bearer {
			t.Errorf("%s: %s, %t; want %+v", raw, a.Life(), a.Bearer(), want)
		}
	}
	for token, want := range map[string]bool{"": false, "a.b-c": true, "a b": false, "a\n": false, "é": false} {
		if Sendable(token) != want {
			t.Errorf("%q can be sent: %t", token, !want)
		}
	}
}
