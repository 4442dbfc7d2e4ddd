package trigger

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync"

	"tandem/fault"
	"tandem/host"
	"tandem/identity"
	"tandem/store"
)

// routes keeps the routes of workflows that were asked for lately, until their triggers change.
type routes struct {
	mu    sync.Mutex
	known map[workflowKey]doors
	// changes counts, so that what was read before a change is not kept after it.
	changes uint64
}

// maxRoutes is how many workflows are kept.
const maxRoutes = 4096

// doors are the triggers of a workflow that take requests, and those that have a page.
type doors struct {
	routes []routed
	pages  []presented
}

// routed is a trigger that takes requests. Without a source the channel of its account takes them.
type routed struct {
	trigger  store.Trigger
	source   Receiver
	segments []string
	methods  []string
}

func (r *routes) forget(k workflowKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, k)
	r.changes++
}

// shapeOf is a path with its parts in braces made equal: two paths of one shape take the same requests.
func shapeOf(path string) string {
	parts := segments(path)
	for i, part := range parts {
		if _, is := param(part); is {
			parts[i] = "{}"
		}
	}
	return strings.Join(parts, "/")
}

// segments are the parts of a path. A slash at the end makes no difference.
func segments(path string) []string { return strings.Split(strings.Trim(path, "/"), "/") }

// param is the name of a part in braces.
func param(part string) (name string, is bool) {
	if len(part) > 2 && part[0] == '{' && part[len(part)-1] == '}' {
		return part[1 : len(part)-1], true
	}
	return "", false
}

// match says whether a path is one of the route, and which parts stand for what.
func (r *routed) match(parts []string) (params map[string]string, ok bool) {
	if len(parts) != len(r.segments) {
		return nil, false
	}
	for i, part := range r.segments {
		name, is := param(part)
		switch {
		case is && parts[i] == "":
			return nil, false
		case is:
			if params == nil {
				params = map[string]string{}
			}
			params[name] = parts[i]
		case part != parts[i]:
			return nil, false
		}
	}
	return params, true
}

// load returns the triggers of a workflow that take requests or have a page.
func (s *Service) load(ctx context.Context, k workflowKey) (doors, error) {
	r := &s.routes
	r.mu.Lock()
	list, known := r.known[k]
	changes := r.changes
	r.mu.Unlock()
	if known {
		return list, nil
	}
	stored, err := s.o.Triggers.InForce(ctx, identity.System(k.workspace), k.workflow)
	if err != nil {
		return doors{}, err
	}
	for _, t := range stored {
		if err := s.open(ctx, &list, t); err != nil {
			s.o.Log.Error("a trigger that was deployed takes no requests", "workspace", t.Workspace, "workflow", t.WorkflowID,
				"node", t.Node, "error", err)
		}
	}
	// Of two that fit, the one whose path says more comes first.
	slices.SortStableFunc(list.routes, func(a, b routed) int { return slices.CompareFunc(a.segments, b.segments, comparePart) })
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.changes == changes && len(stored) > 0 { // who has none is not worth a place
		if len(r.known) >= maxRoutes {
			clear(r.known)
		}
		r.known[k] = list
	}
	return list, nil
}

// routeOf is where a trigger takes requests, and what takes them; false: it takes none.
func (s *Service) routeOf(t store.Trigger) (r Route, source Receiver, ok bool, err error) {
	switch source := s.sources[t.Kind].(type) {
	case Receiver:
		r, err = source.Route(s.trigger(t))
		return r, source, err != nil || r.Path != "", err
	case Shared:
		return sharedRoute(source, &t), nil, true, nil
	}
	return r, nil, false, nil
}

// open adds a trigger, if it takes requests or has a page.
func (s *Service) open(ctx context.Context, list *doors, t store.Trigger) (err error) {
	defer recovered(t.Kind, &err)
	if source, ok := s.sources[t.Kind].(Presenter); ok {
		page, err := source.Page(s.trigger(t))
		if err != nil {
			return err
		}
		revision, err := s.o.Revision(ctx, identity.System(t.Workspace), t.WorkflowID, t.Revision)
		if err != nil {
			return err
		}
		page.Language = revision.Language
		list.pages = append(list.pages, presented{t, source, page})
		return nil
	}
	route, source, ok, err := s.routeOf(t)
	if ok && err == nil {
		list.routes = append(list.routes, routed{t, source, segments(route.Path), route.Methods})
	}
	return err
}

func comparePart(a, b string) int {
	_, pa := param(a)
	_, pb := param(b)
	switch {
	case pa && !pb:
		return 1
	case pb && !pa:
		return -1
	}
	return 0
}

// MethodError says that a trigger does not take requests of this method.
type MethodError struct{ Allowed []string }

// Error names those that it takes.
func (e *MethodError) Error() string {
	return "this address takes " + strings.Join(e.Allowed, ", ") + "; use one of them"
}

// Unwrap makes it unsupported.
func (e *MethodError) Unwrap() error { return fault.New(fault.Unsupported, e.Error()) }

// Unknown is the same whatever of an address is wrong: strangers learn of no workspace and no workflow.
func Unknown() error {
	return fault.New(fault.NotFound, "no workflow is started here; use the address as Tandem shows it, and deploy the workflow")
}

