package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/identity"
	"tandem/route"
	"tandem/store"
	"tandem/story"
	"tandem/text"
	"tandem/trigger"
)

// hookPolicy lets a workflow answer with a page, and keeps that page away from everything of this origin.
const hookPolicy = "sandbox allow-forms allow-popups allow-scripts"

// hookSlack is how much longer a connection is kept than its request waits.
const hookSlack = 30 * time.Second

// hooks registers the addresses at which requests start workflows. They need no token of a user: the trigger says who may.
func (s *Server) hooks() {
	handlers := map[string]http.HandlerFunc{}
	// HEAD and OPTIONS start nothing: the answer says which methods the trigger takes.
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodHead, http.MethodOptions} {
		handlers[method] = s.hook
	}
	s.ToStrangers(trigger.HooksPath, "{workflow}/{path...}", route.MaxBody, handlers)
}

func (s *Server) hook(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	err := s.takeHook(w, r)
	if err == nil {
		return
	}
	if route.Begun(w) {
		s.Log.DebugContext(r.Context(), "the answer to a request that started a workflow broke off", "error", err)
		return
	}
	err = cmp.Or(route.BodyRefused(r.Context()), hookRefusal(err))
	status := route.StatusOf(err, fault.CodeOf(err))
	if refused, ok := errors.AsType[*route.Problem](err); ok {
		status = refused.Status
	}
	if slices.Contains([]int{http.StatusUnauthorized, http.StatusNotFound}, status) {
		if many := s.Calls.Failed(s.AddressOf(r.Context()), identity.HashSecret(r.URL.Path)); many != nil {
			s.Refuse(w, r, s.Problem(r.Context(), identity.Principal{}, many))
			return
		}
	}
	s.Refuse(w, r, s.Problem(r.Context(), identity.Principal{}, err))
}

// hookRefusal gives a refusal the status that senders of webhooks expect.
func hookRefusal(err error) error {
	if wrong, ok := errors.AsType[*trigger.MethodError](err); ok {
		out := route.Refused(http.StatusMethodNotAllowed, fault.Unsupported, text.As(wrong.Error()))
		out.Headers.Set("Allow", strings.Join(wrong.Allowed, ", "))
		return out
	}
	if e := fault.From(err); e.Code.Class() == fault.ClassInvalid && !e.Retryable {
		return route.Refused(http.StatusBadRequest, e.Code, text.OfError(e))
	}
	return err
}

// takeHook takes a request, and answers it when its delivery is on disk.
func (s *Server) takeHook(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	slug, path, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), trigger.HooksPath), "/")
	slug, err := url.PathUnescape(slug)
	if err != nil {
		return trigger.Unknown()
	}
	workspace, workflow, ok := trigger.ParseSlug(slug)
	if !ok {
		return trigger.Unknown()
	}
	door, err := s.o.Triggers.Find(ctx, workspace, workflow, "/"+path, r.Method)
	if err != nil {
		return err
	}
	if account, shared, err := door.Account(ctx); err != nil {
		return err
	} else if shared {
		return s.channelOf(w, r, account)
	}
	body, err := s.ReadBody(w, r, route.MaxKeys)
	if err != nil {
		return err
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return fault.New(fault.InvalidInput, "query: it cannot be read; escape its names and values")
	}
	p := identity.System(workspace)
	wait := &hookWait{s: s, p: p}
	defer wait.close()
	out, err := door.Receive(ctx, &trigger.Request{Method: r.Method, Query: query, Header: r.Header.Clone(), Body: body,
		RemoteAddr: s.AddressOf(ctx)}, wait.follow)
	if err != nil {
		return err
	}
	switch {
	case out.Verdict.Answer != nil:
		return s.sendAnswer(ctx, w, r, p, *out.Verdict.Answer)
	case out.Delivery.Execution == "" || out.Verdict.Reply == trigger.ReplyAtOnce:
		return s.sendReceived(w, r, out.Delivery, "")
	}
	route.BodyDone(ctx)
	if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(out.Verdict.Wait + hookSlack)); err != nil &&
		!errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return wait.reply(ctx, w, r, out)
}

