package route

import (
	"fmt"
	"strconv"
	"strings"

	"tandem/fault"
)

// DidYouMean offers the most similar name, if one is.
func DidYouMean(name string, known []string) string {
	if n := fault.Nearest(name, known); n != "" {
		return fmt.Sprintf("; did you mean %q?", n)
	}
	return ""
}

// Quoted lists names for people, the first few of them.
func Quoted(names []string) string {
	const most = 5
	var out []string
	for _, n := range names[:min(len(names), most)] {
		out = append(out, strconv.Quote(n))
	}
	text := strings.Join(out, ", ")
	if n := len(names) - most; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// Nearest is the hint to a name that was meant, or to those that there are.
func Nearest(name string, known []string) string {
	if hint := DidYouMean(name, known); hint != "" {
		return hint
	}
	if len(known) == 0 {
		return ", which has none"
	}
	return "; there are " + Quoted(known)
}
