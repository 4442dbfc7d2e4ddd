package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"tandem/api"
	"tandem/fault"
	"tandem/human"
	"tandem/identity"
	"tandem/route"
	"tandem/store"
	"tandem/story"
)

// The frames of the stream of questions.
const (
	frameSnapshot    = "snapshot"
	frameInteraction = "interaction"
)

// interactionStream registers the stream of the caller's questions.
func (s *Server) interactionStream() {
	s.Stream(huma.Operation{
		Method: http.MethodGet, Path: "/interactions/stream", OperationID: "follow-interactions", Summary: "Follow the questions that wait for oneself, by server-sent events", Tags: []string{"interactions"},
		Description: "The first frame is a snapshot (an InteractionSnapshot): everything pending that the caller is asked. Then one interaction frame (an InteractionEvent) for each that is new, has changed or has ended. " +
			"Frames have no ids: who connects again begins with a snapshot, and so does a reader that was too slow. Comments keep the connection alive. The stream ends when the caller may not read any more.",
		Responses: map[string]*huma.Response{
			"200": {Description: "Frames: event (snapshot, interaction) and data (JSON in one line).", Content: map[string]*huma.MediaType{"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString}}}},
		},
	}, route.Readers(), s.serveInteractions)
}

func (s *Server) serveInteractions(w http.ResponseWriter, r *http.Request, p identity.Principal) error {
	ctx, done, err := s.open.addStream(r.Context())
	if err != nil {
		return err
	}
	defer done()
	// First the subscription: what is read later than that cannot have missed anything.
	events, missed, stop := s.o.Desk.Watch(p.Workspace)
	defer stop()
	f := &inboxFeed{s: s, p: p, mine: map[string]bool{}}
	first, err := f.snapshot(ctx)
	if err != nil {
		return err
	}
	out := s.beginEvents(w)
	defer out.end()
	if err := out.send([]story.Frame{first}); err != nil {
		return err
	}
	return f.follow(ctx, out, events, missed)
}

// inboxFeed is what one reader knows about the questions of one user. It is not safe for concurrent use.
type inboxFeed struct {
	s     *Server
	p     identity.Principal
	seats []string
	// mine are the pending questions that the reader has seen. It is sent their end too, even if the user is not asked any more.
	mine map[string]bool
}

func (f *inboxFeed) follow(ctx context.Context, out *sseWriter, events <-chan human.Event, missed func() bool) error {
	alive := time.NewTicker(streamKeepAlive)
	defer alive.Stop()
	for {
		var frames []story.Frame
		behind := false
		select {
		case <-ctx.Done(): // the reader has gone, or the server stops
			return f.s.leave(out)
		case <-alive.C:
			if gone, err := f.look(ctx); gone || err != nil {
				return err
			}
			out.comment("alive")
		case e, open := <-events:
			if !open {
				return nil
			}
			if behind = e.Interaction.ID == ""; behind {
				break
			}
			frame, ok, err := f.event(ctx, e.Interaction)
			if err != nil {
				return err
			}
			if ok {
				frames = append(frames, frame)
			}
		}
		if missed() || behind {
			again, err := f.snapshot(ctx)
			if err != nil {
				return err
			}
			frames = []story.Frame{again}
		}
		if err := out.send(frames); err != nil {
			return err
		}
	}
}

// look finds out again who the reader is: roles and addresses change, and a user may be gone.
func (f *inboxFeed) look(ctx context.Context) (gone bool, err error) {
	user, err := f.s.o.Stores.Users.Get(ctx, f.p, f.p.User)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return !route.Inside(ctx), nil // a caller in this process need not be a user
	case err != nil:
		return false, err
	case user.Disabled || !user.Principal().Has(route.Readers()...):
		return true, nil
	}
	f.p.Roles, f.seats = user.Principal().Roles, f.s.o.Desk.Media().Seats(user)
	return false, nil
}

// snapshot is the frame of everything that waits for the reader.
func (f *inboxFeed) snapshot(ctx context.Context) (story.Frame, error) {
	seats, err := f.s.seats(ctx, f.p)
	if err != nil {
		return story.Frame{}, err
	}
	page, err := f.s.o.Stores.Interactions.List(ctx, f.p, store.InteractionQuery{
		Statuses: []store.InteractionStatus{store.InteractionPending}, Approvers: seats, NotOf: f.p.User, NotAnsweredBy: f.p.User,
		Page: store.Page{Size: store.MaxPageSize},
	})
	if err != nil {
		return story.Frame{}, err
	}
	f.seats = seats
	clear(f.mine)
	for _, i := range page.Interactions {
		f.mine[i.ID] = true
	}
	return jsonFrame(frameSnapshot, api.InteractionSnapshot{Interactions: story.TellInteractions(page.Interactions),
		TotalCount: page.Total})
}

// event returns the frame of a change, if the change is for this reader.
func (f *inboxFeed) event(ctx context.Context, i store.Interaction) (_ story.Frame, ok bool, err error) {
	asked := slices.ContainsFunc(i.Approvers, func(a string) bool { return slices.Contains(f.seats, a) }) && !i.Excludes(f.p.User)
	if !asked && !f.mine[i.ID] {
		return story.Frame{}, false, nil
	}
	told := api.InteractionEvent{Interaction: story.TellInteraction(i)}
	if i.Status == store.InteractionPending {
		var why *fault.Error
		if told.MayRespond, why = f.s.o.Desk.May(ctx, f.p, i); why != nil {
			_, told.Answered = why.Details["responder"]
		}
	}
	if f.mine[i.ID] = asked && i.Status == store.InteractionPending && !told.Answered; !f.mine[i.ID] {
		delete(f.mine, i.ID)
	}
	out, err := jsonFrame(frameInteraction, told)
	return out, err == nil, err
}

func jsonFrame(name string, v any) (story.Frame, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return story.Frame{}, fault.Newf(fault.Internal, "a %s cannot be told: %w", name, err)
	}
	return story.Frame{Name: name, Body: body}, nil
}
