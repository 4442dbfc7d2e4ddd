package hypertext

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// Words are the words of a short text with marks in it, as chats write it: without its marks, with something between in the place of each,
// and without the elements that are named, with all that stands in them. One of those that does not end holds all that follows.
func Words(marked, between string, without ...string) string {
	var out strings.Builder
	inside := 0
	for z := html.NewTokenizer(strings.NewReader(marked)); ; {
		switch kind := z.Next(); kind {
		case html.ErrorToken:
			return out.String()
		case html.TextToken:
			if inside == 0 {
				out.WriteString(html.UnescapeString(string(z.Raw())))
			}
		case html.StartTagToken, html.EndTagToken:
			name, _ := z.TagName()
			switch left := slices.Contains(without, string(name)); {
			case left && kind == html.StartTagToken:
				inside++
			case left && inside > 0:
				inside--
			}
			out.WriteString(between)
		default:
			out.WriteString(between)
		}
	}
}
