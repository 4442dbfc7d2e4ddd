package benchmark

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"tandem/app"
	"tandem/fault"
	"tandem/host"
)

// wake wakes some executions one by one and then all that are left.
func (r *scaleRun) wake(ctx context.Context) error {
	r.reading.Store(true)
	var took []time.Duration
	singles := r.singles()
	every := r.Parked / singles // spread over all, so that none is at hand because of the one before
	for n := range singles {
		begin := time.Now()
		if err := r.signal(ctx, scaleName(scaleFlow, n*every)); err != nil {
			return err
		}
		if err := r.next(ctx); err != nil {
			return err
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	r.report.WakeP50MS, r.report.WakeP99MS = milliseconds(took[len(took)/2]), milliseconds(took[len(took)*99/100])
	left := slices.DeleteFunc(upTo(r.Parked), func(n int) bool { return n%every == 0 && n/every < singles })

	var p pace
	turn := r.Turn
	if turn == 0 {
		turn = max(1, len(left))
	}
	for some := range slices.Chunk(left, turn) {
		if r.Next != nil {
			if err := r.Next(); err != nil {
				return err
			}
		}
		if err := r.wakeAll(ctx, some, &p); err != nil {
			return err
		}
	}
	r.report.Count, r.report.Seconds, r.spent, r.report.StallMS = p.count, p.took.Seconds(), p.spent, milliseconds(p.stall)
	return nil
}

// pace is how fast executions were woken.
type pace struct {
	count       int
	took, spent time.Duration
	stall       time.Duration // the longest time in which none ended
}

// wakeAll wakes executions, many at once, waits for their ends, and adds how long that took.
func (r *scaleRun) wakeAll(ctx context.Context, those []int, p *pace) error {
	begin, spent := time.Now(), processTime()
	ctx, failed := context.WithCancelCause(ctx)
	defer failed(nil)
	done := make(chan error, 1)
	go func() {
		err := inTurn(len(those), func(i int) error { return r.signal(ctx, scaleName(scaleFlow, those[i])) })
		if err != nil {
			failed(err) // nobody waits for those that were not woken
		}
		done <- err
	}()
	last := begin
	for range those {
		if err := r.next(ctx); err != nil {
			return err
		}
		now := time.Now()
		p.stall = max(p.stall, now.Sub(last))
		last = now
	}
	p.count += len(those)
	p.took += time.Since(begin)
	p.spent += processTime() - spent
	return <-done
}

func (r *scaleRun) signal(ctx context.Context, id string) error {
	_, err := r.Host().Act(ctx, app.Local(), host.Request{Execution: id, Action: host.ActionSignal, Node: "wait", Signal: "go",
		Value: json.RawMessage(`{"ok":true}`)})
	return err
}

// next waits for the end of an execution.
func (r *scaleRun) next(ctx context.Context) error {
	for {
		select {
		case <-r.ended:
			return nil
		case <-r.waits:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Beside a number of executions that are woken, a smaller one is in so many turns.
const scaleTurns = 10

// beside is the measurement of the second directory.
func (s Scale) beside() Scale {
	return Scale{Dir: filepath.Join(s.Dir, "beside"), Parked: s.Beside, Iterations: 1, Turn: s.Beside / scaleTurns}
}

// checkBeside refuses a second directory that cannot be measured, or is not in any of the phases.
func (s Scale) checkBeside(phases []string) error {
	switch {
	case s.Beside == 0:
		return nil
	case !slices.Contains(phases, "wake"):
		return fault.New(fault.Invalid, "--beside is about executions that are woken; name the phase wake in --phases, too, or leave out --beside")
	case s.Database != "" || s.Temporal != nil:
		return fault.New(fault.Invalid, "--beside is measured on SQLite; leave out --database and --engine")
	case s.Beside <= s.singles() || s.Beside > s.Parked:
		return fault.Newf(fault.Invalid, "--beside is %d; it must be more than %d and at most --parked, %d", s.Beside, s.singles(), s.Parked)
	}
	return nil
}

// wakeInTurns wakes the executions of both directories, each in a process of its own, of which one waits while the other works.
func wakeInTurns(ctx context.Context, stderr io.Writer, s Scale) (reports [2]ScaleReport, err error) {
	small := s.beside()
	s.Turn = small.Turn // of the same size, so that both begin and end as often for each execution
	var first, second turns
	if err := first.start(ctx, stderr, s); err != nil {
		return reports, err
	}
	defer func() { err = errors.Join(err, first.end()) }()
	if err := second.start(ctx, stderr, small); err != nil {
		return reports, err
	}
	defer func() { err = errors.Join(err, second.end()) }()
	for first.report == nil || second.report == nil {
		for range s.Parked / s.Beside {
			if err := first.take(); err != nil {
				return reports, err
			}
		}
		if err := second.take(); err != nil {
			return reports, err
		}
	}
	return [2]ScaleReport{*first.report, *second.report}, nil
}

// turns is a process that wakes executions when it is its turn.
type turns struct {
	child  *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Scanner
	report *ScaleReport // when all are woken
}

// start starts the process and returns when it waits for its first turn.
func (c *turns) start(ctx context.Context, stderr io.Writer, s Scale) (err error) {
	if c.child, err = phaseProcess(ctx, stderr, "wake", s); err != nil {
		return err
	}
	if c.in, err = c.child.StdinPipe(); err != nil {
		return err
	}
	out, err := c.child.StdoutPipe()
	if err != nil {
		return err
	}
	c.out = bufio.NewScanner(out)
	if err := c.child.Start(); err != nil {
		return err
	}
	if err := c.hear(); err != nil {
		return errors.Join(err, c.end())
	}
	return nil
}

// take lets it work until it waits again, or has woken all. If it has, there is nothing to do.
func (c *turns) take() error {
	if c.report != nil {
		return nil
	}
	if _, err := io.WriteString(c.in, "\n"); err != nil {
		return err
	}
	return c.hear()
}

// hear reads a line: that it waits, or what it has measured.
func (c *turns) hear() error {
	if !c.out.Scan() {
		return fmt.Errorf("phase %q: it says no more: %w", "wake", cmp.Or(c.out.Err(), io.ErrUnexpectedEOF))
	}
	if c.out.Text() == itsTurn {
		return nil
	}
	return json.Unmarshal(c.out.Bytes(), &c.report)
}

// end returns when the process has ended. One that waits for its turn does so when nobody can give it one.
func (c *turns) end() error {
	if err := c.in.Close(); err != nil {
		return err
	}
	return c.child.Wait()
}

// itsTurn is what a process writes that waits for its turn.
const itsTurn = "waits for its turn"

// InTurns makes a phase say to out when it waits for its turn, which is given to it by a line on in.
func (s *Scale) InTurns(in io.Reader, out io.Writer) {
	lines := bufio.NewScanner(in)
	s.Next = func() error {
		if _, err := fmt.Fprintln(out, itsTurn); err != nil {
			return err
		}
		if !lines.Scan() {
			return cmp.Or(lines.Err(), io.ErrUnexpectedEOF)
		}
		return nil
	}
}

// upTo is the numbers from 0 to one below n.
func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}
