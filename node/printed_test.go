package node

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"tandem/node/printed"
	"testing"
	"time"
)

// What a run prints is told as it comes, logged by line, without secrets and within bounds, and is not an output of the node.
func TestRun_Prints(t *testing.T) {
	t.Parallel()
	var late func(stream, text string)
	result, e := heard(context.Background(), t, step(func(ctx context.Context, c *Call) (Outcome, error) {
		if _, err := c.Credential(ctx, "c1"); err != nil {
			return nil, err
		}
		c.Print(Stdout, "a canary\npart")
		c.Print(Stdout, "ial\n\n  \nlast")
		c.Print(Stderr, "careful\r\n")
		c.Print(Stdout, "")
		late = c.Print
		return Done{"result": json.RawMessage(`1`)}, nil
	}))
	late(Stdout, "too late\n")
	want := []string{
		`chunk {"stdout":"a ***\npart"}`, `log INFO a *** {"stream":"stdout"}`, `chunk {"stdout":"ial\n\n  \nlast"}`, `log INFO partial {"stream":"stdout"}`,
		`chunk {"stderr":"careful\r\n"}`, `log WARN careful {"stream":"stderr"}`, `log INFO last {"stream":"stdout"}`,
	}
	if !slices.Equal(e.heard, want) {
		t.Errorf("heard\n%s\nwant\n%s", strings.Join(e.heard, "\n"), strings.Join(want, "\n"))
	}
	if got := outputOf(t, result); got != "1" {
		t.Errorf("the output is %s", got)
	}
	_, e = heard(context.Background(), t, step(func(_ context.Context, c *Call) (Outcome, error) {
		c.Print(Stdout, strings.Repeat("x", printed.Max-10)+"\n")
		c.Print(Stdout, strings.Repeat("y", 100))
		c.Print(Stdout, "more")
		return Done{"result": json.RawMessage(`1`)}, nil
	}))
	told := 0
	for _, line := range e.heard {
		told += strings.Count(line, "x") + strings.Count(line, "y")
	}
	if last := e.heard[len(e.heard)-1]; told > 2*printed.Max || !strings.HasPrefix(last, "log WARN more was printed than the log keeps") {
		t.Errorf("%d bytes were told, the last line is %s", told, last)
	}
}

// slow is an interpreter that has to be compiled first.
type slow struct{}

func (slow) Run(_ context.Context, _ string, _ time.Time, _ string, c Code) (CodeResult, error) {
	c.Waiting("it is being compiled")
	c.Printed(Stdout, "one\n")
	return CodeResult{Value: json.RawMessage("1")}, nil
}

// A caller that waits for an interpreter is told so, and what code prints belongs to its node, whoever calls it.
func TestRun_WaitsForAnInterpreter(t *testing.T) {
	t.Parallel()
	e := &ear{}
	x := &run{job: Job{Out: e, Code: slow{}}, ctx: context.Background()}
	if _, err := x.code(context.Background(), Code{Language: "python"}); err != nil {
		t.Fatal(err)
	}
	want := []string{`log INFO it is being compiled null`, `chunk {"waits_for":"it is being compiled"}`, `chunk {"stdout":"one\n"}`, `log INFO one {"stream":"stdout"}`}
	if !slices.Equal(e.heard, want) {
		t.Errorf("heard\n%s\nwant\n%s", strings.Join(e.heard, "\n"), strings.Join(want, "\n"))
	}
}
