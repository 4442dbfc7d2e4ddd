package server

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"tandem/api"
	"tandem/identity"
	"tandem/route"
	"tandem/store"
	"tandem/story"
)

// sseRetry is how long a browser waits before it connects again, in milliseconds.
const sseRetry = 2000

// maxFlush is how much is gathered before it is sent.
const maxFlush = 64 << 10

// followParameters are those of both ways to follow an execution.
func followParameters() []*huma.Param {
	text := &huma.Schema{Type: huma.TypeString}
	return []*huma.Param{
		{Name: "id", In: "path", Required: true, Schema: text, Description: "The execution."},
		{Name: "vocabulary", In: "query", Schema: &huma.Schema{Type: huma.TypeString,
			Enum: []any{string(story.VocabularyExecution), string(story.VocabularyFlow)}, Default: string(story.VocabularyExecution)},
			Description: "The words in which it is told. execution: " + strings.Join(story.ExecutionEvents(), ", ") + ". flow: " + strings.Join(story.FlowEvents(), ", ") + "."},
		{Name: "after", In: "query", Schema: &huma.Schema{Type: huma.TypeString, Pattern: `^[0-9]+(\.[0-9]+)?$`},
			Description: "Begin after this event: 17 is behind everything of row 17, 17.2 behind the second event of it. Without it the stream begins with the beginning; a number that is not reached yet is waited for."},
	}
}

// followDescription describes both in the API document.
const followDescription = "First everything that was recorded after the position, then what happens, in order, nothing twice and nothing left out. " +
	"A reader that breaks off goes on after the id of the last event it has seen: seq.part. The same events have the same ids at any time.\n\n" +
	"Output of nodes while it is made (node_output_update; text.add and step.update for nodes with to_user) is not recorded and has no id: it carries activation, attempt and the offset of the text. " +
	"A reader begins with one snapshot per running activation (of more than 1 MiB of text its end), then gets pieces. One that is too slow for them gets another snapshot, marked as missed. A new attempt begins at offset 0: what came before is void. The completion has the whole of it. " +
	"node_logs_update has no id either: it says that a running node has written lines, which GET /executions/{id}/logs has then; lines of a node that ends come with its end.\n\n" +
	"Values over 32 KiB are not streamed: they stand as {\"$blob\": hash, \"size\": bytes}, inputs as {\"$omitted\": true, \"size\": bytes}.\n\n" +
	"The stream ends after the last event of an execution that has ended. An operator's retry_node can let it go on; who wants to see that connects again."

// eventFrames describes the frames of a stream of events in the API document, with the names of the events of both vocabularies as types of
// their own: what reads them is checked against those.
func (s *Server) eventFrames() *huma.Schema {
	schemas := s.Document().Components.Schemas
	names := func(component string, list []string) *huma.Schema {
		values := make([]any, len(list))
		for i, one := range list {
			values[i] = one
		}
		schemas.Map()[component] = &huma.Schema{Type: huma.TypeString, Enum: values}
		return &huma.Schema{Ref: route.SchemaPrefix + component}
	}
	ofExecution, ofFlow := names("ExecutionEventType", story.ExecutionEvents()), names("FlowEventType", story.FlowEvents())
	event := schemas.Schema(reflect.TypeFor[api.Event](), true, "")
	schemas.SchemaFromRef(event.Ref).Properties["event_type"] = &huma.Schema{OneOf: []*huma.Schema{ofExecution, ofFlow}}
	frame := func(name, data *huma.Schema) *huma.Schema {
		return &huma.Schema{Type: huma.TypeObject, Required: []string{"event", "data"},
			Properties: map[string]*huma.Schema{"id": {Type: huma.TypeString}, "event": name, "data": data}}
	}
	update := &huma.Schema{AllOf: []*huma.Schema{event, {Type: huma.TypeObject, Required: []string{"data"}, Properties: map[string]*huma.Schema{
		"event_type": ofExecution, "data": schemas.Schema(reflect.TypeFor[api.ExecutionUpdate](), true, "")}}}}
	return &huma.Schema{Type: huma.TypeArray, Items: &huma.Schema{OneOf: []*huma.Schema{frame(ofExecution, update), frame(ofFlow, event)}}}
}

func (s *Server) eventsOperation() huma.Operation {
	header := &huma.Param{Name: "Last-Event-ID", In: "header", Schema: &huma.Schema{Type: huma.TypeString}, Description: "The id of the last event that was seen; it wins over after. Browsers send it by themselves when they connect again."}
	return huma.Operation{
		Method: http.MethodGet, Path: "/executions/{id}/events", OperationID: "follow-execution", Summary: "Follow an execution by server-sent events", Tags: []string{"executions"},
		Description: followDescription + " Here the end is a comment and the end of the answer; a reader that then asks for what follows is answered 204, which keeps browsers from asking again.",
		Parameters:  append(followParameters(), header),
		Responses: map[string]*huma.Response{
			"200": {Description: "Events: id, event (the event_type) and data (an Event as JSON, in one line); comments in between keep the connection alive.", Content: map[string]*huma.MediaType{"text/event-stream": {Schema: s.eventFrames()}}},
			"204": {Description: "The execution has ended and there is nothing after the position."},
		},
	}
}

