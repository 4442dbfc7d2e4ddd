package story

import (
	"slices"

	"tandem/api"
	"tandem/human"
	"tandem/human/form"
	"tandem/human/lineage"
	"tandem/store"
)

// TellForm tells the form of a question to a reader of a language; empty: in that of the question. There is none for a record that cannot
// be read.
func TellForm(i store.Interaction, language string) *api.InteractionForm {
	r, err := human.ReadRequest(i)
	if err != nil {
		return nil // the record itself is told as it is
	}
	r = r.In(language, i.Purpose)
	drawn := human.FormOf(i, r)
	again := lineage.AgainLines(r.Language, r.Again)
	told := &api.InteractionForm{
		Language: drawn.Language, Title: r.Title, Description: r.Description,
		Lines:   slices.Concat(again, lineage.ForkLines(r.Language, r.Fork)),
		Entries: make([]api.FormEntry, len(drawn.Entries)),
	}
	for _, n := range lineage.EditLines(r.Language, r.Fork) {
		told.EditLines = append(told.EditLines, len(again)+n)
	}
	for n := range drawn.Entries {
		told.Entries[n] = tellEntry(&drawn.Entries[n])
	}
	return told
}

// TellTitle is the title of a question for a reader of a language; empty: in that of the question.
func TellTitle(i store.Interaction, language string) string {
	r, err := human.ReadRequest(i)
	if err != nil {
		return ""
	}
	return r.In(language, i.Purpose).Title
}

func tellEntry(e *form.Entry) api.FormEntry {
	told := api.FormEntry{
		Group: e.Group, Name: e.Name, Kind: string(e.Kind), Label: e.Label, About: e.About, Limits: e.Limits,
		Required: e.Required, Open: e.Open,
		Min: e.Min, Max: e.Max, MinLength: e.MinLength, MaxLength: e.MaxLength, MinItems: e.MinItems, MaxItems: e.MaxItems, Whole: e.Whole,
		Default: e.Default, Known: e.Known, Decides: e.Decides, OnlyWith: e.OnlyWith,
		List: e.Listed(), Anything: e.TakesText(), Words: e.Words(),
	}
	for _, c := range e.Choices {
		told.Choices = append(told.Choices, api.FormChoice{Value: c.Value, Label: c.Label, Raw: c.Raw, Outcome: c.Outcome})
	}
	return told
}
