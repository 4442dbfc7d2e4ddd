package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tandem/api"
	"tandem/app"
	"tandem/console/table"
	"tandem/engine"
	"tandem/fault"
	"tandem/fixture"
	"tandem/payload"
	"tandem/trial"
	"tandem/workflow"
)

// FileTest is what became of one test that stands in a workflow's file.
type FileTest struct {
	// File is where it stands, Workflow whose it is, Name its own; without a name it is the file that cannot be used.
	File, Workflow, Name string
	Told                 api.TestResponse
	// Err is why it could not be run.
	Err  error
	Took time.Duration
}

// shown is what a list calls it.
func (t FileTest) shown() string { return strings.Trim(t.File+": "+t.Name, ": ") }

// word is its result.
func (t FileTest) word() string {
	switch {
	case t.Err != nil:
		return "error"
	case t.Told.Passed == nil || !*t.Told.Passed:
		return "differs"
	}
	return "ok"
}

// isWorkflow tells a workflow's file from a fixture.
func isWorkflow(file string) bool {
	if slices.Contains([]string{".yaml", ".yml"}, strings.ToLower(filepath.Ext(file))) {
		return true
	}
	if strings.HasSuffix(file, FixtureSuffix) {
		return false
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return false
	}
	var top map[string]any
	v, err := payload.Decode(data)
	if top, _ = v.(map[string]any); err != nil || top == nil {
		return false
	}
	_, nodes := top["nodes"]
	return nodes
}

// hasTests says that a file in a directory is a workflow with tests. One that cannot be read at all counts if it seems to have some, so
// that a mistake is told.
func hasTests(file string) bool {
	switch strings.ToLower(filepath.Ext(file)) {
	case ".yaml", ".yml", ".json":
	default:
		return false
	}
	data, err := os.ReadFile(file)
	if err != nil || !bytes.Contains(data, []byte("tests")) {
		return false
	}
	source, _ := workflow.Parse(data, workflow.Options{})
	if source == nil {
		return bytes.HasPrefix(data, []byte("tests:")) || bytes.Contains(data, []byte("\ntests:"))
	}
	return len(source.Definition.Tests) > 0 && len(source.Definition.Nodes) > 0
}

// TestFiles runs the tests of workflows' files in this process, in a data directory that is gone afterwards. Nothing with effects runs.
func TestFiles(ctx context.Context, files []string, cache string, limit time.Duration) (list []FileTest, err error) {
	dir, err := os.MkdirTemp("", "tandem-test-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the tests: %w", err)
	}
	c, err := app.NewConnection(ctx, app.Connect{Dir: dir, Make: true, Drives: true, Grace: -1, Options: app.Options{CodeCache: cache}})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	for _, file := range files {
		list = append(list, testFile(ctx, c, file, limit)...)
	}
	return list, errors.Join(c.Close(), os.RemoveAll(dir))
}

func testFile(ctx context.Context, c *app.Connection, file string, limit time.Duration) (list []FileTest) {
	def, report := app.ReadWorkflow(file)
	if def == nil {
		for _, p := range report.Problems {
			if p.Severity != workflow.SeverityWarning {
				message := fmt.Sprintf("%s: %s", p.Path, p.Message)
				if p.Line > 0 {
					message = fmt.Sprintf("line %d: %s", p.Line, message)
				}
				return []FileTest{{File: file, Workflow: "unknown", Err: errors.New(message)}}
			}
		}
	}
	if len(def.Tests) == 0 {
		return []FileTest{{File: file, Workflow: def.Metadata.ID, Err: errors.New(`the workflow has no tests; write some under "tests", or keep one in the editor`)}}
	}
	return RunTests(ctx, c, file, def.Metadata.ID, def, api.TestRequest{Definition: workflow.Encode(def)}, limit)
}

