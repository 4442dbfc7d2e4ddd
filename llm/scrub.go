package llm

import (
	"strings"

	"tandem/text"
)

// maxSaid is how many bytes of what a service says are passed on.
const maxSaid = 1000

// Scrub keeps a key out of what a service says, and the text short. The key goes first, so that no half of it is left.
func Scrub(said, key string) string {
	if key != "" {
		said = strings.ReplaceAll(said, key, "***")
	}
	return text.ClipBytes(said, maxSaid)
}
