package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tandem/api"
	"tandem/fault"
)

// InteractionQuery narrows a listing. Empty fields do not narrow it; the server chooses a page and size that are zero.
type InteractionQuery struct {
	// Mine keeps the questions that are put to the caller.
	Mine     bool
	Statuses []string
	// ExecutionID keeps the questions of an execution; with Family also those of the executions it started.
	ExecutionID    string
	Family         bool
	Purpose        string
	Page, PageSize int
}

// Interactions lists questions to people: pending ones first, by priority and age.
func (c *Client) Interactions(ctx context.Context, q InteractionQuery) (api.Interactions, error) {
	v := paged(q.Page, q.PageSize)
	text(v, "status", strings.Join(q.Statuses, ","))
	text(v, "execution_id", q.ExecutionID)
	text(v, "purpose", q.Purpose)
	flag(v, "mine", q.Mine)
	flag(v, "family", q.Family)
	return get[api.Interactions](ctx, c, to("/interactions"), v)
}

func flag(v url.Values, name string, set bool) {
	if set {
		v.Set(name, "true")
	}
}

// Interaction returns a question with its replies and messages.
func (c *Client) Interaction(ctx context.Context, id string) (api.InteractionDetail, error) {
	return get[api.InteractionDetail](ctx, c, to("/interactions/%s", id), nil)
}

// Respond answers a question. The question stays pending while others have to answer too.
func (c *Client) Respond(ctx context.Context, id string, r api.RespondRequest) (api.Interaction, error) {
	return send[api.Interaction](ctx, c, http.MethodPost, to("/interactions/%s/respond", id), r)
}

// Delegate lets somebody else answer in the caller's place.
func (c *Client) Delegate(ctx context.Context, id string, r api.DelegateRequest) (api.Interaction, error) {
	return send[api.Interaction](ctx, c, http.MethodPost, to("/interactions/%s/delegate", id), r)
}

// CancelInteraction withdraws a question.
func (c *Client) CancelInteraction(ctx context.Context, id, reason string) (api.Interaction, error) {
	return send[api.Interaction](ctx, c, http.MethodPost, to("/interactions/%s/cancel", id), api.CancelInteractionRequest{Reason: reason})
}

// Remind reminds those who are asked, now.
func (c *Client) Remind(ctx context.Context, id string) (api.Interaction, error) {
	return call[api.Interaction](ctx, c, request{method: http.MethodPost, path: to("/interactions/%s/remind", id)})
}

// Override decides a question in the place of those who are asked, with a reason. It is for admins.
func (c *Client) Override(ctx context.Context, id string, r api.OverrideRequest) (api.Interaction, error) {
	return send[api.Interaction](ctx, c, http.MethodPost, to("/interactions/%s/override", id), r)
}

// Link makes a link to the response page for a recipient. It is shown once, to the recipient alone; asked for by an admin it is sent to
// them.
func (c *Client) Link(ctx context.Context, id, recipient string) (api.Link, error) {
	return send[api.Link](ctx, c, http.MethodPost, to("/interactions/%s/link", id), api.LinkRequest{Recipient: recipient})
}

// Overrule corrects how a reply in prose was understood.
func (c *Client) Overrule(ctx context.Context, id, response string, r api.OverruleRequest) (api.Interaction, error) {
	return send[api.Interaction](ctx, c, http.MethodPost, to("/interactions/%s/responses/%s/overrule", id, response), r)
}

// Pauses lists the times in which an execution waited for people or was stopped.
func (c *Client) Pauses(ctx context.Context, execution string) (api.Pauses, error) {
	return get[api.Pauses](ctx, c, to("/executions/%s/pauses", execution), nil)
}

// InboxFrame is one frame of the stream of questions. Exactly one field is set.
type InboxFrame struct {
	// Snapshot is everything that waits for the caller. It replaces what came before.
	Snapshot *api.InteractionSnapshot
	// Event is a question that is new or has ended.
	Event *api.InteractionEvent
}

// WatchInbox calls each with the questions that wait for the caller, and then with each change to them, until ctx ends or each
// fails. A connection that breaks is made again and begins with a snapshot, so nothing is missed. It returns the error of each,
// that of ctx, a refusal of the server, or, when the server cannot be reached for about a minute, that.
func (c *Client) WatchInbox(ctx context.Context, each func(InboxFrame) error) error {
	for failures := 0; ; {
		since := time.Now()
		err := c.readInbox(ctx, each)
		if time.Since(since) > longestPause {
			failures = 0
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.As(err, new(*callerError)):
			return errors.Unwrap(err)
		case err == nil:
			err = fault.Newf(fault.NetworkError, "the stream of questions of %s ended again and again", c.base)
		case !temporary(err):
			return err
		}
		if failures++; failures > maxFailures {
			return err
		}
		if err := pause(ctx, jitter(min(firstPause<<min(failures-1, 10), longestPause))); err != nil {
			return err
		}
	}
}

// readInbox reads one connection to its end. Nil means that the server has ended it in good order.
func (c *Client) readInbox(ctx context.Context, each func(InboxFrame) error) error {
	// A connection that is silent for too long is given up. Everything that is read restarts the timer.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := time.AfterFunc(idleTimeout, func() { cancel(fault.Newf(fault.Timeout, "nothing came from %s for %v", c.base, idleTimeout)) })
	defer silent.Stop()
	response, err := c.open(ctx, request{method: http.MethodGet, path: to("/interactions/stream"),
		header: http.Header{"Accept": {"text/event-stream"}, "Cache-Control": {"no-store"}}})
	if err != nil {
		return err
	}
	defer response.Body.Close()
	lines := &lineReader{in: bufio.NewReaderSize(response.Body, 32<<10), read: func() { silent.Reset(idleTimeout) }}
	name := ""
	for {
		line, err := lines.nextLine()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			if fault.CodeOf(err) != fault.Internal {
				return err
			}
			return c.broken(ctx, err)
		}
		if event, ok := bytes.CutPrefix(line, []byte("event: ")); ok {
			name = string(event)
			continue
		}
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		if !ok {
			continue
		}
		frame, err := readInboxFrame(name, data)
		if err != nil {
			return err
		}
		if err := each(frame); err != nil {
			return &callerError{err}
		}
	}
}

func readInboxFrame(name string, data []byte) (InboxFrame, error) {
	var frame InboxFrame
	var into any
	switch name {
	case "snapshot":
		frame.Snapshot = &api.InteractionSnapshot{}
		into = frame.Snapshot
	case "interaction":
		frame.Event = &api.InteractionEvent{}
		into = frame.Event
	default:
		return frame, fault.Newf(fault.Unsupported, "the stream of questions has a frame %q, which this client does not know", name)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return frame, fault.Newf(fault.Unsupported, "a frame %q of the stream of questions cannot be read: %w", name, err)
	}
	return frame, nil
}
