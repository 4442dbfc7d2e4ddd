package story

import (
	"context"

	"tandem/engine"
	"tandem/fault"
	"tandem/node/printed"
	"tandem/text"
)

// Spoken is what an execution has said to whom it is for: what its nodes with to_user have said, else, of one that has ended well, the text
// of its output. In the place of more than a conversation can show, it is said that it is too long.
func (r *Reading) Spoken(ctx context.Context) (string, error) {
	e, err := r.tellExecution(ctx)
	if err != nil {
		return "", err
	}
	said := e.FullAnswer
	if said == "" && r.View.Status == engine.StatusSuccess && len(e.Outputs) == 1 {
		outputs, err := r.WholeOutputs(ctx)
		if fault.CodeOf(err) == fault.TooLarge {
			return r.tooLong(), nil
		}
		if err != nil {
			return "", err
		}
		for _, only := range outputs { // order does not matter: there is one
			said = printed.Spoken(only)
		}
	}
	if len(said) > maxAnswer {
		return r.tooLong(), nil
	}
	return said, nil
}

func (r *Reading) tooLong() string {
	return text.Of("The answer is too long to be shown here.").In(r.Start.Language)
}
