package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"tandem/api"
	"tandem/app"
	"tandem/client"
	"tandem/console/table"
	"tandem/fault"
	"tandem/payload"
	"tandem/store"
)

// left makes of somebody who does not answer, or interrupts, an end that can be gone on with.
func left(ctx context.Context, err error) error {
	if err != nil && (errors.Is(err, app.ErrAsked) || ctx.Err() != nil) {
		return ErrParked
	}
	return err
}

// ChangeQuestion does something with a question, which is found by its id or the beginning of it, and says how it stands then. Done is what
// to say of one that still waits.
func ChangeQuestion(ctx context.Context, tty *Terminal, c *app.Connection, show *table.Listing, id, done string,
	do func(ctx context.Context, d api.InteractionDetail) (api.Interaction, error)) error {
	d, err := FindInteraction(ctx, c, id)
	if err != nil {
		return err
	}
	after, err := do(ctx, d)
	if err != nil {
		return err
	}
	if done == "" || after.Status != string(store.InteractionPending) {
		return responded(tty, c, show, after)
	}
	return show.Show(tty.Out, after, func(w *tabwriter.Writer) {
		fmt.Fprintf(w, "%s: %s (%s)\n", after.ID, done, title(&after))
	})
}

// findResponse finds a reply by its id or the beginning of it.
func findResponse(d *api.InteractionDetail, id string) (string, error) {
	var found []string
	for _, r := range d.Responses {
		if strings.HasPrefix(r.ID, id) {
			found = append(found, r.ID)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return "", fault.Newf(fault.Conflict, "%d responses have an id that begins with %q; write more of it", len(found), id)
	}
	return "", fault.Newf(fault.NotFound, "question %q has no response %q; \"tandem inbox show %s\" lists them", d.ID, id, d.ID)
}

// WatchInbox prints what the stream of questions tells until the context ends, which is [ErrParked].
func WatchInbox(ctx context.Context, tty *Terminal, c *app.Connection, asJSON bool) error {
	if c.Local() {
		return fault.New(fault.Unsupported, "no process works on this data directory, so nothing will be asked; watch a server with --server, or list what waits with: tandem inbox")
	}
	err := c.WatchInbox(ctx, (&inboxWatcher{out: tty.Out, json: asJSON}).frame)
	if ctx.Err() != nil {
		return ErrParked
	}
	return err
}

// inboxWatcher prints what the stream of questions tells. Known are the ones that were printed and have not ended.
type inboxWatcher struct {
	out   io.Writer
	json  bool
	known []api.Interaction
}

func (w *inboxWatcher) frame(f client.InboxFrame) error {
	if w.json {
		var frame struct {
			Event string `json:"event"`
			Data  any    `json:"data"`
		}
		if frame.Event, frame.Data = "snapshot", f.Snapshot; f.Event != nil {
			frame.Event, frame.Data = "interaction", f.Event
		}
		raw, err := payload.Marshal(frame)
		if err == nil {
			_, err = w.out.Write(append(raw, '\n'))
		}
		if err != nil {
			return fmt.Errorf("write what is asked: %w", err)
		}
		return nil
	}
	if f.Event != nil {
		return w.tellInteraction(f.Event.Interaction)
	}
	now := f.Snapshot.Interactions
	if len(now) == f.Snapshot.TotalCount { // what ended while the connection was broken
		for _, i := range slices.Clone(w.known) {
			if !slices.ContainsFunc(now, func(o api.Interaction) bool { return o.ID == i.ID }) {
				i.Status = "over"
				if err := w.tellInteraction(i); err != nil {
					return err
				}
			}
		}
	}
	for _, i := range now {
		if err := w.tellInteraction(i); err != nil {
			return err
		}
	}
	return nil
}

// tellInteraction prints a line about a question, unless nothing about it is new.
func (w *inboxWatcher) tellInteraction(i api.Interaction) error {
	at := slices.IndexFunc(w.known, func(o api.Interaction) bool { return o.ID == i.ID })
	word := i.Status
	switch pending := i.Status == string(store.InteractionPending); {
	case pending && at >= 0:
		return nil
	case pending:
		w.known = append(w.known, i)
		word = "asks"
	case at >= 0:
		w.known = slices.Delete(w.known, at, at+1)
	}
	line := fmt.Sprintf("%-9s  %s  %d  %s: %s", word, i.ID, i.Priority, table.OneLine(from(&i)), listedTitle(&i))
	if left := timeLeft(&i, time.Now()); left != "" {
		line += ", " + left + " left"
	}
	if _, err := fmt.Fprintln(w.out, line); err != nil {
		return fmt.Errorf("write what is asked: %w", err)
	}
	return nil
}

// OverruleReply corrects how a reply in prose was understood: it counts no longer or, with an answer, as that. The reply is found by its id
// or the beginning of it.
func OverruleReply(ctx context.Context, c *app.Connection, d api.InteractionDetail, id string, f *Answer,
	reason string) (api.Interaction, error) {
	response, err := findResponse(&d, id)
	if err != nil {
		return api.Interaction{}, err
	}
	r := api.OverruleRequest{Reason: reason}
	if f.Given() {
		q, err := newQuestion(d.Interaction, UserLanguage())
		if err != nil {
			return api.Interaction{}, err
		}
		if r.ResponseData, err = f.readAnswer(q); err != nil {
			return api.Interaction{}, err
		}
	}
	return c.Overrule(ctx, d.ID, response, r)
}