// RunTests runs all tests of a definition, one after the other. The request says where the definition is.
func RunTests(ctx context.Context, c *app.Connection, file, id string, def *workflow.Definition, r api.TestRequest,
	limit time.Duration) (list []FileTest) {
	for i := range def.Tests {
		began := time.Now()
		t := FileTest{File: file, Workflow: id, Name: def.Tests[i].Name}
		r.Test, r.WaitSeconds = t.Name, min(trial.Patience, limit.Seconds())
		if t.Told, t.Err = c.TestWorkflow(ctx, r); t.Err != nil {
			t.Err = errors.New(fault.From(t.Err).Message)
		}
		t.Took = time.Since(began)
		list = append(list, t)
	}
	return list
}

// asCase is a test in the form that reports are written from.
func (t FileTest) asCase() fixture.Case {
	c := fixture.Case{Name: t.shown(), Workflow: t.Workflow,
		Report: fixture.Report{Status: engine.Status(t.Told.Status)}, Err: t.Err, Took: t.Took}
	for _, d := range t.Told.Differences {
		c.Report.Differences = append(c.Report.Differences, fixture.Difference{About: d.About, Node: d.Node, Message: d.String()})
	}
	return c
}

// PrintTests tells what became of tests: a line for each with the differences below it, or an object for each.
func PrintTests(out io.Writer, list []FileTest, asJSON bool) error {
	var b bytes.Buffer
	for _, t := range list {
		if asJSON {
			if err := t.print(&b); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(&b, "%-8s %s", t.word(), table.OneLine(t.shown()))
		if t.Err == nil {
			fmt.Fprintf(&b, " (%s)", t.Told.Status)
		}
		b.WriteString("\n")
		if t.Err != nil {
			fmt.Fprintf(&b, "  %s\n", table.OneLine(t.Err.Error()))
		}
		for _, d := range t.Told.Differences {
			fmt.Fprintf(&b, "  %s\n", table.OneLine(d.String()))
		}
	}
	if _, err := out.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}

func (t FileTest) print(b *bytes.Buffer) error {
	told := struct {
		File        string               `json:"file,omitempty"`
		Workflow    string               `json:"workflow_id"`
		Test        string               `json:"test,omitempty"`
		Result      string               `json:"result"`
		Error       string               `json:"error,omitempty"`
		Status      string               `json:"status,omitempty"`
		Differences []api.TestDifference `json:"differences"`
		DurationMS  int64                `json:"duration_ms"`
	}{File: t.File, Workflow: t.Workflow, Test: t.Name, Result: t.word(), Status: t.Told.Status, Differences: t.Told.Differences,
		DurationMS: t.Took.Milliseconds()}
	if told.Differences == nil {
		told.Differences = []api.TestDifference{}
	}
	if t.Err != nil {
		told.Error = t.Err.Error()
	}
	raw, err := payload.Marshal(told)
	if err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	b.Write(append(raw, '\n'))
	return nil
}

// TestsEnded is how a command that has run tests ends.
func TestsEnded(list []FileTest) error {
	cases := make([]fixture.Case, len(list))
	for i := range list {
		cases[i] = list[i].asCase()
	}
	return played(cases)
}

// TestKept runs the tests of a workflow that is kept: by the server, or in the data directory.
func TestKept(ctx context.Context, c *app.Connection, tty *Terminal, id string, revision int64, asJSON bool) error {
	raw, err := c.Export(ctx, id, revision, true)
	if err != nil {
		return err
	}
	source, problems := workflow.Parse(raw, workflow.Options{})
	if source == nil {
		return fault.Newf(fault.Invalid, "the definition of workflow %q cannot be read: %s", id, problems[0].Message)
	}
	if len(source.Definition.Tests) == 0 {
		return fault.Newf(fault.NotFound, `workflow %q has no tests; write some under "tests", or keep one in the editor`, id)
	}
	list := RunTests(ctx, c, "", id, source.Definition, api.TestRequest{WorkflowID: id, Revision: revision}, trial.Patience*time.Second)
	if err := PrintTests(tty.Out, list, asJSON); err != nil {
		return err
	}
	return TestsEnded(list)
}
