package workflow

import "tandem/fault"

// suggestion is the tail of a message that offers the nearest name, or else another remedy.
func suggestion(name string, candidates []string, otherwise string) string {
	if n := fault.Nearest(name, candidates); n != "" {
		return "; did you mean \"" + n + "\"?"
	}
	return "; " + otherwise
}
