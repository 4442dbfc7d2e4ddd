package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tandem/agent"
	"tandem/api"
	"tandem/engine"
	"tandem/fault"
	"tandem/identity"
	"tandem/login"
	"tandem/route"
	"tandem/story"
	"tandem/trigger"
	"tandem/visitors"
)

// visitors registers the pages on which visitors start workflows.
func (s *Server) visitors() {
	visitors.Register(visitors.Options{
		Router: s.Router, Triggers: s.o.Triggers, Deliveries: s.o.Stores.Triggers, Interactions: s.o.Stores.Interactions,
		Users: s.o.Stores.Users, Blobs: s.o.Stores.Blobs, Desk: s.o.Desk, Keyring: s.o.Keyring,
		Executions: visited{s}, ByHand: handStarts{s}, LoginPath: login.Path, Language: s.o.Language, Now: s.o.Now,
	})
}

// visited is what visitors may see of executions.
type visited struct{ s *Server }

// Deliver implements [visitors.Executions].
func (v visited) Deliver(ctx context.Context, e *trigger.Entrance, event trigger.Event, reply trigger.Reply,
	wait time.Duration) (visitors.Ending, error) {
	h := &hookWait{s: v.s, p: identity.System(e.Trigger.Workspace)}
	defer h.close()
	follow := h.follow
	if reply == trigger.ReplyAtOnce {
		follow = nil
	}
	out, err := e.Deliver(ctx, event, follow)
	if err != nil {
		return visitors.Ending{}, err
	}
	ending := visitors.Ending{Delivery: out.Delivery, Repeated: out.Repeated}
	if reply == trigger.ReplyAtOnce || out.Delivery.Execution == "" {
		return ending, nil
	}
	route.BodyDone(ctx)
	out.Verdict.Reply, out.Verdict.Wait = reply, wait
	status, reading, err := h.outcome(ctx, out)
	if err != nil {
		return ending, err
	}
	ending.Status = status
	if reply == trigger.ReplyNode {
		answer, answered, err := v.s.o.Triggers.AnswerOf(ctx, out.Delivery.Workspace, out.Delivery.ID)
		if err != nil {
			return ending, err
		}
		if answered {
			ending.Answer = &answer
		}
	}
	if reading != nil && status == engine.StatusSuccess {
		err = tellResult(ctx, reading, &ending)
	}
	return ending, err
}

// tellResult adds the result of an execution, as far as a page can show it.
func tellResult(ctx context.Context, r *story.Reading, ending *visitors.Ending) (err error) {
	if ending.Outputs, err = r.WholeOutputs(ctx); fault.CodeOf(err) == fault.TooLarge {
		ending.TooLarge, err = true, nil
	}
	return err
}

// SendAnswer implements [visitors.Executions].
func (v visited) SendAnswer(w http.ResponseWriter, r *http.Request, workspace string, a trigger.Answer) error {
	return v.s.sendAnswer(r.Context(), w, r, identity.System(workspace), a)
}

// Tell implements [visitors.Executions].
func (v visited) Tell(ctx context.Context, workspace, execution string) (visitors.Told, error) {
	reading, err := v.s.stories.ReadExecution(ctx, identity.System(workspace), execution)
	if err != nil {
		return visitors.Told{}, err
	}
	told := visitors.Told{Status: reading.View.Status}
	told.Answer, err = reading.Spoken(ctx)
	return told, err
}

// Follow implements [visitors.Executions]. It hands on only the output for the user, and that something has changed.
func (v visited) Follow(ctx context.Context, workspace, execution, after string, send func([]visitors.Piece) error) error {
	from, err := story.ParsePosition("Last-Event-ID", after)
	if err != nil {
		return err
	}
	ctx, done, err := v.s.open.addStream(ctx)
	if err != nil {
		return err
	}
	defer done()
	reader, err := v.s.stories.Follow(ctx, v.s.open.ctx, identity.System(workspace), execution, story.VocabularyFlow, from)
	if err != nil {
		return err
	}
	defer reader.Close()
	if err := send(nil); err != nil {
		return err
	}
	alive := time.NewTicker(streamKeepAlive)
	defer alive.Stop()
	for {
		frames, err := reader.Next(ctx, alive.C)
		switch {
		case errors.Is(err, story.ErrFinished):
			return send([]visitors.Piece{{}}) // it has ended, even if frames were missed
		case err != nil:
			return err
		}
		pieces, err := piecesOf(frames)
		if err != nil {
			return err
		}
		if len(frames) > 0 && len(pieces) == 0 {
			continue
		}
		if err := send(pieces); err != nil {
			return err
		}
	}
}

