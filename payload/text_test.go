package payload_test

import (
	"encoding/json"
	"strings"
	"testing"

	"tandem/payload"
)

func TestText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, raw, text, json string }{
		{"ASCII", `{"\u540d":"\u5f20\u003cb\u003e \u0026 \ud83d\ude00"}`, `{"名":"张<b> & 😀"}`, ""},
		{"Plain", `{"名":"张"}`, `{"名":"张"}`, ""},
		{"Spaced", "{ \"a b\" :\n [1, 2.50] }", `{"a b":[1,2.50]}`, ""},
		{"Words", `"\u5f20 \"三\" \\ \n"`, "张 \"三\" \\ \n", `"张 \"三\" \\ \n"`},
		{"PlainWords", `"a b"`, `a b`, `"a b"`},
		{"KeepsWhatIsJSONs", `{"a":"\u0022\u005c\u000a\u0007\"\\\n\/"}`, `{"a":"\u0022\u005c\u000a\u0007\"\\\n/"}`, ""},
		{"KeepsWhatIsNotSeen", `["\u202e\u2028\ufeff\u0000\ue000","\u3000\u200d"]`, "[\"\\u202e\\u2028\\ufeff\\u0000\\ue000\",\"\u3000\u200d\"]", ""},
		{"KeepsHalfPairs", `["\ud83d","\ud83dx\ude00","\ud83d\ud83d\ude00"]`, `["\ud83d","\ud83dx\ude00","\ud83d😀"]`, ""},
		{"BackslashBeforeU", `"\\u5f20"`, `\u5f20`, `"\\u5f20"`},
		{"NotJSON", `{"a": \`, `{"a": \`, ""},
		{"Number", ` 1e3 `, `1e3`, ""},
		{"Nothing", ``, ``, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.json == "" {
				c.json = c.text
			}
			if got := payload.Text([]byte(c.raw)); got != c.text {
				t.Errorf("Text %q; want %q", got, c.text)
			}
			if got := payload.JSON([]byte(c.raw)); got != c.json {
				t.Errorf("JSON %q; want %q", got, c.json)
			}
		})
	}
}

func TestIndented(t *testing.T) {
	t.Parallel()
	if got := payload.Indented([]byte(`{"\u540d":["\u003c"]}`)); got != "{\n  \"名\": [\n    \"<\"\n  ]\n}" {
		t.Errorf("indented %q", got)
	}
	if got := payload.Indented([]byte(`{"a`)); got != `{"a` {
		t.Errorf("what is not JSON became %q", got)
	}
	raw, err := payload.Marshal(map[string]any{"a": "<&>", "b": json.RawMessage(`{"c": "\u5f20"}`)})
	if err != nil || string(raw) != `{"a":"<&>","b":{"c":"张"}}` {
		t.Errorf("marshalled %s, %v", raw, err)
	}
}

// FuzzReadable: whatever is made readable is the same value.
func FuzzReadable(f *testing.F) {
	for _, seed := range []string{`{"\u540d":"\ud83d\ude00\ud83d"}`, `"\\\u005c\u0022"`, `[1, "\/"]`, `"\ud83d\u0041"`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if !json.Valid([]byte(raw)) {
			return
		}
		for _, text := range []string{string(payload.Readable([]byte(raw))), payload.JSON([]byte(raw)), payload.Indented([]byte(raw))} {
			var before, after any
			if err := json.Unmarshal([]byte(raw), &before); err != nil {
				return // a number that Go cannot hold
			}
			if err := json.Unmarshal([]byte(text), &after); err != nil {
				t.Fatalf("%q became %q: %v", raw, text, err)
			}
			a, _ := json.Marshal(before)
			b, _ := json.Marshal(after)
			if string(a) != string(b) {
				t.Fatalf("%q became %q", raw, text)
			}
			if again := payload.Readable([]byte(text)); string(again) != text && !strings.Contains(text, `\`) {
				t.Fatalf("%q is not readable at once", text)
			}
		}
	})
}
