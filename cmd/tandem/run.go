package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"tandem/app"
	"tandem/console"
)

func newRun() *cobra.Command {
	var (
		in     inputFlags
		nodes  nodeFlags
		dir    string
		resume string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "run FILE",
		Short: "Run a workflow here, durably, without a server",
		Long: `Run executes a workflow file on the engine in this process and waits for its end. Every step is
on disk before the next begins: a run that is interrupted, also by a crash, goes on where it was
with --resume.

On a terminal it asks you for the inputs that the workflow wants and that you have not given, draws what
happens as a tree, with what models write while they do, and asks you what an execution asks: for an approval, a form, a choice, a review, whether a tool may be called. Elsewhere it
prints a line for each node, and a question parks the execution and is told with how to answer it, as is
one that is for others. Only kinds of nodes that this installation can run are allowed: "tandem nodes"
lists them.

A workflow that names the profile "demo" needs no model and no key: every data directory has it built in,
a script that answers the examples. Keep a profile with that id to put a real model into its place.

Where a server has the data directory open, as after "make run", that server runs it, with its own
options, and goes on with it also when you leave.

Interrupt it once (Ctrl-C) and nothing new begins, what runs gets --grace to end, and the execution is
parked with how to resume it; twice, and it ends at once, which loses nothing that is on disk, and what
was cut off in the middle may have to be asked about.

Exit status: 0 when the execution succeeded, 1 when it did not, 2 when the command is called
wrongly, 130 when it was interrupted or waits for a person, and can be resumed.`,
		Example: "  tandem run examples/ai_support_reply.yaml --input message='My drill arrived broken'\n  tandem run order.yaml --input amount=120 --input customer='{\"name\":\"Ann\"}'\n  tandem run order.yaml --input-file order.json\n  tandem run --resume exec_abc",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case resume != "" && len(args) > 0:
				return errors.New("run takes a workflow file or --resume, not both")
			case resume == "" && len(args) != 1:
				return errors.New("run needs one workflow file, or - for standard input")
			case resume != "" && in.given():
				return errors.New("--input and --input-file are for a new execution; --resume goes on with the inputs it has")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			object, err := in.readInputs()
			if err != nil {
				return err
			}
			given, err := nodes.nodeOptions(cmd)
			if err != nil {
				return err
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			r := app.Run{
				Dir: dir, Again: nodes.database.again(), Inputs: object, Resume: resume, Version: version, Grace: given.grace,
				Draining: drains(cmd),
				Options: app.Options{Database: nodes.database.address(), MasterKey: os.Getenv("TANDEM_MASTER_KEY"), HTTPAllow: given.allow,
					Scripts: given.scripts, Language: console.InstalledLanguage(), Log: debugLog(cmd, nodes.debug)},
			}
			for _, flag := range []string{"http-allow", "allow-scripts", "debug"} {
				if cmd.Flags().Changed(flag) {
					r.Flags = append(r.Flags, "--"+flag)
				}
			}
			if len(args) > 0 {
				r.File = args[0]
			}
			return console.RunFile(ctx, terminal(cmd), r, asJSON)
		},
	}
	flags := cmd.Flags()
	in.addInputFlags(cmd)
	addData(flags, &dir, "the data directory (TANDEM_DATA)")
	nodes.addNodeFlags(cmd, "how long what runs may take to end when you interrupt it; 0 for no time (TANDEM_GRACE)")
	flags.StringVar(&resume, "resume", "", "go on with this execution instead of starting one")
	flags.BoolVar(&asJSON, "json", false, "print the events of the execution, one JSON object per line, then the result")
	cmd.SetContext(context.Background())
	return cmd
}

// inputFlags are the inputs of an execution.
type inputFlags struct {
	pairs []string
	file  string
}

func (f *inputFlags) addInputFlags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.pairs, "input", nil, "an input as name=value; a value that is JSON is taken as such (repeatable)")
	cmd.Flags().StringVar(&f.file, "input-file", "", "a file with a JSON object of inputs")
}

func (f *inputFlags) given() bool { return len(f.pairs) > 0 || f.file != "" }

// readInputs returns the object of inputs.
func (f *inputFlags) readInputs() ([]byte, error) {
	var base []byte
	if f.file != "" {
		var err error
		if base, err = os.ReadFile(f.file); err != nil {
			return nil, console.Problem(fmt.Errorf("--input-file: %w", err))
		}
		if len(base) == 0 {
			return nil, console.Problem(fmt.Errorf("--input-file %q is empty; it must hold a JSON object", f.file))
		}
	}
	object, err := app.ParseInputs(base, f.pairs)
	if err != nil {
		return nil, console.Usage(errors.New(sayError(err)))
	}
	return object, nil
}
