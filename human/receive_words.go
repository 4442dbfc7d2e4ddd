package human

import (
	"encoding/json"
	"regexp"
	"strings"

	"tandem/human/replies"
)

// What messages hold and replies quote. Clients break lines and mark them as quoted, so all characters of a secret are removed,
// whatever stands between them. Scanners rewrite addresses, so whatever still looks like the address of a response page is
// removed as a whole. read-only
var (
	quotedLink   = regexp.MustCompile(`(?i)\S*respond[^\s\pL][^\s]{20,}`)
	quotedSecret = regexp.MustCompile(`tdm_(?:[\s>|=]*[A-Za-z0-9_-]){1,43}`)
	quotedToken  = regexp.MustCompile(`\[ref:\s*[A-Za-z0-9_-]+\s*\]`)
)

// withoutLinks removes the links that a reply quotes: they answer in the name of their recipient, and others can read stored replies.
func withoutLinks(text string) string {
	text = quotedSecret.ReplaceAllString(text, "[link]")
	text = quotedLink.ReplaceAllString(text, "[link]")
	return quotedToken.ReplaceAllString(text, "[ref]")
}

// ownWords is what somebody wrote themselves, without what they quote; the whole text if nothing is left.
func ownWords(text string) string {
	if own := strings.TrimSpace(replies.OwnWords(text)); own != "" {
		return own
	}
	return strings.TrimSpace(text)
}

// saidOf is the answer of a plain yes or no in prose to a yes-or-no question of another part. Other questions have to be
// filled in: a word does not say whether something was done, or by how much a budget is raised.
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
