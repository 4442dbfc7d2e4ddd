package scripted

import (
	"context"
	"unicode"

	"tandem/llm"
)

// stream tells a message piece by piece: thoughts, then text, then calls.
func stream(ctx context.Context, m llm.Message, sink func(llm.Delta)) error {
	for piece := range words(m.Reasoning) {
		if ctx.Err() != nil {
			return canceled(ctx)
		}
		sink(llm.Delta{Reasoning: piece})
	}
	for piece := range words(m.Content) {
		if ctx.Err() != nil {
			return canceled(ctx)
		}
		sink(llm.Delta{Text: piece})
	}
	for i, call := range m.ToolCalls {
		if ctx.Err() != nil {
			return canceled(ctx)
		}
		// The arguments of a call come after its name, like those of real services.
		sink(llm.Delta{ToolCall: &llm.ToolCallDelta{Index: i, ID: call.ID, Name: call.Name}})
		for piece := range words(call.Arguments) {
			if ctx.Err() != nil {
				return canceled(ctx)
			}
			sink(llm.Delta{ToolCall: &llm.ToolCallDelta{Index: i, Arguments: piece}})
		}
	}
	return nil
}

// words yields a text in pieces: words with the spaces after them, and the characters of scripts that have no spaces one
// by one. Together they are the text.
func words(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		start, spaced := 0, false
		for i, r := range text {
			alone := unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
			if i > start && (alone || spaced && !unicode.IsSpace(r)) {
				if !yield(text[start:i]) {
					return
				}
				start = i
			}
			spaced = alone || unicode.IsSpace(r)
		}
		if start < len(text) {
			yield(text[start:])
		}
	}
}
