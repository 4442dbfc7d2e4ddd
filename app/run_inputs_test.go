package app

import (
	"encoding/json"
	"testing"

	"tandem/fault"
)

func TestParseInputs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		base  string
		pairs []string
		want  string
	}{
		{"", nil, `{}`}, {"null", []string{"a=1"}, `{"a":1}`},
		{`{"z": 12345678901234567890, "a": 1.10}`, []string{"m=<b>", "b=1.10", `z={"y": 1, "x": 2}`}, `{"z":{"y":1,"x":2},"a":1.10,"m":"<b>","b":1.10}`},
		{"", []string{"b=x=y", "a=12345678901234567890", "b=2"}, `{"b":2,"a":12345678901234567890}`},
	} {
		got, err := ParseInputs(json.RawMessage(c.base), c.pairs)
		if err != nil || string(got) != c.want {
			t.Errorf("%s and %q: %s, %v; want %s", c.base, c.pairs, got, err, c.want)
		}
	}
	for base, pair := range map[string]string{"": "a", "{}": "=1", "[1]": "a=1"} {
		if _, err := ParseInputs(json.RawMessage(base), []string{pair}); fault.From(err).Code != fault.InvalidInput {
			t.Errorf("%s and %q: %v", base, pair, err)
		}
	}
}
