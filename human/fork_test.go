package human

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"tandem/api"
	"tandem/engine"
	"tandem/host"
	"tandem/human/lineage"
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
		i, err := Media(nil).Open(Question{Purpose: PurposeNode, Request: request, Fork: fork, Requesters: []string{"ann"}})
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
	if _, err := Media(nil).Open(Question{User: "bob", Purpose: PurposeNode, Request: request}); err != nil {
		t.Error(err)
	}
	if _, err := Media(nil).Open(Question{User: "bob", Requesters: []string{"ann"}, Purpose: PurposeNode, Request: request}); err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("only a requester may answer: %v", err)
	}
}

// What is asked about work that was under way in the source of a fork is said in the reader's language, too.
func TestBegun_InTheReadersLanguage(t *testing.T) {
	t.Parallel()
	for status, words := range map[engine.NodeStatus][2]string{
		engine.NodeDone: {"it has completed there", "已经完成"}, engine.NodeFailure: {"it has failed there", "失败"}, engine.NodeRunning: {"still at work", "仍在执行"}, "": {"not known", "无法得知"},
	} {
		i, err := Media(nil).Open(Question{Ref: store.Ref{Workspace: "w", Execution: "y"}, Node: "pay", Ask: "pay#0.1", Activation: "pay", Purpose: PurposeOutcomeUnknown, Language: "en", Begun: &lineage.Begun{Execution: "x", Node: "pay", Status: status}})
		if err != nil {
			t.Fatal(err)
		}
		var r Request
		if err := json.Unmarshal(i.Request, &r); err != nil {
			t.Fatal(err)
		}
		zh := r.In("zh", PurposeOutcomeUnknown).Description
		for language, text := range map[string]string{words[0]: r.Description, words[1]: zh} {
			if !strings.Contains(text, language) || !strings.Contains(text, " x ") || !strings.Contains(text, "pay") {
				t.Errorf("%s: it says %q", status, text)
			}
		}
		if strings.Contains(r.Description, "interrupted") || strings.Contains(zh, "打断") {
			t.Errorf("it was not interrupted: %q, %q", r.Description, zh)
		}
	}
}

// An output that somebody gave by hand and that is too large to be told is shown by its beginning, with a way to all of it; strangers
// are shown neither.
func TestAgain_LargeOutputs(t *testing.T) {
	t.Parallel()
	again := AgainOf([]host.AskedAgain{{AgainCause: engine.AgainCause{Action: engine.AgainOutput, By: "ann"}, Node: "pay", Value: json.RawMessage(`{"$blob":"abc","size":50000}`), Part: `{"amount":1,`}})
	r := Request{}
	r.showAgain(again)
	if lines := strings.Join(lineage.AgainLines("en", r.Again), " "); !strings.Contains(lines, `{"amount":1, (the beginning of 50000 bytes)`) {
		t.Errorf("it says %q", lines)
	}
	if cut := r.CutValues(); len(cut) != 1 || cut[0].Hash != "abc" || cut[0].Name != "pay" || cut[0].ID != "output0" {
		t.Errorf("its whole is found at %+v", cut)
	}
	// What looks like the name of a value is a value if somebody wrote it.
	r.Again[0].OutputPart = ""
	if cut := r.CutValues(); len(cut) != 0 {
		t.Errorf("it leads to %+v", cut)
	}
	stranger := Request{Access: "link"}
	stranger.showAgain(again)
	if cut := stranger.CutValues(); len(cut) != 0 || strings.Contains(strings.Join(lineage.AgainLines("en", stranger.Again), " "), "amount") {
		t.Errorf("a stranger is shown %+v, %q", cut, lineage.AgainLines("en", stranger.Again))
	}
}
