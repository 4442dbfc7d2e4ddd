package llm

// What a message costs beside its text: the marks around it, and a picture of usual size.
const (
	messageTokens = 4
	imageTokens   = 1000
)

// Estimate guesses what a completion has used, for services that do not tell. It is meant for budgets: close enough to
// keep one, and never zero. See [Tokens] for how text is counted. Names and arguments of tool calls count as text, a
// picture as a thousand tokens, and every message as four more. Descriptions of tools are not known here and do not count.
func Estimate(messages []Message, answer Message) Usage {
	u := Usage{Estimated: true, OutputTokens: Tokens(answer.Reasoning) + messageSize(answer)}
	for _, m := range messages {
		u.InputTokens += messageSize(m)
	}
	return u
}

func messageSize(m Message) int64 {
	n := messageTokens + Tokens(m.Content) + imageTokens*int64(len(m.Images))
	for _, c := range m.ToolCalls {
		n += Tokens(c.Name) + Tokens(c.Arguments)
	}
	return n
}

// Tokens guesses how many tokens a text is, rounded up: four ASCII bytes are one, a Chinese, Japanese or Korean character
// is one, two characters of any other script are one.
func Tokens(text string) int64 {
	quarters := int64(0)
	for _, r := range text {
		quarters += TokenQuarters(r)
	}
	return (quarters + 3) / 4
}

// TokenQuarters is what a character counts in [Tokens], in quarters of a token.
func TokenQuarters(r rune) int64 {
	switch {
	case r < 0x80:
		return 1
	case wide(r):
		return 4
	}
	return 2
}

// wide says that a character is one of Chinese, Japanese or Korean writing, their punctuation included.
func wide(r rune) bool {
	return r >= 0x1100 && r <= 0x11ff || // Hangul Jamo
		r >= 0x2e80 && r <= 0xa4cf || // radicals to Yi: kana, ideographs, bopomofo
		r >= 0xac00 && r <= 0xd7ff || // Hangul
		r >= 0xf900 && r <= 0xfaff || // compatibility ideographs
		r >= 0xff00 && r <= 0xffef || // full width forms
		r >= 0x20000 && r <= 0x3ffff // further ideographs
}
