// Package lineage tells people how a question came about: of which execution theirs is a fork, what was edited for that, and why they are
// asked again.
//
// Everything that shows questions or executions imports it.
package lineage

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/engine"
	"tandem/payload"
	"tandem/text"
)

// ForStrangers is a fork as people are told of it who are not users of the workspace: they are not shown values that the author did not
// show them, and do not learn who works here.
func ForStrangers(f api.Fork) *api.Fork {
	hide := func(f api.Fork) api.Fork {
		f.By, f.TokenMadeBy, f.Reason = "", "", ""
		f.Edits = slices.Clone(f.Edits)
		for n := range f.Edits {
			f.Edits[n] = api.ForkEdit{Name: f.Edits[n].Name}
		}
		return f
	}
	shown := hide(f)
	shown.Earlier = slices.Clone(f.Earlier)
	for n := range shown.Earlier {
		shown.Earlier[n] = hide(shown.Earlier[n])
	}
	return &shown
}

// Begun describes work that was under way in another execution when a fork was made of it: where, and its state there. The fork has not
// interrupted it.
type Begun struct {
	Execution string            `json:"execution_id"`
	Node      string            `json:"node_id"`
	Status    engine.NodeStatus `json:"status,omitempty"`
}

// Text says what is asked about such work.
func (b *Begun) Text() text.Text {
	became := text.Of("how it ended there is not known")
	switch b.Status {
	case engine.NodeDone:
		became = text.Of("it has completed there")
	case engine.NodeFailure:
		became = text.Of("it has failed there")
	case engine.NodeRunning, engine.NodeRetrying:
		became = text.Of("it is still at work there")
	}
	return text.Of("This execution was forked from execution %s while the node %s was at work there; %s. The fork has not run the node, and does not do its work a second time without a decision. Look there, then answer: done (what was done there counts; give its result), not_done (do it in this fork, too) or stop (let the node fail).", b.Execution, b.Node, became)
}

// How much of an edited value and its name a line shows.
const (
	maxForkValue = 300
	maxForkName  = 80
)

// ForkLines says in words that an execution is a fork, of what, by whom, and each edited value beside the original. There are
// none for what was not forked.
func ForkLines(language string, f *api.Fork) []string {
	lines, _ := forkLines(language, f)
	return lines
}

// EditLines says which of the [ForkLines] tell an edited value beside the original.
func EditLines(language string, f *api.Fork) []int {
	_, edited := forkLines(language, f)
	return edited
}

func forkLines(language string, f *api.Fork) (lines []string, edited []int) {
	if f == nil {
		return nil, nil
	}
	for _, one := range append([]api.Fork{*f}, f.Earlier...) {
		by := cmp.Or(withMaker(one.By, one.TokenMadeBy, language), text.Of("an operator").In(language))
		if len(lines) == 0 {
			lines = append(lines, text.Of("Note: this is a fork, made by %s of execution %s at node %s.", by, one.ExecutionID, one.NodeID).In(language))
		} else {
			lines = append(lines, text.Of("Before that, %s made a fork of execution %s at node %s.", by, one.ExecutionID, one.NodeID).In(language))
		}
		if n := len(one.Edits); n == 0 {
			lines = append(lines, text.Of("No value was edited.").In(language))
		} else {
			lines = append(lines, text.Of("Values edited: %d", n).In(language))
		}
		// What replaces something comes first, so that a message which is cut off says it all the same.
		edits := slices.Clone(one.Edits)
		slices.SortStableFunc(edits, func(a, b api.ForkEdit) int {
			return cmp.Compare(len(b.Original),
				0) - cmp.Compare(len(a.Original), 0)
		})
		for _, e := range edits {
			name := head(e.Name, maxForkName)
			switch {
			case e.Edited == nil:
				lines = append(lines, name)
			case e.Original == nil:
				edited = append(edited, len(lines))
				lines = append(lines, text.Of("%s: now %s (was not there)", name, told{e.Edited, e.EditedPart}.text(language)).In(language))
			default:
				edited = append(edited, len(lines))
				lines = append(lines, text.Of("%s: now %s (was %s)", name, told{e.Edited, e.EditedPart}.text(language),
					told{e.Original, e.OriginalPart}.text(language)).In(language))
			}
		}
		if len(one.Kept) > 0 {
			lines = append(lines, text.Of("Not edited, and not computed again from what was: %s", head(strings.Join(one.Kept, ", "), maxForkValue)).In(language))
		} else if len(edits) > 0 {
			lines = append(lines, text.Of("What was computed before node %s was not computed again from the edited values.", one.NodeID).In(language))
		}
		if one.Reason != "" {
			lines = append(lines, text.Of("Reason: %s", head(one.Reason, maxForkValue)).In(language))
		}
	}
	return lines, edited
}

// withMaker is who did something, with who made the token that they did it with, if that was somebody else.
func withMaker(by, maker, language string) string {
	if by == "" || maker == "" {
		return by
	}
	return text.Of("%s (with a token that %s made)", by, maker).In(language)
}

// told is a value as a question has it: itself, or, of a large one, its name and its beginning.
type told struct {
	value json.RawMessage
	part  string
}

// text is the value in one line: a text as it is, anything else as JSON. Of one that is cut it says how large it is.
func (t told) text(language string) string {
	if t.part == "" {
		return valueText(t.value)
	}
	beginning := head(strings.Join(strings.Fields(t.part), " "), maxForkValue)
	return beginning + text.Of(" (the beginning of %d bytes)", gjson.GetBytes(t.value, "size").Int()).In(language)
}

// whole says that the line shows all of it.
func (t told) whole() bool {
	return t.value == nil || t.part == "" && len([]rune(payload.Text(t.value))) <= maxForkValue
}

// Cut is a value of which the lines about a fork, or about why a question is asked again, show the beginning only.
type Cut struct {
	// ID tells it apart from the others of the question; Name is that of what was edited, or of the node whose output it is.
	ID, Name string
	// Original says that it is what was replaced.
	Original bool
	// Value is the value, or Hash is its name among those of the execution.
	Value json.RawMessage
	Hash  string
}

// Cuts are the values that the lines of a question about a fork, and about why it is asked again, do not show in whole.
func Cuts(again []api.AskedAgain, fork *api.Fork) []Cut {
	var list []Cut
	add := func(id, name string, original bool, t told) {
		switch {
		case t.whole():
		case t.part != "":
			list = append(list, Cut{ID: id, Name: name, Original: original, Hash: gjson.GetBytes(t.value, "$blob").Str})
		default:
			list = append(list, Cut{ID: id, Name: name, Original: original, Value: t.value})
		}
	}
	for n, one := range again {
		add(fmt.Sprintf("output%d", n), one.NodeID, false, told{one.Output, one.OutputPart})
	}
	if fork != nil {
		for n, one := range append([]api.Fork{*fork}, fork.Earlier...) {
			for m, e := range one.Edits {
				add(fmt.Sprintf("edited%d.%d", n, m), e.Name, false, told{e.Edited, e.EditedPart})
				add(fmt.Sprintf("original%d.%d", n, m), e.Name, true, told{e.Original, e.OriginalPart})
			}
		}
	}
	return list
}

// valueText is a value in one line: a text as it is, anything else as JSON.
func valueText(raw json.RawMessage) string {
	return head(strings.Join(strings.Fields(payload.Text(raw)), " "), maxForkValue)
}

func head(words string, most int) string {
	return text.Head(strings.ToValidUTF8(words, "\uFFFD"), most)
}
