package text_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"tandem/text"
)

// A text that was kept says in every language what it said before.
func TestStored(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		t    text.Text
		want string
	}{
		{text.Of("Yes"), `{"text":"Yes"}`},
		{text.Of("Yes").For("to a warning"), `{"text":"Yes","context":"to a warning"}`},
		{text.Of("Reason: %s", "五 100%"), `{"text":"Reason: %s","args":["五 100%"]}`},
		{text.Of("%s or %s", text.Of("a list"), text.As("x")), `{"text":"%s or %s","args":[{"text":"a list"},{"text":"x","plain":true}]}`},
		{text.Of("Time left: %d min. This question ends at %s.", uint8(3), errors.New("noon")), `{"text":"Time left: %d min. This question ends at %s.","args":[3,"noon"]}`},
		{text.Of("nobody has answered within %s", 90*time.Second), `{"text":"nobody has answered within %s","args":["1m30s"]}`},
		{text.Of("%[2]d of %[1].1f", 2.0, uint64(1<<63)), `{"text":"%[2]d of %[1].1f","args":[2.0,9223372036854775808]}`},
		{text.Of("half of %.1f", 5.0), `{"text":"half of %.1f","args":[5.0]}`},
		{text.Beside("Delay", "延迟"), `{"text":"Delay","words":{"zh":"延迟"}}`},
		{text.As("Yes %s"), `{"text":"Yes %s","plain":true}`},
		{text.Paragraphs(text.Of("Yes"), text.Text{}, text.As("五")), `{"text":"%s\n\n%s","args":[{"text":"Yes"},{"text":"五","plain":true}],"plain":true}`},
		{text.Settled(func(language string) string { return "in " + language }), `{"text":"in en","words":{"en":"in en","zh":"in zh"}}`},
		{text.Text{}, `{"text":""}`},
	} {
		raw := c.t.Stored()
		if string(raw) != c.want {
			t.Errorf("kept %s; want %s", raw, c.want)
		}
		again, err := text.Read(raw)
		if err != nil || !again.Equal(c.t) {
			t.Errorf("read again: %q, %q (%v); want %q, %q", again.In("en"), again.In("zh"), err, c.t.In("en"), c.t.In("zh"))
		}
	}
	for _, raw := range []string{``, `[]`, `{"text":"%s","args":[nope]}`, `{"text":"%s","args":[{"text":1}]}`} {
		if got, err := text.Read([]byte(raw)); err == nil {
			t.Errorf("%s was read as %q", raw, got)
		}
	}
	later, err := text.Read(json.RawMessage(`{"text":"an older version said %d things","args":[3],"new":true}`))
	if err != nil || later.In("zh") != "an older version said 3 things" {
		t.Errorf("what no catalogue knows became %q (%v)", later.In("zh"), err)
	}
}
