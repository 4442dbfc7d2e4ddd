package human

import (
	"slices"

	"tandem/api"
	"tandem/engine"
	"tandem/host"
	"tandem/human/lineage"
)

// ForkOf describes the forks that led to an execution, the last one first; nil when it was not forked.
func ForkOf(forks []host.Fork) *api.Fork {
	var told []api.Fork
	for _, f := range slices.Backward(forks) {
		one := api.Fork{
			ExecutionID: f.Source, ActivationID: string(f.Activation), NodeID: f.Node, By: f.By, TokenMadeBy: f.TokenMadeBy,
			Reason: f.Reason, Time: f.Time, Edits: []api.ForkEdit{},
		}
		for _, e := range f.Made() {
			one.Edits = append(one.Edits, api.ForkEdit{Name: e.Name, Original: e.Original, OriginalPart: e.OriginalPart,
				Edited: e.Edited, EditedPart: e.EditedPart})
		}
		told = append(told, one)
	}
	if len(told) == 0 {
		return nil
	}
	told[0].Earlier = told[1:]
	return &told[0]
}

// AgainOf describes why a question is asked again.
func AgainOf(causes []host.AskedAgain) []api.AskedAgain {
	var told []api.AskedAgain
	for _, c := range causes {
		told = append(told, api.AskedAgain{Action: string(c.Action), NodeID: c.Node, By: c.By, TokenMadeBy: c.TokenMadeBy,
			Output: c.Value, OutputPart: c.Part})
	}
	return told
}

// forStrangers says whether people who are not users of the workspace may read the question.
func (r *Request) forStrangers() bool { return r.Access == "link" || r.Access == "public" }

// showFork lets a question say that it is asked in a fork.
func (r *Request) showFork(f *api.Fork, asks engine.ActivationID) {
	r.Fork = f.Asking(string(asks), r.Content)
	if r.Fork != nil && r.forStrangers() {
		r.Fork = lineage.ForStrangers(*r.Fork)
	}
}

// showAgain lets a question say why it is asked again.
func (r *Request) showAgain(list []api.AskedAgain) {
	if r.Again = slices.Clone(list); r.forStrangers() {
		r.Again = lineage.AgainForStrangers(list)
	}
}

// CutValues are the values that the lines of a question show only in part.
func (r Request) CutValues() []lineage.Cut { return lineage.Cuts(r.Again, r.Fork) }