// piecesOf are the frames that a visitor may see.
func piecesOf(frames []story.Frame) (pieces []visitors.Piece, err error) {
	for i := range frames {
		f := &frames[i]
		switch {
		case f.Name == "text.add":
			piece, err := spokenPiece(f.Body)
			if err != nil {
				return nil, err
			}
			pieces = append(pieces, piece)
		case strings.HasPrefix(f.Name, "flow.") || strings.HasPrefix(f.Name, "step.waiting"):
			pieces = append(pieces, visitors.Piece{ID: f.ID()})
		}
	}
	return pieces, nil
}

// spokenPiece is output for a visitor, without the name of the node that writes it.
func spokenPiece(body []byte) (visitors.Piece, error) {
	data := gjson.GetBytes(body, "data")
	part := sha256.Sum256([]byte(data.Get("activation_id").Str))
	raw, err := json.Marshal(map[string]any{
		"text": data.Get("text").Str, "part": hex.EncodeToString(part[:4]), "attempt": data.Get("attempt").Int(), "offset": data.Get("offset").Int(), "snapshot": data.Get("snapshot").Bool(),
	})
	if err != nil {
		return visitors.Piece{}, fault.Newf(fault.Internal, "output cannot be told: %w", err)
	}
	return visitors.Piece{Text: raw}, nil
}

// handStarts is how people start workflows on a page.
type handStarts struct{ s *Server }

// Manual implements [visitors.ByHand]. It is the newest revision that is started, as by the API.
func (b handStarts) Manual(ctx context.Context, p identity.Principal, workflow string) (visitors.Manual, error) {
	if _, is := agent.IDOf(workflow); is {
		return visitors.Manual{}, fault.Newf(fault.NotFound, "there is no workflow %q", workflow)
	}
	heading, err := b.s.o.Stores.Workflows.Heading(ctx, p, workflow)
	if err != nil {
		return visitors.Manual{}, err
	}
	_, ready, err := b.s.o.Revisions.Request(ctx, p, workflow, "latest")
	if err != nil {
		return visitors.Manual{}, err
	}
	for _, t := range ready.Graph.Triggers {
		if !ready.Graph.Nodes[t].Plan.Traits.ByHand {
			continue
		}
		m := visitors.Manual{Name: cmp.Or(heading.Name, workflow), Node: ready.Graph.Nodes[t].ID,
			Language: ready.Definition.Metadata.Settings.Language}
		config := gjson.ParseBytes(ready.Definition.Nodes[t].Configurations)
		m.Description = cmp.Or(config.Get("description").String(), ready.Definition.Metadata.Description)
		schema, err := ready.InputSchema(m.Node)
		if err != nil {
			return visitors.Manual{}, err
		}
		if schema != nil && len(config.Get("input_schema.properties").Map()) > 0 {
			m.Schema = json.RawMessage(config.Get("input_schema").Raw)
		}
		return m, nil
	}
	return visitors.Manual{}, fault.Newf(fault.NotFound, "workflow %q has no trigger that people start by hand", workflow)
}

// Start implements [visitors.ByHand].
func (b handStarts) Start(ctx context.Context, p identity.Principal, workflow string, m visitors.Manual, key string,
	inputs json.RawMessage, wait time.Duration) (string, visitors.Ending, error) {
	in := &executeInput{Key: key, Body: &api.ExecuteRequest{Inputs: inputs, TriggerNode: m.Node, WaitSeconds: wait.Seconds()}}
	in.ID = workflow
	out, err := b.s.executeWorkflow(ctx, p, in)
	if err == nil {
		err = b.s.Settle(ctx)
	}
	if err != nil {
		return "", visitors.Ending{}, err
	}
	ending := visitors.Ending{Status: engine.Status(out.Body.Status)}
	if ending.Status == engine.StatusSuccess {
		reading, err := b.s.stories.ReadExecution(ctx, p, out.Body.ExecutionID)
		if err == nil {
			err = tellResult(ctx, reading, &ending)
		}
		if err != nil {
			return "", visitors.Ending{}, err
		}
	}
	return out.Body.ExecutionID, ending, nil
}
