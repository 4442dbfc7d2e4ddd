package payload_test

import (
	"encoding/json"
	"strings"
	"testing"

	"tandem/payload"
)

func TestEncode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		v    any
		want string
	}{
		{"Raw", json.RawMessage(`{"b": "\u5f20"}`), `{"b": "\u5f20"}`},
		{"NoRaw", json.RawMessage(nil), `null`},
		{"RawInside", map[string]any{"a": json.RawMessage(`{"b": "\u5f20<"}`)}, `{"a":{"b":"\u5f20<"}}`},
		{"Text", "五 <b> & \"x\"", `"五 <b> & \"x\""`},
		{"Plain", "a b", `"a b"`},
		{"Digits", json.Number("1.50"), `1.50`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got, err := payload.Encode(c.v); err != nil || string(got) != c.want {
				t.Errorf("%s, %v; want %s", got, err, c.want)
			}
		})
	}
	if _, err := payload.Encode(map[string]any{"a": func() {}}); err == nil {
		t.Error("a function was written")
	}
	if got, err := payload.EncodeIndented(map[string]string{"a": "<"}); err != nil || string(got) != "{\n  \"a\": \"<\"\n}\n" {
		t.Errorf("indented %q, %v", got, err)
	}
}

func TestCanonical(t *testing.T) {
	t.Parallel()
	got, err := payload.Canonical([]byte(` {"b": [1.50, 1e400], "a": "\u5f20<"} `))
	if err != nil || string(got) != `{"a":"张<","b":[1.50,1e400]}` {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := payload.Canonical([]byte(`{} {}`)); !payload.Follows(err) {
		t.Errorf("two values: %v", err)
	}
	if !payload.Same([]byte(`{"a":1,"b":[2]}`), []byte(` {"b":[2], "a":1}`)) || payload.Same([]byte(`1`), []byte(`1.0`)) || payload.Same([]byte(`{`), []byte(`[`)) {
		t.Error("equal values are not the same, or others are")
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	var into struct {
		A any `json:"a"`
	}
	if err := payload.Read([]byte(`{"a":12345678901234567890.10,"b":1}`+"\n"), &into); err != nil || into.A != json.Number("12345678901234567890.10") {
		t.Errorf("%v, %v", into, err)
	}
	if err := payload.ReadKnown([]byte(`{"a":1,"b":1}`), &into); err == nil || payload.Follows(err) {
		t.Errorf("a field that is not known: %v", err)
	}
	for _, text := range []string{`{} x`, `1 2`, `{}{}`} {
		if _, err := payload.Decode([]byte(text)); !payload.Follows(err) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := payload.Decode(nil); err == nil || payload.Follows(err) {
		t.Errorf("nothing: %v", err)
	}
}

// FuzzAppendText: a text is written as encoding/json writes it, except for two line separators, which stay as they are.
func FuzzAppendText(f *testing.F) {
	for _, seed := range []string{"", "五 <b> & \"\\\b\f\n\r\t\x00\x1f\x7f", "\u2028\u2029\ufffd", "\xff\xc0a", "😀\ud7ff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := string(payload.Quote(text))
		var back string
		if err := json.Unmarshal([]byte(got), &back); err != nil || back != strings.ToValidUTF8(text, "\ufffd") {
			t.Fatalf("%q is read as %q, %v", text, back, err)
		}
		want, err := payload.Encode(text)
		if err != nil {
			t.Fatal(err)
		}
		if back == text && !strings.ContainsAny(text, "\u2028\u2029") && got != string(want) {
			t.Errorf("%s; want %s", got, want)
		}
	})
}
