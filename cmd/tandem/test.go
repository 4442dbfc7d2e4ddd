package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tandem/app"
	"tandem/fault"
	"tandem/fixture"
	"tandem/payload"
	"tandem/workflow"
)

// errUnusable ends a test run in which something could not be played; what is wrong has been said.
var errUnusable = errors.New("unusable")

// fixtureSuffix is how files are called that a directory is searched for.
const fixtureSuffix = ".tandem.json"

func newTest() *cobra.Command {
	var (
		file, junit, cache string
		asJSON             bool
		limit              time.Duration
	)
	cmd := &cobra.Command{
		Use:   "test FIXTURE...",
		Short: "Play recorded runs again and report what is different",
		Long: `Test plays fixtures ("tandem export EXECUTION --fixture") without a network, a data directory or
waiting. Models, services, databases, tools and people are answered from the recording; expressions,
conversions and code really run. It reports what a node now asks that it did not ask, nodes that take
place or no longer do, other ends and other outputs.

With --workflow the fixtures are played with another workflow than they were recorded with: does what
I have changed still do the same?

A directory stands for the files in it that end in ` + fixtureSuffix + `.

Exit status: 0 when nothing differs, 1 when something does, 2 when a fixture or the workflow cannot be
used or the command is called wrongly.`,
		Example: "  tandem test order.tandem.json\n  tandem test fixtures/ --workflow order.yaml --junit report.xml",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("test needs fixtures, or directories of them")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			files, err := fixtures(args)
			if err != nil {
				return usageError{err}
			}
			var def *workflow.Definition
			if file != "" {
				var report app.Report
				if def, report = app.ReadWorkflow(file); def == nil {
					printProblems(cmd, cmd.ErrOrStderr(), report)
					return errUnusable
				}
			}
			player := app.NewPlayer(cache)
			defer player.Close()
			var cases []fixture.Case
			for _, name := range files {
				if ctx.Err() != nil {
					return problemError{context.Cause(ctx)}
				}
				cases = append(cases, play(ctx, player, name, def, limit))
			}
			if junit != "" {
				var b bytes.Buffer
				if err := fixture.WriteJUnit(&b, cases); err != nil {
					return problemError{err}
				}
				if err := writeOut(nil, junit, b.Bytes()); err != nil {
					return problemError{err}
				}
			}
			if err := printCases(cmd.OutOrStdout(), cases, asJSON); err != nil {
				return problemError{err}
			}
			return played(cases)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&file, "workflow", "", "play with this workflow file instead of the recorded one")
	flags.StringVar(&junit, "junit", "", "write a report in JUnit's XML to this file")
	flags.BoolVar(&asJSON, "json", false, "print one JSON object per fixture")
	flags.DurationVar(&limit, "timeout", 2*time.Minute, "how long one replay may take")
	flags.StringVar(&cache, "cache", os.Getenv("TANDEM_CACHE"), "where compiled interpreters are kept; the user's cache directory when empty (TANDEM_CACHE)")
	return cmd
}

// fixtures lists the files that arguments stand for.
func fixtures(args []string) ([]string, error) {
	var files []string
	for _, arg := range args {
		info, err := os.Stat(arg)
		if err != nil || !info.IsDir() {
			files = append(files, arg) // one that is not there is told like one that cannot be used
			continue
		}
		found := len(files)
		err = filepath.WalkDir(arg, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && strings.HasSuffix(path, fixtureSuffix) {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read %q: %w", arg, err)
		}
		if len(files) == found {
			return nil, fmt.Errorf("the directory %q has no file that ends in %s", arg, fixtureSuffix)
		}
	}
	return files, nil
}

// play plays one fixture.
func play(ctx context.Context, player *app.Player, name string, def *workflow.Definition, limit time.Duration) fixture.Case {
	began := time.Now()
	c := fixture.Case{Name: name, Workflow: "unknown"}
	f, err := fixture.Load(name)
	if err == nil {
		c.Workflow = f.Execution.WorkflowID
		ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took longer than %s", limit))
		defer cancel()
		c.Report, err = player.Play(ctx, f, def)
	}
	if err != nil {
		c.Err = errors.New(fault.From(err).Message)
	}
	c.Took = time.Since(began)
	return c
}

func printCases(out io.Writer, cases []fixture.Case, asJSON bool) error {
	var b bytes.Buffer
	counts := map[string]int{}
	for _, c := range cases {
		word := "ok"
		switch {
		case c.Err != nil:
			word = "error"
		case !c.Report.Same():
			word = "differs"
		}
		counts[word]++
		if asJSON {
			if err := printCase(&b, c, word); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(&b, "%-8s %s", word, oneLine(c.Name))
		if c.Err == nil {
			fmt.Fprintf(&b, " (%s, %d answered, %d computed)", c.Report.Status, c.Report.Answered, c.Report.Computed)
		}
		b.WriteString("\n")
		if c.Err != nil {
			fmt.Fprintf(&b, "  %s\n", oneLine(c.Err.Error()))
		}
		for _, d := range c.Report.Differences {
			fmt.Fprintf(&b, "  %s\n", oneLine(d.String()))
		}
	}
	if !asJSON {
		fmt.Fprintf(&b, "%d the same, %d different, %d unusable\n", counts["ok"], counts["differs"], counts["error"])
	}
	if _, err := out.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}

func printCase(b *bytes.Buffer, c fixture.Case, word string) error {
	told := struct {
		Fixture  string `json:"fixture"`
		Workflow string `json:"workflow_id"`
		Result   string `json:"result"`
		Error    string `json:"error,omitempty"`
		fixture.Report
		DurationMS int64 `json:"duration_ms"`
	}{Fixture: c.Name, Workflow: c.Workflow, Result: word, Report: c.Report, DurationMS: c.Took.Milliseconds()}
	if told.Differences == nil {
		told.Differences = []fixture.Difference{}
	}
	if c.Err != nil {
		told.Error = c.Err.Error()
	}
	raw, err := payload.Marshal(told)
	if err == nil {
		_, err = b.Write(append(raw, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}

// played is how the command ends.
func played(cases []fixture.Case) error {
	if slices.ContainsFunc(cases, func(c fixture.Case) bool { return c.Err != nil }) {
		return errUnusable
	}
	if slices.ContainsFunc(cases, func(c fixture.Case) bool { return !c.Report.Same() }) {
		return errReported
	}
	return nil
}
