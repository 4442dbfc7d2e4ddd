package payload_test

import (
	"strings"
	"testing"

	"tandem/payload"
)

func TestSchema(t *testing.T) {
	t.Parallel()
	schema, err := payload.CompileSchema([]byte(`{"type":"object","required":["a","b"],"properties":{"l":{"items":{"type":"integer"}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	value, err := payload.Decode([]byte(`{"b":1,"l":[1,"x",2.5]}`))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, p := range schema.Problems("in", value) {
		found = append(found, p.Path+" "+p.Rule+" "+strings.Join(p.Missing, ","))
	}
	if got := strings.Join(found, "; "); got != "in required in.a; in.l[1] type ; in.l[2] type " {
		t.Errorf("problems %q", got)
	}
	wild, err := payload.Decode([]byte(`{"a":1e999999999,"b":1}`))
	if err != nil {
		t.Fatal(err)
	}
	if p := schema.Problems("", wild); len(p) != 1 || p[0].Wild != "1e999999999" || p[0].String() != "the number 1e999999999 is out of range" {
		t.Errorf("a wild number: %+v", p)
	}
	for text, want := range map[string]string{`{"type":"nothing"}`: "type: value must be one of", `{"$ref":"file:///etc/passwd"}`: "outside of the schema", `{`: "not valid JSON", `{"minimum":1e999}`: "out of range"} {
		if _, err := payload.CompileSchema([]byte(text)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "urn:") {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
	}
}

// TestCompileSchema_SaysWhere: what is wrong with a schema is said with its place, in words without addresses.
func TestCompileSchema_SaysWhere(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{"type":"object","properties":{"a":{"type":"numbr"}}}`: "properties.a.type: value must be one of",
		`{"required":1}`: "required: got number, want array",
		`7`:              "the schema: got number",
	} { // order does not matter: each is for itself
		_, err := payload.CompileSchema([]byte(raw))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "://") {
			t.Errorf("%s: %v, want %q", raw, err, want)
		}
	}
}
