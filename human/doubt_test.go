package human

import (
	"encoding/json"
	"strings"
	"testing"

	"tandem/engine"
	"tandem/fault"
	"tandem/store"
	"tandem/text"
)

// A question about an outcome that nobody knows tells how the attempt ended and why the service could not tell, in the reader's language.
func TestOpen_Doubt(t *testing.T) {
	t.Parallel()
	run := fault.New(fault.OutcomeUnknown, "cut off; 100% of mail <m1>")
	inquiry := fault.Say(fault.Unsupported, text.Of("Was %s done?", "x"))
	for name, c := range map[string]struct {
		why    engine.Doubt
		en, zh []string
	}{
		"Both":    {engine.Doubt{Run: run, Inquiry: inquiry}, []string{"not known: cut off; 100% of mail <m1>.", "could not tell what became of it: Was x done?", "then answer: done"}, []string{"结果未知：cut off; 100% of mail <m1>。", "服务无法告知其结果：", "请先查看"}},
		"Run":     {engine.Doubt{Run: run}, []string{"mail <m1>.", "then answer: done"}, []string{"mail <m1>。"}},
		"Inquiry": {engine.Doubt{Inquiry: inquiry}, []string{"was interrupted at work", "became of it: Was x done?"}, []string{"被打断", "服务无法告知"}},
		"Neither": {engine.Doubt{}, []string{"The node was interrupted at work, and its outcome is not known. Look where it would show"}, []string{"被打断"}},
	} {
		i, err := Media(nil).Open(Question{Ref: store.Ref{Workspace: "w", Execution: "x"}, Node: "pay", Ask: "pay#0.1", Activation: "pay", Purpose: PurposeOutcomeUnknown, Language: "en", Why: c.why})
		if err != nil {
			t.Fatal(err)
		}
		var r Request
		if err := json.Unmarshal(i.Request, &r); err != nil {
			t.Fatal(err)
		}
		for _, part := range c.en {
			if !strings.Contains(r.Description, part) {
				t.Errorf("%s: it lacks %q: %s", name, part, r.Description)
			}
		}
		for _, part := range c.zh {
			if zh := r.In("zh", PurposeOutcomeUnknown).Description; !strings.Contains(zh, part) {
				t.Errorf("%s: it lacks %q: %s", name, part, zh)
			}
		}
	}
}

// However much an error says, in its words or without any, the question tells the beginning of it in every language.
func TestDoubt_IsCut(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long ", maxDoubt)
	for name, e := range map[string]*fault.Error{"Plain": fault.New(fault.OutcomeUnknown, long), "Words": fault.Say(fault.OutcomeUnknown, text.Of("Was %s done?", long))} {
		for _, why := range []engine.Doubt{{Run: e}, {Inquiry: e}} {
			about, _ := doubt(why)
			for _, language := range text.Languages() {
				if said := about.In(language); len(said) > maxDoubt+1000 || !strings.Contains(said, "long long") {
					t.Errorf("%s in %s has %d bytes: %.200s", name, language, len(said), said)
				}
			}
		}
	}
}
