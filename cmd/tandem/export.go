package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"tandem/app"
)

func newExportExecution() *cobra.Command {
	var (
		at       connectFlags
		asFile   bool
		out      string
		maxInput int
	)
	cmd := &cobra.Command{
		Use:   "export EXECUTION",
		Short: "Write down an execution, or make a fixture of it",
		Long: `Export writes an execution as one JSON document: the execution with its workflow, its activations
with their inputs and outputs, and its events.

With --fixture it writes a recorded run instead: everything that models, services, databases, tools,
timers and people said to the execution. "tandem test" plays it again without any of them. Make it
from the data directory; no server may have that open.

A fixture holds the data of the run. Secrets of credentials are not in it, but look at the inputs
before you share one.`,
		Example: "  tandem export exec_abc > record.json\n  tandem export exec_abc --fixture --out order.tandem.json",
		Args:    one("execution"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				if !asFile {
					record, err := c.ExportExecution(ctx, args[0], maxInput)
					if err != nil {
						return err
					}
					var b bytes.Buffer
					if err := printValue(&b, record); err != nil {
						return err
					}
					return writeOut(cmd.OutOrStdout(), out, b.Bytes())
				}
				f, report, err := c.Record(ctx, args[0])
				if err != nil {
					return err
				}
				data, err := f.Encode()
				if err != nil {
					return err
				}
				if err := writeOut(cmd.OutOrStdout(), out, data); err != nil {
					return err
				}
				for _, place := range f.Ignore {
					fmt.Fprintf(cmd.ErrOrStderr(), "not the same each time, so it will not be compared: %s\n", place)
				}
				for _, d := range report.Differences {
					fmt.Fprintf(cmd.ErrOrStderr(), "warning: \"tandem test\" will find a difference: %s\n", d)
				}
				return nil
			})
		},
	}
	at.add(cmd)
	cmd.Flags().BoolVar(&asFile, "fixture", false, "write a recorded run for \"tandem test\"")
	cmd.Flags().StringVar(&out, "out", "", "the file to write; standard output when empty")
	cmd.Flags().IntVar(&maxInput, "inputs", 1000, "without --fixture: of how many activations the input is worked out")
	return cmd
}

// writeOut writes a document to a file, or to where output goes. A file is there as a whole or not at all.
func writeOut(stdout io.Writer, file string, data []byte) error {
	if file == "" {
		if _, err := stdout.Write(data); err != nil {
			return fmt.Errorf("write the answer: %w", err)
		}
		return nil
	}
	part := file + ".part"
	if err := os.WriteFile(part, data, 0o600); err != nil {
		return fmt.Errorf("write %q: %w", file, err)
	}
	if err := os.Rename(part, file); err != nil {
		return fmt.Errorf("write %q: %w", file, errors.Join(err, os.Remove(part)))
	}
	return nil
}
