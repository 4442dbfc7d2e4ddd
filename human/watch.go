package human

import (
	"context"

	"tandem/human/watching"
	"tandem/identity"
	"tandem/store"
)

// Event says that a question was asked, has changed or has ended, after that was written. An event without an interaction says
// that some were missed.
type Event struct {
	Interaction store.Interaction
}

// Watch follows the questions of a workspace. The events end with stop, or with the desk. Missed says whether events were missed
// since its last call; a reader calls it before it assumes that it has seen everything.
func (b *backroom) Watch(workspace string) (events <-chan Event, missed func() bool, stop func()) {
	return b.watchers.Watch(workspace)
}

// tellWatchers hands an event to those who watch its workspace.
func (b *backroom) tellWatchers(e Event) {
	b.watchers.Publish(e.Interaction.Workspace, e)
	if e.Interaction.Status != store.InteractionPending {
		b.ears.Wake() // perhaps there is nothing to listen for any more
	}
}

// Recorded is called after an append has opened or withdrawn questions. Watchers get events for them; the caller does not wait.
func (b *backroom) Recorded(workspace string, ids ...string) {
	b.Look()
	b.watchers.Record(workspace, ids...)
}

// tellRecorded sends watchers the event of a question that was recorded.
func (b *backroom) tellRecorded(ctx context.Context, one watching.Recorded) error {
	i, err := b.o.Interactions.Get(ctx, identity.System(one.Workspace), one.ID)
	if err != nil {
		if ctx.Err() == nil {
			b.o.Log.Error("a question cannot be read; those who watch miss it", "workspace", one.Workspace, "interaction", one.ID, "error", err)
		}
		return err
	}
	b.tellWatchers(Event{Interaction: i})
	return nil
}
