package memory

import (
	"encoding/json"

	"tandem/text"
)

// Source is where something that a memory tells comes from: a part of a document.
type Source struct {
	// ID is what stands in square brackets before what is told, and what an answer names it by.
	ID       string `json:"id"`
	Document string `json:"document"`
	Title    string `json:"title,omitempty"`
	Page     int    `json:"page,omitempty"`
	Section  string `json:"section,omitempty"`
	Row      int    `json:"row,omitempty"`
	Chunk    int    `json:"chunk,omitempty"`
	// Start and End are where it stands in the text of the document, in characters.
	Start int `json:"start"`
	End   int `json:"end"`
}

// SourceOf is the source of an item, as its metadata names it; false: it names none.
func SourceOf(i Item) (Source, bool) {
	var s Source
	if len(i.Metadata) == 0 || json.Unmarshal(i.Metadata, &s) != nil || s.Document == "" {
		return Source{}, false
	}
	s.ID = i.ID
	return s, true
}

// sourcesOf are the sources of items, as far as they name any.
func sourcesOf(items []Item) (list []Source) {
	for _, i := range items {
		if s, ok := SourceOf(i); ok {
			list = append(list, s)
		}
	}
	return list
}

// citing tells a model how sources are named.
func (c *Call) citing(s Source) string {
	return c.in(text.Of("What follows comes from documents. Name the sources of your answer in square brackets as they stand here, such as [%s]. If the answer is not in them, say so.", s.ID))
}
