package local

import (
	"context"
	"fmt"

	"tandem/engine"
	"tandem/identity"
	"tandem/store"
)

// TakeUp goes on with an execution that was under way when a process ended, and with the ones it waits for. It is for idle hosts.
func (h *Host) TakeUp(ctx context.Context, p identity.Principal, execution string) error {
	e, err := h.opts.Executions.Get(ctx, p, execution)
	if err != nil || h.resting.Load() {
		return err
	}
	wanted := map[store.Ref]engine.Status{}
	if err := h.family(ctx, p, e, wanted); err != nil {
		return err
	}
	if err := h.setTimers(ctx, identity.System(p.Workspace), wanted); err != nil {
		return err
	}
	var suspects []store.Ref
	for ref := range wanted { // order does not matter: they are waited for together
		h.own.Store(ref, struct{}{})
		if h.register.Leaves(ref) {
			suspects = append(suspects, ref)
		}
	}
	h.trials.beginTrials(suspects)
	for ref, status := range wanted { // order does not matter: each has an owner of its own
		h.bring(ref, status)
	}
	return nil
}

// family adds an execution that has not ended and its children.
func (h *Host) family(ctx context.Context, p identity.Principal, e store.Execution, all map[store.Ref]engine.Status) error {
	if e.Status.Final() {
		return nil
	}
	all[store.Ref{Workspace: p.Workspace, Execution: e.ID}] = e.Status
	const size = 100
	for number := 1; ; number++ {
		page, err := h.opts.Executions.List(ctx, p, store.ExecutionQuery{Parent: e.ID, Page: store.Page{Number: number, Size: size}})
		if err != nil {
			return fmt.Errorf("read the children of execution %q: %w", e.ID, err)
		}
		for _, child := range page.Executions {
			if err := h.family(ctx, p, child, all); err != nil {
				return err
			}
		}
		if number*size >= page.Total {
			return nil
		}
	}
}

// setTimers sets the timers of some executions.
func (h *Host) setTimers(ctx context.Context, p identity.Principal, wanted map[store.Ref]engine.Status) error {
	const size = 1000
	for after := (store.Timer{}); ; {
		list, err := h.opts.Timers.Upcoming(ctx, p, after, size)
		if err != nil {
			return fmt.Errorf("read timers: %w", err)
		}
		for _, t := range list {
			ref := store.Ref{Workspace: t.Workspace, Execution: t.Execution}
			if _, ok := wanted[ref]; ok {
				h.setTimer(t)
			}
		}
		if len(list) < size {
			return nil
		}
		after = list[len(list)-1]
	}
}

// bring lets an owner read an execution's journal and go on with it.
func (h *Host) bring(ref store.Ref, status engine.Status) {
	if status == engine.StatusPending {
		h.post(ref, admitted{})
	} else {
		h.post(ref, wanted{})
	}
	h.post(ref, delivered{}) // there may be something in the inbox
}
