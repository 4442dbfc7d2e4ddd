package human

import (
	"tandem/engine"
	"tandem/fault"
	"tandem/text"
)

// maxDoubt is how much of an error a question shows, in bytes.
const maxDoubt = 2000

// doubt says what is known about an unknown outcome, if anything: an error may name what was sent, or what was done before.
func doubt(why engine.Doubt) (about text.Text, known bool) {
	began := text.Of("The node was interrupted at work, and its outcome is not known.")
	if why.Run != nil {
		began = text.Of("The outcome of the node is not known: %s.", errorText(why.Run))
	}
	var inquiry text.Text
	if why.Inquiry != nil {
		inquiry = text.Of("The service could not tell what became of it: %s.", errorText(why.Inquiry))
	}
	how := text.Of("Look where it would show, then answer: done (it was; give its result), not_done (do it now) or stop (let the node fail).")
	return text.Paragraphs(began, inquiry, how), why.Run != nil || why.Inquiry != nil
}

// errorText is what an error says, in the languages that it is said in, as far as there is room.
func errorText(e *fault.Error) text.Text {
	if words, err := text.Read(e.Words()); err == nil && !words.IsZero() {
		return text.Settled(func(language string) string { return text.Head(words.In(language), maxDoubt) })
	}
	return text.As(text.Head(e.Message, maxDoubt))
}
