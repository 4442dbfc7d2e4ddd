package human

import (
	"context"

	"tandem/fault"
	"tandem/human/form"
)

// Fill hands in what somebody has chosen or filled in. It gets the form of the question, lets read make values of what came, and hands the
// answer in. If something cannot be a value, it says so and hands nothing in. The form is nil when the sender may not see the question.
func (h Handle) Fill(ctx context.Context, reply Reply, read func(f *form.Form) (form.Values, form.Problems)) (Reaction, *form.Form, error) {
	look := reply
	look.Look, look.Dedup = true, ""
	shown, err := h(ctx, look)
	if err != nil || shown.Err == nil && shown.Ended || shown.Err != nil &&
		(shown.Err.Code == fault.NotFound || shown.Err.Code == fault.Forbidden) {
		return shown, nil, err
	}
	f := FormOf(shown.Interaction, shown.Request)
	values, wrong := read(f)
	if len(wrong) > 0 {
		if shown.Err == nil && !shown.Ended {
			shown.Err = fault.From(wrongAnswers(wrong))
			shown.Text = sayWhy(shown.Request.Language, shown)
		}
		return shown, f, nil
	}
	reply.Answer = &Answer{Given: f.Answer(values)}
	// The desk says whether it has ended meanwhile: this very answer may have ended it, and comes a second time.
	reaction, err := h(ctx, reply)
	return reaction, f, err
}

// Choose is a reader for [Handle.Fill]: it selects the given choices of the entry that the question is about.
func Choose(values ...string) func(f *form.Form) (form.Values, form.Problems) {
	return func(f *form.Form) (form.Values, form.Problems) {
		decision, n := f.Decision()
		if decision == nil {
			return nil, form.Problems{{Text: form.Gone()}}
		}
		value, wrong := decision.Choose(values...)
		if wrong != nil {
			return nil, form.Problems{{Path: decision.Path(), Text: *wrong}}
		}
		return form.Values{n: value}, nil
	}
}
