package console

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

	"tandem/app"
	"tandem/console/table"
	"tandem/fault"
	"tandem/fixture"
	"tandem/payload"
	"tandem/workflow"
)

// ErrUnusable ends a test run in which something could not be played; what is wrong has been said.
var ErrUnusable = errors.New("unusable")

// FixtureSuffix is how files are called that a directory is searched for.
const FixtureSuffix = ".tandem.json"

// fixtures lists the files that arguments stand for.
func fixtures(args []string) ([]string, error) {
	var files []string
	for _, arg := range args {
		info, err := os.Stat(arg)
		if err != nil || !info.IsDir() {
			files = append(files, arg) // one that is not there is reported like one that cannot be used
			continue
		}
		found := len(files)
		err = filepath.WalkDir(arg, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && (strings.HasSuffix(path, FixtureSuffix) || hasTests(path)) {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read %q: %w", arg, err)
		}
		if len(files) == found {
			return nil, fmt.Errorf("the directory %q has no file that ends in %s, and no workflow with tests", arg, FixtureSuffix)
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
	for _, c := range cases {
		word := wordOf(c)
		if asJSON {
			if err := printCase(&b, c, word); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(&b, "%-8s %s", word, table.OneLine(c.Name))
		if c.Err == nil {
			fmt.Fprintf(&b, " (%s, %d answered, %d computed)", c.Report.Status, c.Report.Answered, c.Report.Computed)
		}
		b.WriteString("\n")
		if c.Err != nil {
			fmt.Fprintf(&b, "  %s\n", table.OneLine(c.Err.Error()))
		}
		for _, d := range c.Report.Differences {
			fmt.Fprintf(&b, "  %s\n", table.OneLine(d.String()))
		}
	}
	if _, err := out.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}

// wordOf is the result of a fixture.
func wordOf(c fixture.Case) string {
	switch {
	case c.Err != nil:
		return "error"
	case !c.Report.Same():
		return "differs"
	}
	return "ok"
}

// printCounts says how many there were of each result.
func printCounts(out io.Writer, cases []fixture.Case) error {
	counts := map[string]int{}
	for _, c := range cases {
		counts[wordOf(c)]++
	}
	if _, err := fmt.Fprintf(out, "%d the same, %d different, %d unusable\n", counts["ok"], counts["differs"],
		counts["error"]); err != nil {
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
		return ErrUnusable
	}
	if slices.ContainsFunc(cases, func(c fixture.Case) bool { return !c.Report.Same() }) {
		return ErrReported
	}
	return nil
}

// Replay is how fixtures are played again.
type Replay struct {
	// Workflow is a file with the workflow to play with; empty: what was recorded.
	Workflow string
	// Cache is where compiled interpreters are kept, Limit how long one fixture may take.
	Cache string
	Limit time.Duration
	// JUnit is a file for a report in JUnit's XML; empty: none. JSON prints an object for each fixture.
	JUnit string
	JSON  bool
}

// Test plays fixtures and runs the tests of workflows' files, files and directories of both, and says what is different from what was
// recorded or is expected.
func Test(ctx context.Context, tty *Terminal, paths []string, r Replay) error {
	files, err := fixtures(paths)
	if err != nil {
		return Usage(err)
	}
	var recorded, written []string
	for _, name := range files {
		if isWorkflow(name) {
			written = append(written, name)
		} else {
			recorded = append(recorded, name)
		}
	}
	if r.Workflow != "" && len(written) > 0 {
		return Usage(fmt.Errorf("--workflow is what fixtures are played with, and %q is a workflow with tests of its own; leave one of them out", written[0]))
	}
	cases, err := r.play(ctx, tty, recorded)
	if err != nil {
		return err
	}
	var tests []FileTest
	if len(written) > 0 {
		if tests, err = TestFiles(ctx, written, r.Cache, r.Limit); err != nil {
			return Problem(err)
		}
	}
	if err := printCases(tty.Out, cases, r.JSON); err != nil {
		return Problem(err)
	}
	if err := PrintTests(tty.Out, tests, r.JSON); err != nil {
		return Problem(err)
	}
	for _, t := range tests {
		cases = append(cases, t.asCase())
	}
	if r.JUnit != "" {
		var b bytes.Buffer
		if err := fixture.WriteJUnit(&b, cases); err != nil {
			return Problem(err)
		}
		if err := WriteOut(nil, r.JUnit, b.Bytes()); err != nil {
			return Problem(err)
		}
	}
	if !r.JSON {
		if err := printCounts(tty.Out, cases); err != nil {
			return Problem(err)
		}
	}
	return played(cases)
}

// play plays fixtures.
func (r Replay) play(ctx context.Context, tty *Terminal, files []string) (cases []fixture.Case, err error) {
	if len(files) == 0 {
		return nil, nil
	}
	var def *workflow.Definition
	if r.Workflow != "" {
		var report app.Report
		if def, report = app.ReadWorkflow(r.Workflow); def == nil {
			PrintProblems(tty, report)
			return nil, ErrUnusable
		}
	}
	player := app.NewPlayer(r.Cache)
	defer player.Close()
	for _, name := range files {
		if ctx.Err() != nil {
			return nil, Problem(context.Cause(ctx))
		}
		cases = append(cases, play(ctx, player, name, def, r.Limit))
	}
	return cases, nil
}
