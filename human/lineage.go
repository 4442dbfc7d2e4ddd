package human

import (
	"slices"

	"tandem/api"
	"tandem/engine"
	"tandem/human/lineage"
)

// forStrangers says that people who are not users of the workspace may read the question.
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

// CutValues are the values of a question that its lines do not show in whole.
func (r Request) CutValues() []lineage.Cut { return lineage.Cuts(r.Again, r.Fork) }
