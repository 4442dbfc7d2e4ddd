package node

import (
	"encoding/json"
	"testing"
)

func TestWithoutAliases(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ payload, result, want string }{
		"unchanged, other digits": {`{"a": 1.0, "b": 1e2}`, `{"a":1,"b":100.0,"value":{"a":1,"b":100},"data":{"a":1,"b":100},"output":{"a":1,"b":100}}`, `{"a": 1.0, "b": 1e2}`},
		"a field more":            {`{"a":1}`, `{"value":{"a":1},"b":2,"data":{"a":1},"output":{"a":1},"a":1}`, `{"b":2,"a":1}`},
		"a field changed":         {`{"a":1}`, `{"a":2,"value":{"a":1},"data":{"a":1},"output":{"a":1}}`, `{"a":2}`},
		"names of its own":        {`{"data":1,"output":2}`, `{"data":1,"output":2,"value":{"data":1,"output":2}}`, `{"data":1,"output":2}`},
		"all names of its own":    {`{"data":1,"output":2,"value":3}`, `{"data":1,"output":2,"value":3}`, `{"data":1,"output":2,"value":3}`},
		"no fields":               {`{}`, `{"value":{},"data":{},"output":{}}`, `{}`},
		"a list":                  {`[1, 2]`, `{"value":[1,2],"data":[1,2],"output":[1,2]}`, `[1, 2]`},
		"null":                    {``, `{"value":null,"data":null,"output":null}`, `null`},
		"a text and a field":      {`"x"`, `{"value":"x","data":"x","output":"x","n":1}`, `{"value":"x","data":"x","output":"x","n":1}`},
		"one name":                {`{"a":1}`, `{"data":{"a":1}}`, `{"data":{"a":1}}`},
		"a name with more in it":  {`{"a":1}`, `{"a":1,"value":5,"data":{"a":1},"output":{"a":1}}`, `{"a":1,"value":5,"data":{"a":1},"output":{"a":1}}`},
		"without a field":         {`{"a":1,"b":2}`, `{"b":2,"value":{"a":1,"b":2},"data":{"a":1,"b":2},"output":{"a":1,"b":2}}`, `{"b":2}`},
		"the one that was added":  {`{"data":1,"output":2}`, `{"value":{"data":1,"output":2}}`, `{"value":{"data":1,"output":2}}`},
		"something else":          {`{"a":1}`, `[1]`, `[1]`},
	} {
		if got := withoutAliases(json.RawMessage(c.result), json.RawMessage(c.payload)); string(got) != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
