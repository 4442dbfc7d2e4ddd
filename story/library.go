package story

import (
	"context"
	"time"

	"tandem/engine"
	"tandem/host"
	"tandem/human"
	"tandem/identity"
	"tandem/revisions"
	"tandem/store"
)

// Library is where executions are looked up to be told. All of it but WaitAddress must be there.
type Library struct {
	Executions   store.Executions
	Interactions store.Interactions
	Workflows    store.Workflows
	// Source has the rows of executions, Hub those that have just come and what is kept of executions that have ended.
	Source    host.Source
	Hub       *host.Hub
	Revisions Revisions
	// WaitAddress makes the address of a call that ends the wait of an activation; nil: calls do not reach the program.
	WaitAddress func(ref host.Ref, id engine.ActivationID, generation uint32) (string, error)
	// Followed is told that somebody begins to follow an execution, and what it returns that they have left. Nil: nobody wants to know.
	Followed func(host.Ref) (left func())
	// Desk says who may answer a question.
	Desk *human.Desk
	// Now is the clock.
	Now func() time.Time
}

// Revisions finds the revisions that executions are pinned to, as a [revisions.Cache] does.
type Revisions interface {
	Pinned(ctx context.Context, p identity.Principal, workflowID, hash string) (*revisions.Ready, error)
}

// now is the time in Unix milliseconds, as records have it.
func (l *Library) now() int64 { return l.Now().UnixMilli() }
