package handed

import (
	"encoding/json"
	"testing"
)

// What a conversion hands on unchanged is the payload as it was written, so that it can be kept once.
func TestAsGiven(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ payload, result, want string }{
		"other digits":        {`{"a": 1.0, "b": 1e2}`, `{"a":1,"b":100.0}`, `{"a": 1.0, "b": 1e2}`},
		"another order":       {`{"a":1,"b":2}`, `{"b":2,"a":1}`, `{"a":1,"b":2}`},
		"a field more":        {`{"a":1}`, `{"a":1,"b":2}`, `{"a":1,"b":2}`},
		"a field changed":     {`{"a":1}`, `{"a":2}`, `{"a":2}`},
		"a list":              {`[1, 2]`, `[1,2]`, `[1, 2]`},
		"a copy of its names": {`[1, 2]`, `{"value":[1,2],"data":[1,2],"output":[1,2]}`, `[1, 2]`},
		"its names and more":  {`"x"`, `{"value":"x","data":"x","output":"x","n":1}`, `{"value":"x","data":"x","output":"x","n":1}`},
		"names of an object":  {`{"a":1}`, `{"value":{"a":1},"data":{"a":1},"output":{"a":1}}`, `{"value":{"a":1},"data":{"a":1},"output":{"a":1}}`},
		"nothing":             {``, `null`, `null`},
		"something else":      {`{"a":1}`, `[1]`, `[1]`},
	} {
		if got := AsGiven(json.RawMessage(c.result), json.RawMessage(c.payload)); string(got) != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
