package form

import (
	"slices"
	"unicode/utf16"

	"tandem/text"
)

// Medium says what a place where people fill in forms can draw. Each medium states its bounds once, where it is drawn. What it cannot draw
// is left to the response page, which draws everything, and where there is no link to it to the inbox.
type Medium struct {
	// Cannot are the kinds of entries that it cannot draw.
	Cannot []Kind
	// Entries is how many entries a form may have, Choices how many choices an entry, Buttons how many choices can be buttons that answer
	// at once; 0: none of the buttons, any number of the others.
	Entries, Choices, Buttons int
	// NameSize and ValueSize are how long the name of an entry and the value of a choice may be, and TextSize how much can be typed, in
	// UTF-16; 0: any length.
	NameSize, ValueSize, TextSize int
	// LeavesOut says that it leaves out all that it cannot draw and that need not be filled in. Others leave out no more than notes.
	LeavesOut bool
}

// Page is the response page, and a terminal, which asks for one thing after the other.
func Page() Medium { return Medium{} }

// Instead are the words for what is done instead of drawing a form: a link to the page, or where there is none the inbox.
func Instead(linked bool) Text {
	if linked {
		return text.Of("Open the response page")
	}
	return text.Of("Answer it in the inbox of Tandem.")
}

// Opens is what the button is called that opens a form. Beside buttons that decide it says what the form has besides.
func (f *Form) Opens(besides bool) Text {
	if besides && len(f.Entries) == 2 && f.Entries[1].Name == NameNotes {
		return text.Of("With a note")
	}
	return text.Of("Fill in")
}

// Draw are the entries of a form that a medium draws, in order. It is false when something is missing that has to be filled in, or that
// somebody would miss: then the whole form is left to the page.
func (m Medium) Draw(f *Form) (entries []int, ok bool) {
	for n := range f.Entries {
		e := &f.Entries[n]
		switch {
		case m.draws(e):
			entries = append(entries, n)
		case e.Required || !m.LeavesOut && !e.aside():
			return nil, false
		}
	}
	if m.Entries > 0 && len(entries) > m.Entries {
		// Notes are the first to go.
		entries = slices.DeleteFunc(entries, func(n int) bool { return f.Entries[n].aside() })
	}
	if m.Entries > 0 && len(entries) > m.Entries || !slices.ContainsFunc(entries, func(n int) bool { return !f.Entries[n].aside() }) {
		return nil, false
	}
	return entries, true
}

// Decides are the choices of the entry that a question is about, if the medium can show each as a button that answers at once. More says
// that the form has something to fill in besides.
func (m Medium) Decides(f *Form) (decision *Entry, more bool) {
	decision, at := f.Decision()
	if decision == nil || decision.Kind == Some || len(decision.Choices) == 0 || len(decision.Choices) > m.Buttons {
		return nil, false
	}
	entries, ok := m.Draw(f)
	return decision, ok && slices.ContainsFunc(entries, func(n int) bool { return n != at })
}

// aside says that an entry is beside the matter: somebody may say more than was asked for.
func (e *Entry) aside() bool {
	return e.Group == "" && (e.Name == NameNotes || e.Name == NameDescription || e.Name == NameResult)
}

func (m Medium) draws(e *Entry) bool {
	if slices.Contains(m.Cannot, e.Kind) || m.NameSize > 0 && size(e.Path()) > m.NameSize {
		return false
	}
	if m.TextSize > 0 && e.MinLength != nil && *e.MinLength > m.TextSize {
		return false
	}
	if !e.Chosen() {
		return true
	}
	if len(e.Choices) == 0 || m.Choices > 0 && len(e.Choices) > m.Choices {
		return false
	}
	return m.ValueSize == 0 || !slices.ContainsFunc(e.Choices, func(c Choice) bool { return c.Value == "" || size(c.Value) > m.ValueSize })
}

// size counts in UTF-16, which is the most that a service can mean by a character.
func size(text string) int {
	n := 0
	for _, r := range text {
		n += utf16.RuneLen(r)
	}
	return n
}