// sendReceived answers that a delivery is stored.
func (s *Server) sendReceived(w http.ResponseWriter, r *http.Request, d store.TriggerDelivery, status engine.Status) error {
	code := http.StatusAccepted
	body := api.Received{DeliveryID: d.ID, ExecutionID: d.Execution, Status: string(status)}
	switch d.Decision {
	case store.DeliveryIgnored:
		code, body.Ignored = http.StatusOK, d.Reason
	case store.DeliveryRefused: // it was stored before, with the same id
		return route.Refused(http.StatusBadRequest, fault.InvalidInput, text.As(d.Reason))
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	s.SendPlainly(w, r, code, "application/json", append(raw, '\n'))
	return nil
}

// hookWait is a request that waits for what its execution answers.
type hookWait struct {
	s   *Server
	p   identity.Principal
	sub *host.Subscription
	// answered gets a value when a node has answered.
	answered <-chan struct{}
	stop     func()
}

// follow is called when the execution is on disk, before readers are notified.
func (h *hookWait) follow(execution string) {
	h.sub = h.s.o.Hub.Subscribe(host.Ref{Workspace: h.p.Workspace, Execution: execution})
	h.answered, h.stop = h.s.o.Triggers.AwaitAnswer(store.Ref{Workspace: h.p.Workspace, Execution: execution})
}

func (h *hookWait) close() {
	if h.sub != nil {
		h.sub.Close()
		h.stop()
	}
}

// hookRests says whether an execution with this status does nothing more for now.
func hookRests(status engine.Status) bool {
	return status.Final() || status == engine.StatusPaused || status == engine.StatusWaitingForHuman
}

// errAnswered ends the wait for an execution that has answered.
var errAnswered = errors.New("a node has answered") // read-only

// reply answers with the result of the execution, or with the answer of one of its nodes.
func (h *hookWait) reply(ctx context.Context, w http.ResponseWriter, r *http.Request, out trigger.Outcome) error {
	status, reading, err := h.outcome(ctx, out)
	if err != nil {
		return err
	}
	s, d := h.s, out.Delivery
	if out.Verdict.Reply == trigger.ReplyNode {
		answer, answered, err := s.o.Triggers.AnswerOf(ctx, d.Workspace, d.ID)
		if err != nil {
			return err
		}
		if answered {
			return s.sendAnswer(ctx, w, r, h.p, answer)
		}
	}
	switch {
	case !status.Final():
		return s.sendReceived(w, r, d, status)
	case status != engine.StatusSuccess:
		return route.Refused(http.StatusInternalServerError, fault.Internal, text.Of("execution %s has ended as %s; who operates it can see why", d.Execution, status))
	case out.Verdict.Reply == trigger.ReplyNode: // no node has answered
		return s.sendReceived(w, r, d, status)
	}
	outputs, err := reading.WholeOutputs(ctx)
	if fault.CodeOf(err) == fault.TooLarge { // the request itself was not wrong
		return route.Refused(http.StatusInternalServerError, fault.TooLarge, text.Of("execution %s has ended as %s, and cannot be answered with: %s", d.Execution, status, text.OfError(fault.From(err))))
	}
	if err != nil {
		return err
	}
	contentType, body, err := resultBody(outputs, out.Verdict.Format)
	if err != nil {
		return err
	}
	w.Header().Set("X-Tandem-Execution", d.Execution)
	w.Header().Set("Content-Security-Policy", hookPolicy)
	s.SendPlainly(w, r, http.StatusOK, contentType, body)
	return nil
}

// outcome waits until an execution rests, a node has answered or the time is up. It returns a reading if the execution has ended.
func (h *hookWait) outcome(ctx context.Context, out trigger.Outcome) (engine.Status, *story.Reading, error) {
	s, d := h.s, out.Delivery
	if out.Repeated {
		h.follow(d.Execution)
		if out.Verdict.Reply == trigger.ReplyNode {
			if _, answered, err := s.o.Triggers.AnswerOf(ctx, d.Workspace, d.ID); answered || err != nil {
				return engine.StatusRunning, nil, err
			}
		}
		status, err := h.awaitEnd(ctx, out, nil)
		if err != nil || !status.Final() {
			return status, nil, err
		}
		reading, err := s.stories.ReadExecution(ctx, h.p, d.Execution)
		return status, reading, err
	}
	request, ready, err := s.o.Revisions.Request(ctx, h.p, d.WorkflowID, strconv.FormatInt(d.Revision, 10))
	if err != nil {
		return "", nil, err
	}
	seen, status := out.Started.Ended, engine.StatusRunning
	if seen == nil {
		seen = host.NewSeen(ready.Graph)
		if status, err = h.awaitEnd(ctx, out, seen); err != nil || !status.Final() {
			return status, nil, err
		}
	}
	reading := s.stories.Begun(h.p, d.Execution, ready, host.Start{WorkflowID: d.WorkflowID, Language: request.Language,
		Outputs: request.Outputs})
	reading, err = s.readEnded(ctx, h.p, d.Execution, &waiting{r: reading, seen: seen})
	if err != nil {
		return "", nil, err
	}
	return reading.View.Status, reading, nil
}

// awaitEnd waits for an execution. Seen is given if it was followed from its beginning.
func (h *hookWait) awaitEnd(ctx context.Context, out trigger.Outcome, seen *host.Seen) (engine.Status, error) {
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if out.Verdict.Reply == trigger.ReplyNode {
		go func() { // it ends with the wait
			select {
			case <-h.answered:
				cancel(errAnswered)
			case <-waiting.Done():
			}
		}()
	}
	status, err := h.s.awaitRow(waiting, h.p, out.Delivery.Execution, h.sub, seen, out.Verdict.Wait, hookRests)
	if errors.Is(err, errAnswered) {
		return engine.StatusRunning, nil
	}
	return status, err
}

// resultBody is the result of an execution in a format: the output of its last node, or, of several, an object of them by node.
// Where the format is a text, a text is sent as it is, and so is the field text, html or body of an object.
func resultBody(outputs map[string]json.RawMessage, format string) (contentType string, body []byte, err error) {
	if len(outputs) == 1 {
		for _, one := range outputs { // order does not matter: there is one
			body = one
		}
	} else if body, err = json.Marshal(outputs); err != nil {
		return "", nil, err
	}
	if format == "json" {
		return "application/json", body, nil
	}
	contentType = map[string]string{"text": "text/plain; charset=utf-8", "html": "text/html; charset=utf-8"}[format]
	value := gjson.ParseBytes(body)
	for _, name := range []string{format, "text", "html", "body"} {
		if field := value.Get(name); value.IsObject() && field.Type == gjson.String {
			value = field
		}
	}
	if value.Type == gjson.String {
		body = []byte(value.Str)
	}
	return contentType, body, nil
}

// sendAnswer sends an answer that is recorded, or one that is given at once.
func (s *Server) sendAnswer(ctx context.Context, w http.ResponseWriter, r *http.Request, p identity.Principal,
	a trigger.Answer) (err error) {
	header := w.Header()
	for name, value := range a.Headers { // order does not matter: one entry per name
		header.Set(name, value)
	}
	header.Set("Content-Security-Policy", hookPolicy)
	contentType := cmp.Or(a.ContentType, "application/octet-stream")
	if a.Blob == "" {
		s.SendPlainly(w, r, cmp.Or(a.Status, http.StatusOK), contentType, []byte(a.Body))
		return nil
	}
	content, blob, err := s.o.Stores.Blobs.Get(ctx, p, a.Blob)
	if errors.Is(err, store.ErrNotFound) {
		s.Log.ErrorContext(ctx, "a file that a workflow has answered with is not there any more", "workspace", p.Workspace, "blob", a.Blob)
		return route.Refused(http.StatusInternalServerError, fault.Internal, text.Of("the file that was to be sent is not there any more; who operates this can see which"))
	}
	if err != nil {
		return err
	}
	defer func() {
		if cerr := content.Close(); err == nil {
			err = cerr
		}
	}()
	if a.Name != "" {
		header.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": a.Name}))
	}
	header.Set("Content-Type", contentType)
	header.Set("Content-Length", strconv.FormatInt(blob.Size, 10))
	w.WriteHeader(cmp.Or(a.Status, http.StatusOK))
	_, err = io.Copy(w, content)
	return err
}