// Outcome is what has become of a request.
type Outcome struct {
	Verdict  Verdict
	Delivery store.TriggerDelivery
	// Started is what the request has started; empty for one that started nothing, or is a repetition.
	Started host.Started
	// Repeated says that the trigger has taken the delivery before: Delivery is that one.
	Repeated bool
}

// Find looks the trigger of a request up, before its body is read. The error of a path that nobody takes is [Unknown], that of a method a
// *[MethodError].
func (s *Service) Find(ctx context.Context, workspace, workflow, path, method string) (*Door, error) {
	list, err := s.load(ctx, workflowKey{workspace, workflow})
	if err != nil {
		return nil, err
	}
	parts, err := decoded(path)
	if err != nil {
		return nil, Unknown()
	}
	for i := range list.routes {
		r := &list.routes[i]
		params, ok := r.match(parts)
		if !ok {
			continue
		}
		if !slices.Contains(r.methods, method) {
			return nil, &MethodError{r.methods}
		}
		return &Door{s: s, routed: r, params: params, path: path}, nil
	}
	return nil, Unknown()
}

// decoded are the parts of a path as it was sent, each decoded by itself, so that an encoded slash is part of a value.
func decoded(path string) ([]string, error) {
	parts := segments(path)
	for i, part := range parts {
		text, err := url.PathUnescape(part)
		if err != nil {
			return nil, err
		}
		parts[i] = text
	}
	return parts, nil
}

// Door is a trigger that a request has come to.
type Door struct {
	s *Service
	*routed
	params map[string]string
	path   string
}

// Receive takes a request. It returns without an error when its delivery is on disk, or was before, or when it is to be answered at once.
// Follow, unless it is nil, is called with the execution before anybody hears of its first row.
func (d *Door) Receive(ctx context.Context, r *Request, follow func(execution string)) (Outcome, error) {
	s, t := d.s, d.trigger
	r.Path, r.PathParams, r.Received = d.path, d.params, now()
	r.KeepFile = s.trigger(t).KeepFile
	verdict, err := d.ask(ctx, r)
	if err != nil {
		s.refuse(ctx, t, err)
		return Outcome{}, err
	}
	if verdict.Answer != nil {
		return Outcome{Verdict: verdict}, nil
	}
	out, err := s.deliver(ctx, t, verdict.Event, nil, "", follow)
	out.Verdict = verdict
	return out, err
}

func (d *Door) ask(ctx context.Context, r *Request) (v Verdict, err error) {
	defer recovered(d.trigger.Kind, &err)
	return d.source.Receive(ctx, d.s.trigger(d.trigger), r)
}

// refusals bounds how many refused requests are recorded: anyone who sends nonsense must not fill the disk.
type refusals struct {
	mu sync.Mutex
	of map[workflowKey][]int64
}

// Of each trigger so many refusals are recorded within a minute.
const (
	refusedPerMinute = 10
	minuteMS         = 60_000
)

func (r *refusals) room(k workflowKey, at int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := slices.DeleteFunc(r.of[k], func(one int64) bool { return one <= at-minuteMS })
	room := len(list) < refusedPerMinute
	if room {
		list = append(list, at)
	}
	if len(r.of) >= maxRoutes {
		clear(r.of)
	}
	r.of[k] = list
	return room
}

// RecordedError is a refusal with what is recorded of it. Its sender gets the whole text, which may repeat what was sent.
type RecordedError struct {
	error
	reason string
}

// Recorded says what is recorded of a refusal. The reason must not hold anything that was sent.
func Recorded(err error, reason string) error { return &RecordedError{err, reason} }

// Unwrap is the refusal as the sender gets it.
func (e *RecordedError) Unwrap() error { return e.error }

// refuse records that a request was refused, without anything that it has brought: what is wrong with it is answered to its sender, and
// recorded as far as the source says by [Recorded] that it repeats nothing of it.
func (s *Service) refuse(ctx context.Context, t store.Trigger, cause error) {
	reason := fault.From(cause)
	at := now().UnixMilli()
	if reason.Code.Class() == fault.ClassInternal || !s.refused.room(workflowKey{t.Workspace, t.WorkflowID + "/" + t.Node}, at) {
		return
	}
	told := reason.Message
	if e, ok := errors.AsType[*RecordedError](cause); ok {
		told = e.reason
	} else if reason.Code.Class() == fault.ClassInvalid {
		told = "it cannot be taken as it was sent; its sender was told why"
	}
	d := newDelivery(t, at)
	d.Decision, d.Reason = store.DeliveryRefused, string(reason.Code)+": "+told
	if err := s.o.Triggers.Record(context.WithoutCancel(ctx), identity.System(t.Workspace), d, nil); err != nil {
		s.o.Log.Warn("a refused request could not be recorded", "workspace", t.Workspace, "workflow", t.WorkflowID,
			"node", t.Node, "error", err)
	}
}

// known is the delivery of an error that says that it was taken before.
func known(err error) (store.TriggerDelivery, bool) {
	if e, ok := errors.AsType[*store.DeliveryKnownError](err); ok {
		return e.Delivery, true
	}
	return store.TriggerDelivery{}, false
}
