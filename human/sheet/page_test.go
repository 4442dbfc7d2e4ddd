package sheet

import (
	"encoding/json"
	"testing"

	"tandem/human/form/formtest"
	"tandem/payload"
)

// What people approve is shown as characters, in which nothing hides.
func TestPage_Values(t *testing.T) {
	t.Parallel()
	p := &Page{Lang: "en"}
	for name, c := range map[string]struct{ raw, want string }{
		"Plain":        {`[1]`, "[\n  1\n]"},
		"Escapes":      {`["a \u0026 b","\u4e2d\u6587","\ud83d\ude00"]`, "[\n  \"a & b\",\n  \"中文\",\n  \"😀\"\n]"},
		"OwnOfJSON":    {`["\u0022","\u005c","\\u0026","\n","\u0000","\u000a"]`, "[\n  \"\\u0022\",\n  \"\\u005c\",\n  \"\\\\u0026\",\n  \"\\n\",\n  \"\\u0000\",\n  \"\\u000a\"\n]"},
		"Unseen":       {`["\u200b","\u202e"]`, "[\n  \"\\u200b\",\n  \"\\u202e\"\n]"},
		"HalfOfAPair":  {`["\ud83d","\ud83dx"]`, "[\n  \"\\ud83d\",\n  \"\\ud83dx\"\n]"},
		"TurnedAround": {"[\"pay \u202e001\"]", "[\n  \"pay \\u202e001\"\n]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := p.Show(json.RawMessage(c.raw), 1000); got.Code != c.want {
				t.Errorf("%s, want %s", got.Code, c.want)
			}
		})
	}
	shown, err := payload.Encode(p.Show(formtest.Value(), 1000))
	if err != nil {
		t.Fatal(err)
	}
	formtest.Readable(t, string(shown))
	rows := p.Show(json.RawMessage("{\"to\":\"\u202eknab\",\"sum\":{\"a\":\"\\u003c\"}}"), 1000).Rows
	if len(rows) != 2 || rows[0].Value != `\u202eknab` || rows[0].Code || rows[1].Value != "{\n  \"a\": \"<\"\n}" || !rows[1].Code {
		t.Errorf("rows %+v", rows)
	}
	if got := p.Show(json.RawMessage("\"\u2066a\""), 1000).Text; got != `\u2066a` {
		t.Errorf("text %q", got)
	}
}

func TestControl_Blame(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{"it is required": "It is required.", "Such as EU-42.": "Such as EU-42.", "请选择一项。": "请选择一项。", "请按格式填写": "请按格式填写"} {
		if got := (&Control{Error: message}).Blame(); got != want {
			t.Errorf("%q is told as %q, want %q", message, got, want)
		}
	}
}
