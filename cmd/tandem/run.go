package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"tandem/app"
	"tandem/engine"
)

func newRun() *cobra.Command {
	var (
		inputs    []string
		inputFile string
		dir       string
		resume    string
		asJSON    bool
	)
	cmd := &cobra.Command{
		Use:   "run FILE",
		Short: "Run a workflow here, durably, without a server",
		Long: `Run executes a workflow file on the engine in this process and waits for its end. Every step is
on disk before the next begins: a run that is interrupted, also by a crash, goes on where it was
with --resume.

Only kinds of nodes that this installation can run are allowed: the FLOW and ACTION.DATA_ kinds,
TRIGGER.MANUAL and CALL.EMPTY.

Exit status: 0 when the execution succeeded, 1 when it did not, 2 when the command is called
wrongly, 130 when it was interrupted and can be resumed.`,
		Example: "  tandem run order.yaml --input amount=120 --input customer='{\"name\":\"Ann\"}'\n  tandem run order.yaml --input-file order.json\n  tandem run --resume exec_abc",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case resume != "" && len(args) > 0:
				return errors.New("run takes a workflow file or --resume, not both")
			case resume == "" && len(args) != 1:
				return errors.New("run needs one workflow file, or - for standard input")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var base []byte
			if inputFile != "" {
				var err error
				if base, err = os.ReadFile(inputFile); err != nil {
					return problemError{err}
				}
			}
			object, err := app.ParseInputs(base, inputs)
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			p := &printer{out: cmd.OutOrStdout(), json: asJSON}
			r := app.Run{Stdin: cmd.InOrStdin(), Dir: dir, Inputs: object, Resume: resume, Started: p.started, Progress: p.progress}
			if len(args) > 0 {
				r.File = args[0]
			}
			report, e, outputs, err := app.RunFile(ctx, r)
			switch {
			case !report.Valid:
				printProblems(cmd.ErrOrStderr(), report)
				return errReported
			case err != nil && ctx.Err() != nil && p.id != "":
				fmt.Fprintf(cmd.ErrOrStderr(), "parked; go on with: tandem run --resume %s --data %s\n", p.id, dir)
				return errParked
			case err != nil:
				return problemError{err}
			}
			if err := p.finished(e.Status, e.Error, time.Duration(e.DurationMS)*time.Millisecond, outputs); err != nil {
				return problemError{fmt.Errorf("write the result: %w", err)}
			}
			if e.Status != engine.StatusSuccess {
				return errReported
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&inputs, "input", nil, "an input as name=value; a value that is JSON is taken as such (repeatable)")
	flags.StringVar(&inputFile, "input-file", "", "a file with a JSON object of inputs")
	flags.StringVar(&dir, "data", cmp.Or(os.Getenv("TANDEM_DATA"), "data"), "the data directory (TANDEM_DATA)")
	flags.StringVar(&resume, "resume", "", "go on with this execution instead of starting one")
	flags.BoolVar(&asJSON, "json", false, "print one JSON object per line: what happens to nodes, then the result")
	cmd.SetContext(context.Background())
	return cmd
}

// printer writes what happens during a run. It keeps the first error of writing for the end.
type printer struct {
	out  io.Writer
	json bool
	id   string
	err  error
}

func (p *printer) started(id string) {
	p.id = id
	if p.json {
		p.line(map[string]any{"execution_id": id})
	} else {
		p.text("execution %s\n", id)
	}
}

func (p *printer) progress(g app.Progress) {
	if p.json {
		p.line(g)
		return
	}
	if g.Error != nil {
		p.text("  %-9s  %s: %s [%s]\n", g.Status, g.Activation, g.Error.Message, g.Error.Code)
		return
	}
	p.text("  %-9s  %s\n", g.Status, g.Activation)
}

func (p *printer) finished(status engine.Status, problem string, took time.Duration, outputs map[string]json.RawMessage) error {
	if p.json {
		p.line(map[string]any{"execution_id": p.id, "status": status, "error": problem, "duration_ms": took.Milliseconds(), "outputs": outputs})
		return p.err
	}
	p.text("%s in %s\n", status, took)
	if problem != "" {
		p.text("%s\n", problem)
	}
	for _, id := range slices.Sorted(maps.Keys(outputs)) {
		p.text("%s: %s\n", id, outputs[id])
	}
	return p.err
}

func (p *printer) text(format string, args ...any) {
	if _, err := fmt.Fprintf(p.out, format, args...); err != nil && p.err == nil {
		p.err = err
	}
}

func (p *printer) line(v any) {
	if err := json.NewEncoder(p.out).Encode(v); err != nil && p.err == nil {
		p.err = err
	}
}
