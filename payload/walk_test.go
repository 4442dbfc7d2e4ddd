package payload

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestNormalize(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want, fails string }{
		{name: "Compacts", in: " { \"a b\" : [ 1 , \"x y\" ] }\n", want: `{"a b":[1,"x y"]}`},
		{name: "KeepsDigits", in: `[1.50, -0, 1e400, 123456789012345678901234567890]`, want: `[1.50,-0,1e400,123456789012345678901234567890]`},
		{name: "KeepsOrderAndEscapes", in: `{"b":"\u00e9\n","a":1}`, want: `{"b":"\u00e9\n","a":1}`},
		{name: "CutsOuterSpace", in: "\t\"x\" ", want: `"x"`},
		{name: "RefusesEmpty", in: "", fails: "ends too early"},
		{name: "RefusesTwoValues", in: "1 2", fails: "something follows"},
		{name: "RefusesInvalidUTF8", in: "\"\xff\"", fails: "UTF-8"},
		{name: "RefusesNUL", in: "\"a\x00b\"", fails: "NUL"},
		{name: "RefusesLoneNUL", in: "\x00", fails: "NUL"},
		{name: "RefusesControl", in: "\"a\nb\"", fails: "control character"},
		{name: "RefusesBadEscape", in: `"\x41"`, fails: "escape"},
		{name: "RefusesShortUnicodeEscape", in: `"\u12"`, fails: "hexadecimal"},
		{name: "RefusesLeadingZero", in: `01`, fails: "something follows"},
		{name: "RefusesBareMinus", in: `-`, fails: "digit"},
		{name: "RefusesHugeNumber", in: strings.Repeat("9", MaxNumber+1), fails: "characters"},
		{name: "RefusesDeepNesting", in: strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1), fails: "levels deep"},
		{name: "RefusesHostileNesting", in: strings.Repeat("[", 1<<20), fails: "levels deep"},
		{name: "TakesDeepNesting", in: strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth), want: strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth)},
		{name: "RefusesTrailingComma", in: `[1,]`, fails: "value was expected"},
		{name: "RefusesUnquotedKey", in: `{a:1}`, fails: "key in double quotes"},
		{name: "RefusesOpenString", in: `"abc`, fails: "does not end"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := Normalize([]byte(tt.in), Limits{})
			if tt.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fails) {
					t.Fatalf("got %.80s, error %v; want an error with %q", got, err, tt.fails)
				}
				return
			}
			if err != nil || string(got) != tt.want {
				t.Fatalf("got %.80s, error %v; want %.80s", got, err, tt.want)
			}
		})
	}
}

func TestWalk(t *testing.T) {
	t.Parallel()
	data := []byte(`{"a":{"b":[10,{"c":"x"},[7]]},"odd key":1,"é":2,"q\"t":3,"n":null,"0":{"1":"zero"},"dup":1,"dup":2,"":4,"a.b":5}`)
	tests := []struct{ path, want string }{
		{"a.b.0", "10"}, {"a.b[0]", "10"}, {"a.b.1.c", `"x"`}, {"a.b[1].c", `"x"`}, {"a.b[2][0]", "7"}, {`a["b"][ 1 ]['c']`, `"x"`},
		{`["odd key"]`, "1"}, {`['odd key']`, "1"}, {"é", "2"}, {`["q\"t"]`, "3"}, {`['q"t']`, "3"}, {"n", "null"}, {"0.1", `"zero"`},
		{"[0][1]", `"zero"`}, {"dup", "2"}, {`[""]`, "4"}, {`["a.b"]`, "5"}, {"a.b.3", ""}, {"a.b[-1]", "?"}, {"a.b.00", ""}, {"a.b.c", ""},
		{"a.x", ""}, {"n.x", ""}, {"a.b.99999999999999999999", ""}, {"a.", "?"}, {".a", "?"}, {"a..b", "?"}, {"a.[0]", "?"}, {"a[", "?"},
		{"a[x]", "?"}, {`a["x]`, "?"}, {`a["\z"]`, "?"}, {"", "?"}, {`["\u0061"].b[0]`, "10"}, {`["\ud800"]`, "?"},
	}
	for _, tt := range tests {
		t.Run(tt.path, func(t *testing.T) {
			t.Parallel()
			path, end, problem := ScanPath(tt.path, 0)
			if tt.want == "?" {
				if problem == "" && end == len(tt.path) {
					t.Fatalf("read as %q; want a problem", path.String())
				}
				return
			}
			if problem != "" || end != len(tt.path) {
				t.Fatalf("problem %q at %d", problem, end)
			}
			got, ok := path.In(data)
			if ok != (tt.want != "") || string(got) != tt.want {
				t.Fatalf("got %s, %v; want %q", got, ok, tt.want)
			}
			again, end, problem := ScanPath(path.String(), 0)
			if problem != "" || end != len(path.String()) || !slices.Equal(path, again) {
				t.Fatalf("written as %q it does not read the same: %s", path.String(), problem)
			}
		})
	}
}

