package memory

// What kinds without a memory use of the rules that need no model.

// PlainSummary is a summary of messages without a model: the sentences that say most, in their order, in at most limit
// characters. When there is no room for all, the oldest go.
func PlainSummary(messages []Message, limit int) string { return extract("", messages, limit) }

// PlainFacts are the sentences of a text that say what something is, has or does.
func PlainFacts(content string) []string {
	var list []string
	for _, s := range sentences(content) {
		if len(ruleFacts(s)) > 0 {
			list = append(list, s)
		}
	}
	return list
}
