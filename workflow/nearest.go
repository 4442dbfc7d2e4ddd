package workflow

import (
	"tandem/fault"
	"tandem/text"
)

// suggestion is the tail of a message that offers the nearest name, or else another remedy.
func suggestion(name string, candidates []string, otherwise text.Text) text.Text {
	if n := fault.Nearest(name, candidates); n != "" {
		return text.Of("; did you mean %q?", n)
	}
	return text.Of("; %s", otherwise)
}
