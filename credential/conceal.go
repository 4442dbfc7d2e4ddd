package credential

import (
	"encoding/json"
	"strings"

	"tandem/payload"
)

// Conceal puts [Mark] into the place of what is probably a secret in a document that goes into a log: what stands under a name under which
// people write secrets, and texts that look like one wherever they stand. It needs no credential to have been opened, and may hide what is
// none. Placeholders stay, since they are not the value. What is not JSON becomes the mark as a whole.
func Conceal(document json.RawMessage) json.RawMessage {
	if len(document) == 0 {
		return document
	}
	if !json.Valid(document) {
		return payload.Quote(Mark)
	}
	return concealed("", document)
}

func concealed(name string, raw json.RawMessage) json.RawMessage {
	switch raw = json.RawMessage(strings.TrimSpace(string(raw))); raw[0] {
	case '{':
		var b strings.Builder
		b.WriteByte('{')
		for n, m := range payload.Members(raw) {
			if n > 0 {
				b.WriteByte(',')
			}
			b.Write(payload.Quote(m.Key))
			b.WriteByte(':')
			b.Write(concealed(m.Key, m.Value))
		}
		b.WriteByte('}')
		return json.RawMessage(b.String())
	case '[':
		var b strings.Builder
		b.WriteByte('[')
		for n, item := range payload.Items(raw) {
			if n > 0 {
				b.WriteByte(',')
			}
			b.Write(concealed(name, item))
		}
		b.WriteByte(']')
		return json.RawMessage(b.String())
	case '"':
		text := payload.Text(raw)
		if concealText(name, text) {
			return payload.Quote(Mark)
		}
	case 'n', 't', 'f':
	default: // a number
		if secretField(name) {
			return payload.Quote(Mark)
		}
	}
	return raw
}

// concealText says that a text is hidden.
func concealText(name, text string) bool {
	if secretField(name) {
		return strings.TrimSpace(filledLater.ReplaceAllString(text, "")) != ""
	}
	if what, _ := inlineText(name, text); !what.IsZero() {
		return true
	}
	what, _ := insideText(text)
	return !what.IsZero()
}
