package code

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"tandem/fault"
	"tandem/shortage"
)

// How long is waited for what should come at once: the warden's end after it was asked to end everything, and the ends of
// the outputs after the warden has gone.
const (
	wardenDelay = 5 * time.Second
	pipeDelay   = time.Second
)

// run has a warden start the process in a group of its own, under its limits, and returns when nothing of it is left. An
// error before the process was started says so by its code; one after that is timeout, canceled or outcome_unknown.
func (p *process) run(ctx context.Context) (processEnd, error) {
	leashR, leash, err := os.Pipe()
	if err != nil {
		return processEnd{}, shortage.Or(err, fault.New(fault.Internal, "the process could not be started"))
	}
	reports, reportsW, err := os.Pipe()
	if err != nil {
		return processEnd{}, shortage.Or(errors.Join(err, leashR.Close(), leash.Close()),
			fault.New(fault.Internal, "the process could not be started"))
	}
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{"tandem", wardenArg}, Env: []string{}, Stdin: strings.NewReader(p.stdin),
		Stdout: &p.stdout, Stderr: &p.stderr,
		// The directory is open already, and found in the new process under its number.
		Dir:        fmt.Sprintf("/proc/self/fd/%d", p.dir.Fd()),
		ExtraFiles: []*os.File{leashR, reportsW}, WaitDelay: pipeDelay,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	err = cmd.Start()
	err = errors.Join(err, leashR.Close(), reportsW.Close())
	if err != nil {
		return processEnd{}, shortage.Or(errors.Join(err, leash.Close(), reports.Close()),
			fault.New(fault.Internal, "the process could not be started"))
	}
	report, why := p.await(ctx, cmd.Process, leash, reports)
	// The report was the last that the warden had to do.
	if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		why = errors.Join(why, err)
	}
	waited := cmd.Wait()
	if cerr := errors.Join(leash.Close(), reports.Close()); cerr != nil && !errors.Is(cerr, os.ErrClosed) {
		waited = errors.Join(waited, cerr)
	}
	switch {
	case report.Refused != nil: // it has not run
		return processEnd{code: -1}, fault.New(report.Refused.Code, report.Refused.Message).WithDetail(report.Refused.Detail)
	case !report.Ready:
		return processEnd{code: -1}, fault.New(fault.Internal, "the process could not be started: this program's main does not begin with builtin.IsWarden").WithCause(waited)
	case !report.Ended && why != nil:
		return processEnd{code: -1}, fault.New(fault.OutcomeUnknown, "the process could not be ended").WithCause(errors.Join(why, waited))
	case !report.Ended:
		return processEnd{code: -1}, fault.New(fault.OutcomeUnknown, "how the process ended could not be seen").WithCause(waited)
	case report.Stopped && why != nil:
		return processEnd{code: -1}, why
	}
	return processEnd{code: report.Code, signal: report.Signal, cpu: report.CPU}, nil
}

// await gives the warden its orders and waits for its last report. When there is no more time it lets go of the leash,
// and why says what for.
func (p *process) await(ctx context.Context, warden *os.Process, leash, reports *os.File) (last wardenReport, why error) {
	told := make(chan wardenReport, 1)
	go func() { // it ends with the warden
		var r wardenReport
		for d := json.NewDecoder(io.LimitReader(reports, 1<<20)); !r.Ended && r.Refused == nil; {
			if d.Decode(&r) != nil {
				break // it is gone
			}
		}
		told <- r
	}()
	clock := time.NewTimer(time.Until(p.until))
	defer clock.Stop()
	// A warden that does not read is one that ends, or is ended below.
	err := leash.SetWriteDeadline(p.until)
	if err == nil {
		err = json.NewEncoder(leash).Encode(wardenOrders{
			Path: p.path, Args: p.args, Env: p.env, Remove: p.remove, Seconds: uint64(p.timeout/time.Second) + 1,
			Memory: p.limits.memory, OpenFiles: p.limits.openFiles, Processes: p.limits.processes, FileSize: p.limits.fileSize,
		})
	}
	if err == nil {
		select {
		case last = <-told:
			return last, nil
		case <-clock.C:
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		why = fault.New(fault.Canceled, "the process was ended because its attempt was stopped").WithCause(context.Cause(ctx))
	} else {
		why = fault.Newf(fault.Timeout, "the process took longer than %v and was ended; what it had done by then stays. Raise timeout or make the work smaller", p.timeout.Round(100*time.Millisecond)).Final()
	}
	why = errors.Join(why, leash.Close())
	patience := time.NewTimer(wardenDelay)
	defer patience.Stop()
	select {
	case last = <-told:
	case <-patience.C:
		why = errors.Join(why, warden.Kill())
		last = <-told
	}
	return last, why
}
