package payload_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"tandem/payload"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", payload.MaxDepth)
	var names []string
	for n := range 40 {
		names = append(names, fmt.Sprintf(`"k%d":%d`, n, n))
	}
	manyKeys := strings.Join(names, ",")
	shut := strings.Repeat("]", payload.MaxDepth)
	for _, c := range []struct {
		name, text   string
		limits       payload.Limits
		path, reason string
		syntax       bool
	}{
		{name: "Plain", text: ` {"a": [1, "é", null]} `},
		{name: "EqualKeys", text: `{"a":1,"a":2}`},
		{name: "EqualKeysRefused", text: `{"inputs":[{"order":{"total":1,"x":{"total":2},"\u0074otal":3}}]}`, limits: payload.Limits{Unique: true}, path: "inputs[0].order.total", reason: "stands twice"},
		{name: "EqualKeysOfMany", text: `{"a":{` + manyKeys + `,"k7":1}}`, limits: payload.Limits{Unique: true}, path: "a.k7", reason: "stands twice"},
		{name: "DifferentKeys", text: `{"a":{"a":{` + manyKeys + `}},"b":[{"a":1},{"a":1}],"A":1,"":1}`, limits: payload.Limits{Unique: true}},
		{name: "AtTheDepth", text: deep + shut},
		{name: "TooDeep", text: `{"inputs":{"a":[0,` + deep + shut + `]}}`, path: "inputs.a[1][0]", reason: "nested more than 1000 levels"},
		{name: "OwnDepth", text: `[[1]]`, limits: payload.Limits{MaxDepth: 2}, path: "[0][0]", reason: "nested more than 2 levels"},
		{name: "NotUTF8", text: "{\"inputs\":{\"b\":[1,\"x\xffy\"]}}", path: "inputs.b[1]", reason: "UTF-8 at byte 20"},
		{name: "KeyNotUTF8", text: "{\"inputs\":{\"\xff\":1}}", path: "inputs", reason: "UTF-8"},
		{name: "LongNumber", text: `{"n":` + strings.Repeat("9", payload.MaxNumber+1) + `}`, path: "n", reason: "characters"},
		{name: "HugeNumber", text: `{"n":[1e99999]}`},
		{name: "HugeNumberRefused", text: `{"n":[1.7e308,-1e309]}`, limits: payload.Door(), path: "n[1]", reason: "too large to reckon with"},
		{name: "ManyDigitsRefused", text: `{"n":` + strings.Repeat("9", 320) + `}`, limits: payload.Door(), path: "n", reason: "too large to reckon with"},
		{name: "SmallNumber", text: `{"n":[1e-99999,0.1,` + strings.Repeat("9", 308) + `]}`, limits: payload.Door()},
		{name: "AtTheKeys", text: `{"a":{"b":1}}`, limits: payload.Limits{MaxKeys: 2}},
		{name: "TooManyKeys", text: `{"a":[{"b":1},{"c":1}]}`, limits: payload.Limits{MaxKeys: 2}, path: "a[1]", reason: "more than 2 keys"},
		{name: "AtTheBytes", text: `"ab"`, limits: payload.Limits{MaxBytes: 4}},
		{name: "TooManyBytes", text: `"abc"`, limits: payload.Limits{MaxBytes: 4}, reason: "5 bytes; at most 4"},
		{name: "LongNames", text: `{"` + strings.Repeat("k", 100) + `":{"x":"` + "\xff" + `"}}`, path: strings.Repeat("k", 64) + "….x", reason: "UTF-8"},
		{name: "NotJSON", text: `{"a":[1,}`, path: "a[1]", reason: "value was expected", syntax: true},
		{name: "NotUTF8OutsideOfStrings", text: "{\"a\":\xff}", path: "a", reason: "value was expected", syntax: true},
		{name: "Nothing", text: ``, reason: "ends too early", syntax: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := payload.Check([]byte(c.text), c.limits)
			normal, nerr := payload.Normalize([]byte(c.text), c.limits)
			if (err == nil) != (nerr == nil) || (err == nil) != (normal != nil) {
				t.Fatalf("Check says %v, Normalize %.40s, %v", err, normal, nerr)
			}
			if c.reason == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			wrong, ok := errors.AsType[*payload.Error](err)
			if !ok || wrong.Path != c.path || !strings.Contains(wrong.Reason, c.reason) || wrong.Syntax != c.syntax {
				t.Errorf("error %+v; want %q at %q, syntax %v", wrong, c.reason, c.path, c.syntax)
			}
		})
	}
}

func TestError_Field(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]string{{"inputs", "a.b", "inputs.a.b"}, {"inputs", "[1].b", "inputs[1].b"}, {"inputs", "", "inputs"}, {"", "a", "a"}} {
		if got := (&payload.Error{Path: c[1]}).Field(c[0]); got != c[2] {
			t.Errorf("%q below %q is %q; want %q", c[1], c[0], got, c[2])
		}
	}
}

func TestLastKeys(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{`{"a": 1, "b": 2}`, `{"a": 1, "b": 2}`},
		{`[{"a":1.50,"b":{"c":1,"c":[2,"<"]},"\u0061":1e400}]`, `[{"a":1e400,"b":{"c":[2,"<"]}}]`},
		{`{"a":1,"a":`, `{"a":1,"a":`},
		{`"{"`, `"{"`},
	} {
		if got := payload.LastKeys([]byte(c[0])); string(got) != c[1] {
			t.Errorf("%s became %s; want %s", c[0], got, c[1])
		}
	}
}

// Strings are read eight bytes at a time: what matters in them is found wherever it stands.
func TestCheck_EveryPlaceInAString(t *testing.T) {
	t.Parallel()
	for length := range 40 {
		for at := range length {
			for _, c := range []struct {
				put  string
				fine bool
			}{{"x", true}, {"\x7f", true}, {"é", true}, {"\\n", true}, {"\x00", false}, {"\x1f", false}, {"\n", false}, {"\\x", false}, {"\"", false}, {"\xff", false}} {
				text := `["` + strings.Repeat("a", at) + c.put + strings.Repeat("a", length-at) + `"]`
				if err := payload.Check([]byte(text), payload.Limits{}); (err == nil) != c.fine {
					t.Errorf("%q: %v", text, err)
				}
			}
		}
	}
}
