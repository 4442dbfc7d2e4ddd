package route

import (
	"strconv"
	"strings"

	"tandem/fault"
	"tandem/text"
)

// DidYouMean offers the most similar name, if one is.
func DidYouMean(name string, known []string) text.Text {
	if n := fault.Nearest(name, known); n != "" {
		return text.Of("; did you mean %q?", n)
	}
	return text.Text{}
}

// Quoted lists names for people, the first few of them.
func Quoted(names []string) text.Text {
	const most = 5
	var out []string
	for _, n := range names[:min(len(names), most)] {
		out = append(out, strconv.Quote(n))
	}
	listed := strings.Join(out, ", ")
	if n := len(names) - most; n > 0 {
		return text.Of("%s and %d more", listed, n)
	}
	return text.As(listed)
}

// Nearest is the hint to a name that was meant, or to those that there are.
func Nearest(name string, known []string) text.Text {
	if hint := DidYouMean(name, known); !hint.IsZero() {
		return hint
	}
	if len(known) == 0 {
		return text.Of(", which has none")
	}
	return text.Of("; there are %s", Quoted(known))
}
