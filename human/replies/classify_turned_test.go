package replies

import (
	"fmt"
	"strings"
	"testing"

	"tandem/human/form"
)

// TestClassify_Turned puts every approval of the free corpora that is one sentence under a condition, into a question and into somebody
// else's mouth: none is an approval any more, and none becomes a refusal.
func TestClassify_Turned(t *testing.T) {
	t.Parallel()
	forms := map[string][]string{
		"en": {
			"%s if legal agrees.", "%s, once the typo on page 3 is fixed.", "%s, but only the first half.", "%s unless Tom objects.", "%s. Wait, which one is this?", "Anna said: %s", "My boss told me: %s",
			"If the price drops, %s", "%s... or not?", "%s, except the hotel.", "%s, provided that finance signs.", "%s, subject to contract.", "%s. But change the date to Friday first.", "%s, just kidding.", "%s, pending review by security.",
			"%s as long as it stays under 500.", "%s\n\nActually no, let me check with Maria first.", "%s, but not before June.", "%s, assuming the budget is there.", "%s. On second thought, let me sleep on it.", "%s, with the exception of item 4.",
		},
		"zh": {
			"%s，前提是法务同意", "如果价格能降，%s", "%s，但是要先改合同", "老王说：%s", "%s，除了第二项", "等财务确认后，%s", "%s，不过得总经理签字", "%s，开玩笑的", "要是客户付了定金，%s", "%s，等我看完附件再说", "%s，但金额改成5000", "只要不超预算，%s",
			"%s，到货验收后再付", "除非老板反对，%s", "别人都说%s，我还没看",
		},
	}
	n := 0
	for _, name := range []string{"replies_free.jsonl", "replies_more.jsonl", "replies_other.jsonl", "replies_wild.jsonl"} {
		for i, f := range readFree(t, name) {
			text := strings.TrimRight(f.Text, ".!。！ ")
			if f.Want != "approve" || i%6 != 0 || len([]rune(text)) > 60 || strings.ContainsAny(text, ".!?。！？\n;；:：") || taken(f.freely("")) != form.Confirmed {
				continue
			}
			for _, form := range forms[f.freely("").Request.Language] {
				n++
				turned := free{Text: fmt.Sprintf(form, text)}
				if got := taken(turned.freely("")); got != "" {
					t.Errorf("%q is taken for %s: %s", turned.Text, got, Classify(turned.freely("")).Reasoning)
				}
			}
		}
	}
	if n < 500 {
		t.Errorf("only %d combinations were tried", n)
	}
}

// taken is what a reply is taken for, without the reasons, which take longer.
func taken(t Text) string {
	r := read(theReader(), t)
	return r.judgement(t).Classification
}
