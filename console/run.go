package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"tandem/app"
	"tandem/console/tree"
	"tandem/engine"
)

// RunFile runs a workflow file, or goes on with an execution, and shows what happens: on a terminal as a tree, and the person who sits
// there is asked what it asks. It fills in everything of the run that tells what happens.
func RunFile(ctx context.Context, tty *Terminal, r app.Run, asJSON bool) error {
	f := tree.NewFollower(tty.Out, asJSON)
	id, here := "", true
	var beginErr error
	context.AfterFunc(ctx, func() { _ = f.Stop() }) // its error is asked for below
	r.Stdin, r.Each = tty.In, f.Frame
	r.Options.Notice = func(text string) { fmt.Fprintln(tty.Err, text) }
	r.Started = func(execution string, driven bool) { id, here, beginErr = execution, driven, f.Begin(execution) }
	if a := newAsker(tty.In, tty.Out, f); a != nil && r.File != "-" {
		r.Ask = a.ask
		inputs, err := a.fileInputs(ctx, r)
		if err != nil {
			return tty.Failed(err)
		}
		r.Inputs = inputs
	}
	r.Checked = func(report app.Report) { PrintProblems(tty, report) }
	r.Warned = func(warning string) { fmt.Fprintln(tty.Err, "warning: "+warning) }
	report, e, err := app.RunFile(ctx, r)
	if serr := errors.Join(beginErr, f.Stop()); err == nil && serr != nil {
		err = serr
	}
	switch {
	case !report.Valid:
		PrintProblems(tty, report)
		return ErrReported
	case errors.Is(err, app.ErrAsked):
		fmt.Fprintf(tty.Err, "%v\nthen go on with: tandem run --resume %s --data %s%s\n", err, cmp.Or(id, r.Resume), r.Dir, r.Again)
		return ErrParked
	case err != nil && ctx.Err() != nil && id != "" && !here:
		fmt.Fprintf(tty.Err, "the server goes on with it; follow it with: tandem run --resume %s --data %s%s\n", id, r.Dir, r.Again)
		return ErrParked
	case err != nil && ctx.Err() != nil && id != "":
		fmt.Fprintf(tty.Err, "parked; go on with: tandem run --resume %s --data %s%s\n", id, r.Dir, r.Again)
		return ErrParked
	case err != nil:
		return tty.Failed(err)
	}
	if err := f.Result(e); err != nil {
		return Problem(err)
	}
	if engine.Status(e.Status) != engine.StatusSuccess {
		return ErrReported
	}
	return nil
}
