package human

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"tandem/api"
	"tandem/host"
	"tandem/store"
)

// Every message that asks says that it is asked in a fork, in both languages; strangers are told no values and no names of people.
func TestFork_MessagesSayIt(t *testing.T) {
	t.Parallel()
	fork := ForkOf([]host.Fork{{Source: "exec_1", Node: "ask", By: "ann", Reason: "why not", Edits: []host.Edit{
		{Name: "added", Edited: json.RawMessage(`true`)}, {Name: "amount", Original: json.RawMessage("99999"), Edited: json.RawMessage("1")},
		{Name: "item", Edited: json.RawMessage("{}"), Follows: true},
	}}})
	for language, wanted := range map[string][]string{
		"en": {"made by ann of execution exec_1 at node ask", "amount: now 1 (was 99999)\nadded: now true (was not there)", "Reason: why not"},
		"zh": {"由 ann 从执行 exec_1 的节点 ask 处建立", "amount：现在是 1（原来是 99999）\nadded：现在是 true（原来没有）", "原因：why not"},
	} {
		for _, kind := range []string{KindRequest, KindReminder, KindEscalation, KindWarning, KindAskBack} {
			m := Message{Kind: kind, Request: Request{Language: language, Fork: fork}, Interaction: store.Interaction{TimeoutAt: 1}}
			text := strings.Join(wordsIn(language).lines(m, note{}, time.UnixMilli(0)), "\n")
			for _, words := range wanted {
				if !strings.Contains(text, words) || strings.Contains(text, "item") {
					t.Errorf("%s in %s says %q, not %q", kind, language, text, words)
				}
			}
		}
	}
	for access, hidden := range map[string]bool{"users": false, "link": true, "public": true} {
		request, err := json.Marshal(Request{Type: Approval, Title: "t", Access: access, Approvers: []string{"bob"}})
		if err != nil {
			t.Fatal(err)
		}
		i, err := Open(Question{Purpose: PurposeNode, Request: request, Fork: fork, Requesters: []string{"ann"}})
		if err != nil {
			t.Fatal(err)
		}
		var kept struct {
			Fork *api.Fork `json:"fork"`
		}
		if err := json.Unmarshal(i.Request, &kept); err != nil || kept.Fork == nil || len(kept.Fork.Edits) != 2 {
			t.Fatalf("the question is %s (%v)", i.Request, err)
		}
		if got := !strings.Contains(string(i.Request), "99999") && kept.Fork.By == ""; got != hidden {
			t.Errorf("with access %s it shows %s", access, i.Request)
		}
	}
}

// With exclude_requester it is an error of the node if only those are asked who want what it does.
func TestOpen_OnlyRequestersAreAsked(t *testing.T) {
	t.Parallel()
	request := json.RawMessage(`{"interaction_type":"approval","title":"t","approvers":["ann"],"exclude_requester":true}`)
	if _, err := Open(Question{User: "bob", Purpose: PurposeNode, Request: request}); err != nil {
		t.Error(err)
	}
	if _, err := Open(Question{User: "bob", Requesters: []string{"ann"}, Purpose: PurposeNode, Request: request}); err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("only a requester may answer: %v", err)
	}
}
