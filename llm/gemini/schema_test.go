package gemini

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestSimplify(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		schema, want string
		warnings     int
	}{
		"KeepsWhatTheServiceKnows": {
			`{"type":"object","properties":{"a":{"type":["string","null"],"enum":["x","y"],"description":"d"},"b":{"type":"integer","minimum":1,"maximum":9}},"required":["a"],"additionalProperties":false}`,
			`{"type":"object","properties":{"a":{"type":["string","null"],"enum":["x","y"],"description":"d"},"b":{"type":"integer","minimum":1,"maximum":9}},"required":["a"],"additionalProperties":false}`, 0,
		},
		"DropsLimits": {
			`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"a":{"type":"string","pattern":"^x","minLength":2,"format":"hostname","default":"q"},"n":{"type":"number","exclusiveMinimum":0}},"minProperties":1}`,
			`{"type":"object","properties":{"a":{"type":"string"},"n":{"type":"number"}}}`, 0,
		},
		"ReplacesReferences": {
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/x","description":"mine"},"b":{"type":"array","items":{"$ref":"#/definitions/y~1z"}}},"$defs":{"x":{"$ref":"#/$defs/w"},"w":{"type":"string","description":"theirs"}},"definitions":{"y/z":{"type":"boolean"}}}`,
			`{"type":"object","properties":{"a":{"type":"string","description":"mine"},"b":{"type":"array","items":{"type":"boolean"}}}}`, 0,
		},
		"CutsRecursion": {
			`{"type":"object","properties":{"next":{"$ref":"#"},"name":{"type":"string"}}}`,
			`{"type":"object","properties":{"next":{"type":"object","properties":{"next":{"type":"object"},"name":{"type":"string"}}},"name":{"type":"string"}}}`, 1,
		},
		"CutsRecursionInCircles": {
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`,
			`{"type":"object","properties":{"a":{}}}`, 1,
		},
		"NamesLostReferences": {`{"type":"object","properties":{"a":{"$ref":"https://example.com/x"}}}`, `{"type":"object","properties":{"a":{}}}`, 1},
		"JoinsAllOf": {
			`{"allOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{"const":3}},"required":["b"]}]}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"enum":[3]}},"required":["a","b"]}`, 0,
		},
		"KeepsAlternatives": {
			`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]},"b":true,"c":{"enum":[true,"x"]}}}`,
			`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]},"b":{},"c":{}}}`, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, warnings, err := simplify(json.RawMessage(c.schema))
			if err != nil {
				t.Fatal(err)
			}
			data, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			var plain any
			if err := json.Unmarshal(data, &plain); err != nil {
				t.Fatal(err)
			}
			checkJSON(t, plain, c.want)
			if len(warnings) != c.warnings {
				t.Errorf("the warnings are %q, want %d", warnings, c.warnings)
			}
		})
	}
}

// TestSimplify_IsBounded: each definition has the next one twice, which would make 2^40 schemas.
func TestSimplify_IsBounded(t *testing.T) {
	t.Parallel()
	var defs []string
	for i := range 40 {
		defs = append(defs, fmt.Sprintf(`"d%d":{"type":"object","properties":{"a":{"$ref":"#/$defs/d%d"},"b":{"$ref":"#/$defs/d%d"}}}`, i, i+1, i+1))
	}
	schema := `{"type":"object","properties":{"x":{"$ref":"#/$defs/d0"}},"$defs":{` + strings.Join(defs, ",") + `,"d40":{"type":"string"}}}`
	got, warnings, err := simplify(json.RawMessage(schema))
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(got)
	if err != nil || len(data) > 1<<20 {
		t.Errorf("the schema became %d bytes (%v)", len(data), err)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "too many parts") {
		t.Errorf("the warnings are %q", warnings)
	}
}

func TestSimplify_RefusesWhatIsNoObject(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{`null`, `[]`, `true`, `{"type":"string"}`, `{`} {
		if got, _, err := simplify(json.RawMessage(schema)); err == nil {
			t.Errorf("%s became %v", schema, got)
		}
	}
}