// FuzzNormalize compares with encoding/json: what it takes we take, within the limits, and it means the same.
func FuzzNormalize(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5e3,"x\u00e9",null,true,false]}`, ` [ ] `, `"\ud800"`, `{"a":1,"a":2}`, `-0.0`, `[[[[]]]]`, "\"\x7f\"", `{"":{}}`, `{"a`, `{"a":`, `{"a":[`, `[1,`, `{,}`, `[,,]`, `{"a"`, `{"\\`, `[}`, " { \"a\" : 1 , \"b\" : [ 1 , 2 ] } "} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, m := range Members(data) { // of what is not JSON some is told, and nothing breaks
			Field(data, m.Key)
		}
		Items(data)
		got, err := Normalize(data, Limits{})
		if valid := json.Valid(data) && utf8.Valid(data); valid != (err == nil) {
			if valid && (strings.Contains(err.Error(), "levels deep") || strings.Contains(err.Error(), "characters")) {
				return
			}
			t.Fatalf("encoding/json says %v, we say %v", valid, err)
		}
		if err != nil {
			return
		}
		var want bytes.Buffer
		if err := json.Compact(&want, data); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want.Bytes()) {
			t.Fatalf("got %s; want %s", got, want.Bytes())
		}
		if end := skip(got, 0); end != len(got) {
			t.Fatalf("skip ends at %d of %d", end, len(got))
		}
		if got[0] == '{' {
			var fields map[string]json.RawMessage
			if err := json.Unmarshal(got, &fields); err != nil {
				t.Fatal(err)
			}
			mine := map[string]json.RawMessage{}
			for _, m := range Members(got) {
				mine[m.Key] = m.Value
				if v, ok := Field(got, m.Key); !ok || !bytes.Equal(v, m.Value) {
					t.Fatalf("field %q is %s, %v; want %s", m.Key, v, ok, m.Value)
				}
			}
			if !reflect.DeepEqual(fields, mine) {
				t.Fatalf("got %s; want %s", mine, fields)
			}
		}
	})
}

// TestSkipString_EveryEscape finds the end of every string of up to six pieces, of which some are escapes, and of strings that do not end.
func TestSkipString_EveryEscape(t *testing.T) {
	t.Parallel()
	pieces := []string{`a`, `\"`, `\\`}
	bodies := []string{""}
	for from := 0; len(bodies) < 1093; { // 1 + 3 + … + 3⁶
		upTo := len(bodies)
		for _, body := range bodies[from:upTo] {
			for _, piece := range pieces {
				bodies = append(bodies, body+piece)
			}
		}
		from = upTo
	}
	for _, body := range bodies {
		whole := `"` + body + `"`
		if end := skipString([]byte(whole+`,"b"`), 0); end != len(whole) {
			t.Errorf("the string %s ends at %d, want %d", whole, end, len(whole))
		}
		if open := `"` + body; skipString([]byte(open), 0) != len(open) {
			t.Errorf("the open string %s ends at %d, want %d", open, skipString([]byte(open), 0), len(open))
		}
	}
}

func TestWithField(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ object, key, value, want string }{
		{`{"z":12345678901234567890,"a":1.10}`, "m", `"x"`, `{"z":12345678901234567890,"a":1.10,"m":"x"}`},
		{`{"z":1, "a": {"y":1.10, "b":2}}`, "z", `[3]`, `{"z":[3],"a":{"y":1.10, "b":2}}`},
		{`{"a":1,"b":2,"a":3}`, "a", `4`, `{"a":4,"b":2}`},
		{`{}`, `q"`, `1`, `{"q\"":1}`}, {``, "a", `1`, `{"a":1}`}, {`[1]`, "a", `1`, `{"a":1}`}, {`null`, "a", `1`, `{"a":1}`},
	} {
		was := strings.Clone(c.object)
		if got := WithField([]byte(c.object), c.key, json.RawMessage(c.value)); string(got) != c.want || c.object != was {
			t.Errorf("%s with %s: %s; want %s", c.object, c.key, got, c.want)
		}
	}
}
