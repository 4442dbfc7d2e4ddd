package human

import (
	"encoding/json"

	"tandem/fault"
	"tandem/text"
)

// ChatWords are the words of chat channels for the parts of a question and for the result of an answer.
type ChatWords struct {
	language                                          string
	Content, Arguments, Shortened, Deadline, Workflow string
	Risk                                              string
	TryAgain, Ended                                   string
}

// ChatWordsIn returns the words in a language.
func ChatWordsIn(language string) ChatWords {
	say := func(t text.Text) string { return t.In(language) }
	return ChatWords{
		language:  language,
		Content:   say(text.Of("Content")),
		Arguments: say(text.Of("Arguments")),
		Shortened: say(text.Of(" (shortened)")),
		Deadline:  say(text.Of("Until")),
		Workflow:  say(text.Of("Workflow")),
		Risk:      say(text.Of("Risk")),
		TryAgain:  say(text.Of("Your answer could not be recorded. Please try again.")),
		Ended:     say(text.Of("This question has ended.")),
	}
}

// Level is the word for a risk that people should see; empty: there is none to show.
func (w ChatWords) Level(risk string) string {
	return map[string]text.Text{"high": text.Of("high"), "medium": text.Of("medium")}[risk].In(w.language)
}

// Quorum says how many have to agree; empty: one.
func (w ChatWords) Quorum(m Message) string {
	n := max(m.Interaction.MinApprovals, m.Request.MinApprovals)
	if n <= 1 {
		return ""
	}
	return text.Of("%d approvals are needed", n).In(w.language)
}

// Became is the message that tells a person the result of their answer.
func (w ChatWords) Became(r Reaction) string {
	switch {
	case r.Text != "":
		return r.Text
	case r.Err != nil && r.Err.Code == fault.NotFound, r.Err == nil && r.Ended && !r.Accepted:
		return w.Ended
	case r.Err != nil:
		return InLanguage(w.language, r.Err)
	}
	return text.Of("Recorded.").In(w.language)
}

// ReadReceipts reads the receipts of earlier messages. Whole says whether one has all that is needed to find its message again.
func ReadReceipts[T any](list []json.RawMessage, whole func(T) bool) ([]T, error) {
	out := make([]T, len(list))
	for n, raw := range list {
		if err := json.Unmarshal(raw, &out[n]); err != nil || !whole(out[n]) {
			return nil, fault.Newf(fault.Internal, "the receipt %q of a message cannot be read", raw)
		}
	}
	return out, nil
}
