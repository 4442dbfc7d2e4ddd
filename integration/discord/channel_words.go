package discord

import (
	"tandem/human"
	"tandem/text"
)

// words are what the channel itself says; what a message says comes with it, and the words of a form with the form.
type words struct {
	human.ChatWords
	choose string
}

func wordsIn(language string) words {
	return words{ChatWords: human.ChatWordsIn(language), choose: text.Of("Choose").In(language)}
}
