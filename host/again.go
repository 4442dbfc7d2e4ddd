package host

import (
	"slices"
	"strings"

	"tandem/engine"
	"tandem/fault"
)

// AskAgain returns the questions that are asked again before an execution goes on from an activation at somebody's wish:
// those that lie on every way to it and, if the data is edited with it, all that were answered without having shown the
// edit. It refuses with approval_required when one of them cannot be asked there.
func AskAgain(state *engine.State, id engine.ActivationID, edited bool) ([]engine.ActivationID, error) {
	questions, closed := state.Questions(id)
	if len(closed) > 0 {
		return nil, fault.Newf(fault.ApprovalRequired, "every way to %q leads through the question %q, which cannot be asked from there; begin with that question, or with what runs it, instead", id, strings.Join(closed, `", "`))
	}
	if edited {
		for _, q := range state.Answered() {
			if q != id && !slices.Contains(questions, q) {
				questions = append(questions, q)
			}
		}
	}
	return questions, nil
}
