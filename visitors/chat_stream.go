package visitors

import (
	"bytes"
	"errors"
	"net/http"
	"sync"
	"time"

	"tandem/fault"
	"tandem/route"
	"tandem/store"
	"tandem/text"
)

// How long a reader may take for what it is sent, and how many streams one address and one conversation may have open.
const (
	streamPatience         = 10 * time.Second
	streamsPerConversation = 8
	streamsPerAddress      = 64
)

// streams counts those that are open.
type streams struct {
	mu   sync.Mutex
	open map[string]int
}

func newStreams() *streams { return &streams{open: map[string]int{}} }

// addVisit counts a stream, until done is called.
func (s *streams) addVisit(v *visit) (done func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := map[string]int{v.conversation(): streamsPerConversation, "address " + v.address: streamsPerAddress}
	for key, most := range keys { // order does not matter: one that is full is enough
		if s.open[key] >= most {
			return nil, fault.Say(fault.RateLimited, text.Of("This chat is open too often at once; close some of its windows.")).With("retry_after", 5)
		}
	}
	for key := range keys { // order does not matter: each is counted
		s.open[key]++
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for key := range keys { // order does not matter: each is counted
			if s.open[key]--; s.open[key] == 0 {
				delete(s.open, key)
			}
		}
	}, nil
}

// stream tells a visitor what happens to an execution of the conversation: what is said while it is said, and when the page should look
// again. Nothing else of the execution is told.
func (h *Pages) stream(w http.ResponseWriter, r *http.Request, v *visit) error {
	ctx := r.Context()
	execution := r.URL.Query().Get("execution")
	d, err := h.o.Deliveries.DeliveryOf(ctx, systemOf(v.workspace), execution)
	if errors.Is(err, store.ErrNotFound) || err == nil &&
		(d.Conversation != v.conversation() || d.WorkflowID != v.Trigger.WorkflowID || d.Node != v.Trigger.Node) {
		return fault.Say(fault.NotFound, text.Of("There is no such message in this conversation."))
	}
	if err != nil {
		return err
	}
	done, err := h.streams.addVisit(v)
	if err != nil {
		return err
	}
	defer done()
	if err := route.Unlimited(w); err != nil {
		return err
	}
	after := r.Header.Get("Last-Event-ID")
	out := &eventWriter{w: w, control: http.NewResponseController(w)}
	err = h.o.Executions.Follow(ctx, v.workspace, execution, after, out.send)
	if out.begun {
		return nil // what broke off is asked for again
	}
	return err
}

// eventWriter writes server-sent events.
type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	begun   bool
}

func (o *eventWriter) send(pieces []Piece) error {
	var out bytes.Buffer
	if !o.begun {
		header := o.w.Header()
		header.Set("Content-Type", "text/event-stream; charset=utf-8")
		header.Set("X-Accel-Buffering", "no") // a proxy that gathers would hold events back
		out.WriteString("retry: 1000\n\n")
		o.begun = true
	}
	for _, p := range pieces {
		if p.ID != "" {
			out.WriteString("id: " + p.ID + "\n")
		}
		if p.Text != nil {
			out.WriteString("event: text\ndata: ")
			out.Write(p.Text) // one line: JSON has no line breaks outside of texts, and escapes those inside
		} else {
			out.WriteString("event: change\ndata: {}")
		}
		out.WriteString("\n\n")
	}
	if len(pieces) == 0 {
		out.WriteString(": alive\n\n")
	}
	if err := o.control.SetWriteDeadline(time.Now().Add(streamPatience)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := o.w.Write(out.Bytes()); err != nil {
		return err
	}
	return o.control.Flush()
}
