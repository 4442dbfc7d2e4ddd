package human

import (
	"regexp"
	"strings"
	"tandem/human/replies"
)

// What messages hold and replies quote. Clients break lines and mark them as quoted, so of a secret all characters go, whatever stands between them.
// Scanners write addresses anew, so what still looks like that of a response page goes as a whole. read-only
var (
	quotedLink   = regexp.MustCompile(`(?i)\S*respond[^\s\pL][^\s]{20,}`)
	quotedSecret = regexp.MustCompile(`tdm_(?:[\s>|=]*[A-Za-z0-9_-]){1,43}`)
	quotedToken  = regexp.MustCompile(`\[ref:\s*[A-Za-z0-9_-]+\s*\]`)
)

// withoutLinks takes from a reply the links that it quotes: they answer in the name of who got them, and what is kept of a reply is read by others.
func withoutLinks(text string) string {
	text = quotedSecret.ReplaceAllString(text, "[link]")
	text = quotedLink.ReplaceAllString(text, "[link]")
	return quotedToken.ReplaceAllString(text, "[ref]")
}

// ownWords is what somebody wrote themselves, without what they quote; all of it where that is nothing.
func ownWords(text string) string {
	if own := strings.TrimSpace(replies.OwnWords(text)); own != "" {
		return own
	}
	return strings.TrimSpace(text)
}
