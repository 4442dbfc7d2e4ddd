package human

import (
	"encoding/json"
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

// saidOf is the answer that a plain yes or no in prose is to a question that other parts ask with yes or no. Others have to be filled in: a word
// does not tell whether something was done, or by how much a budget is raised.
func saidOf(purpose string, j replies.Judgement) (json.RawMessage, bool) {
	yes := j.Classification == Confirmed
	if !yes && j.Classification != Rejected {
		return nil, false
	}
	switch purpose {
	case PurposeConfirm:
		return json.RawMessage(map[bool]string{true: `{"confirm":true}`, false: `{"confirm":false}`}[yes]), true
	case PurposeDrift, PurposeActivation:
		return json.RawMessage(map[bool]string{true: `{"accept":true}`, false: `{"accept":false}`}[yes]), true
	}
	return nil, false
}