// serveEvents answers with server-sent events.
func (s *Server) serveEvents(w http.ResponseWriter, r *http.Request, p identity.Principal) error {
	words, from, err := following(r)
	if err != nil {
		return err
	}
	ctx, done, err := s.open.addStream(r.Context())
	if err != nil {
		return err
	}
	defer done()
	reader, err := s.stories.Follow(ctx, s.open.ctx, p, r.PathValue("id"), words, from)
	if err != nil {
		return err
	}
	defer reader.Close()

	now := make(chan time.Time)
	close(now) // the answer begins at once, even if there is nothing to send yet
	frames, err := reader.Next(ctx, now)
	if errors.Is(err, story.ErrFinished) {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if err != nil {
		return err
	}
	out := s.beginEvents(w)
	defer out.end()
	return s.sendEvents(ctx, reader, out, frames)
}

// beginEvents begins an answer that is a stream of events. The caller ends it.
func (s *Server) beginEvents(w http.ResponseWriter) *sseWriter {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // a proxy that buffers would hold events back
	out := &sseWriter{w: w, control: http.NewResponseController(w), patience: s.open.patience}
	out.buffer.WriteString("retry: " + strconv.Itoa(sseRetry) + "\n\n")
	return out
}

func (s *Server) sendEvents(ctx context.Context, reader *story.Reader, out *sseWriter, frames []story.Frame) error {
	alive := time.NewTicker(streamKeepAlive)
	defer alive.Stop()
	for {
		if err := out.send(frames); err != nil {
			return err
		}
		var err error
		frames, err = reader.Next(ctx, alive.C)
		switch {
		case errors.Is(err, story.ErrFinished):
			out.comment("the execution has ended")
			return out.flush()
		case ctx.Err() != nil: // the reader has gone, or the server stops
			return s.leave(out)
		case errors.Is(err, store.ErrBroken): // nothing more is read here; another server goes on
			return out.bid()
		case err != nil:
			s.Log.WarnContext(ctx, "a stream broke off", "execution", reader.Execution(), "error", err)
			return err
		case len(frames) == 0:
			out.comment("alive")
		}
	}
}

// leave tells a reader that the server is stopping, if it is: the reader connects again and goes on where it was.
func (s *Server) leave(out *sseWriter) error {
	if s.open.ctx.Err() == nil {
		return nil
	}
	return out.bid()
}

// bid asks the reader to connect again.
func (o *sseWriter) bid() error {
	o.comment("the server is stopping; connect again")
	return o.flush()
}

// sseWriter writes events. It gives up a reader that does not take what it is sent within a limit.
type sseWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	// patience is how long the reader may take.
	patience time.Duration
	buffer   bytes.Buffer
}

// send writes frames, after what was put into the buffer before.
func (o *sseWriter) send(frames []story.Frame) error {
	for i := range frames {
		f := &frames[i]
		if f.Seq > 0 {
			o.buffer.WriteString("id: ")
			o.buffer.WriteString(f.ID())
			o.buffer.WriteByte('\n')
		}
		o.buffer.WriteString("event: ")
		o.buffer.WriteString(f.Name)
		o.buffer.WriteString("\ndata: ")
		o.buffer.Write(f.Body) // one line: JSON has no line breaks outside of texts, and escapes those inside
		o.buffer.WriteString("\n\n")
		if o.buffer.Len() > maxFlush {
			if err := o.flush(); err != nil {
				return err
			}
		}
	}
	return o.flush()
}

func (o *sseWriter) comment(text string) {
	o.buffer.WriteString(": " + text + "\n\n")
}

func (o *sseWriter) flush() error {
	if o.buffer.Len() == 0 {
		return nil
	}
	if err := o.control.SetWriteDeadline(time.Now().Add(o.patience)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := o.w.Write(o.buffer.Bytes()); err != nil {
		return err
	}
	if o.buffer.Reset(); o.buffer.Cap() > 4*maxFlush {
		o.buffer = bytes.Buffer{} // an idle stream keeps no large buffer
	}
	return o.control.Flush()
}

// end takes the deadline back: the connection may serve another request.
func (o *sseWriter) end() {
	if err := o.control.SetWriteDeadline(time.Time{}); err != nil {
		return // there is no connection any more, or none with deadlines
	}
}
