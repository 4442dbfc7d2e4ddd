package human

import (
	"encoding/json"
	"testing"

	"tandem/fault"
	"tandem/store"
)

func TestChatWords(t *testing.T) {
	t.Parallel()
	zh, en := ChatWordsIn("zh"), ChatWordsIn("en")
	shown := fault.Say(fault.Conflict, notAsShown)
	for _, c := range []struct {
		r      Reaction
		en, zh string
	}{
		{Reaction{Accepted: true}, "Recorded.", "已记录。"},
		{Reaction{Accepted: true, Text: "Thanks"}, "Thanks", "Thanks"},
		{Reaction{Ended: true}, "This question has ended.", "这个问题已经结束。"},
		{Reaction{Err: fault.New(fault.NotFound, "x")}, "This question has ended.", "这个问题已经结束。"},
		{Reaction{Err: fault.New(fault.Invalid, "x")}, "x", "x"},
		{Reaction{Err: shown}, shown.Message, "您看到的内容与所询问的不一致，请重新查看后再答复。"},
	} {
		if got, told := en.Became(c.r), zh.Became(c.r); got != c.en || told != c.zh {
			t.Errorf("%+v is told as %q and %q", c.r, got, told)
		}
	}
	if en.Level("high") != "high" || zh.Level("medium") != "中" || en.Level("low") != "" {
		t.Error("risks have other names")
	}
	if m := (Message{Interaction: store.Interaction{MinApprovals: 2}}); zh.Quorum(m) != "需要 2 人同意" || zh.Quorum(Message{}) != "" {
		t.Errorf("two have to agree: %q", zh.Quorum(m))
	}
	whole := func(n int) bool { return n > 0 }
	if got, err := ReadReceipts([]json.RawMessage{[]byte("1"), []byte("2")}, whole); err != nil || len(got) != 2 || got[1] != 2 {
		t.Errorf("receipts %v (%v)", got, err)
	}
	for _, bad := range []string{"0", "x"} {
		if _, err := ReadReceipts([]json.RawMessage{[]byte(bad)}, whole); fault.CodeOf(err) != fault.Internal {
			t.Errorf("%s was read: %v", bad, err)
		}
	}
}
