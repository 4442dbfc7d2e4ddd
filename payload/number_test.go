package payload_test

import (
	"encoding/json"
	"testing"

	"tandem/payload"
)

func TestSameValue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{`{"b":1,"a":[1.10,true,null]}`, ` {"a":[1.1,true,null], "b":1e0}`, true},
		{`12345678901234567890`, `12345678901234567891`, false},
		{`{"n":12345678901234567890}`, `{"n":12345678901234567891}`, false},
		{`[1,2]`, `[2,1]`, false}, {`{"a":null}`, `{}`, false}, {`{"a":1}`, `{"b":1}`, false}, {`"1"`, `1`, false}, {`1`, `"1"`, false},
		{``, ``, true}, {``, `null`, false}, {`x`, `x`, true}, {`x`, `1`, false}, {`1`, `x`, false}, {`[]`, `{}`, false}, {`{}`, `[]`, false},
	} {
		if got := payload.SameValue([]byte(c.a), []byte(c.b)); got != c.same {
			t.Errorf("%s and %s: %t", c.a, c.b, got)
		}
	}
}

func TestMoreNumber(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b json.Number
		more bool
	}{
		{"2", "1", true}, {"1", "2", false}, {"1", "1", false}, {"1.10", "1.1", false}, {"1.11", "1.1", true}, {"-2", "-1", false},
		{"12345678901234567891", "12345678901234567890", true}, {"12345678901234567890", "12345678901234567891", false},
		{"-12345678901234567890", "-12345678901234567891", true}, {"1e999", "1", true}, {"1", "1e999", false},
	} {
		if got := payload.MoreNumber(c.a, c.b); got != c.more {
			t.Errorf("%s and %s: %t", c.a, c.b, got)
		}
	}
}
