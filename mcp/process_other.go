//go:build !linux

package mcp

import (
	"errors"
	"os"
	"os/exec"
)

// start starts the process. On this system what it starts itself cannot be found again, so only the process is ended.
func (p *process) start() error {
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go func() {
		p.waited = p.cmd.Wait()
		close(p.exited)
	}()
	return nil
}

func (p *process) reap() error {
	if _, ok := errors.AsType[*exec.ExitError](p.waited); ok {
		return nil // how a server ends says nothing
	}
	return p.waited
}

func (p *process) terminate() {
	if p.cmd.Process.Signal(os.Interrupt) == nil && await(p.exited, termGrace) {
		return
	}
	_ = p.cmd.Process.Kill() // it may have ended by itself
	<-p.exited
}
