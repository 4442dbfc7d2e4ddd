// Package triggertest lets tests of trigger sources run a service in memory: a store that forgets with the test, and starts that are only
// noted.
//
// Only tests import it.
package triggertest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"tandem/credential"
	"tandem/fault"
	"tandem/host"
	"tandem/identity"
	"tandem/store"
	"tandem/trigger"
)

// Shelf is a [store.Triggers] and a [store.Blobs] in memory. It outlives the services that work on it, as a disk does.
type Shelf struct {
	store.Triggers // what is not written below is not there

	mu         sync.Mutex
	triggers   map[string]store.Trigger
	deliveries []store.TriggerDelivery
	pending    map[string]store.Deployment
	blobs      map[string][]byte
	refuse     func(trigger.Start) error
	starts     []trigger.Start
	// LoseMove, if it is set, says of each move of a trigger whether it is lost, as by a process that dies before it.
	LoseMove func() bool
	// Read counts the rows that Due has read.
	Read int
	// changed is closed with the next change.
	changed chan struct{}
}

// NewShelf makes an empty one.
func NewShelf() *Shelf {
	return &Shelf{triggers: map[string]store.Trigger{}, pending: map[string]store.Deployment{}, blobs: map[string][]byte{},
		changed: make(chan struct{})}
}

// change tells those who wait that something has changed. The lock is held.
func (s *Shelf) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Await waits until something holds that depends on what is on the shelf; false: the context ended before.
func (s *Shelf) Await(ctx context.Context, holds func() bool) bool {
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if holds() {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// All are the deliveries so far.
func (s *Shelf) All() []store.TriggerDelivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.deliveries)
}

// Service makes a service on the shelf. Nodes are the triggers of every revision.
func (s *Shelf) Service(sources []trigger.Source, nodes func(workflow string, revision int64) []trigger.Node,
	change ...func(*trigger.Options)) *trigger.Service {
	o := trigger.Options{
		Triggers: s, Blobs: s, Sources: sources, Log: slog.New(slog.DiscardHandler), PublicURL: "https://tandem.test",
		Credentials: func(string) credential.Opener {
			return func(_ context.Context, id string, _ ...string) (credential.Opened, error) {
				return credential.Opened{}, fault.Newf(fault.CredentialMissing, "there is no credential %q", id)
			}
		},
		Revision: func(_ context.Context, _ identity.Principal, workflow string, revision int64) (trigger.Revision, error) {
			return trigger.Revision{Number: revision, Hash: fmt.Sprint("hash", revision), Nodes: nodes(workflow, revision)}, nil
		},
		Start: s.start,
	}
	for _, f := range change {
		f(&o)
	}
	return trigger.New(o)
}

// start records a start as a host does: together with its delivery, or not at all.
func (s *Shelf) start(_ context.Context, p identity.Principal, order trigger.Start) (host.Started, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse != nil {
		if err := s.refuse(order); err != nil {
			return host.Started{}, err
		}
	}
	d := order.Arrival.Delivery
	if err := s.checkInForce(p.Workspace, d, order.Arrival.Cursor); err != nil {
		return host.Started{}, err
	}
	d.Workspace, d.Decision, d.Execution, d.NextAt, d.Reason = p.Workspace, store.DeliveryStarted, order.Execution, 0, ""
	if order.Arrival.Stored {
		i := slices.IndexFunc(s.deliveries, func(o store.TriggerDelivery) bool { return o.ID == d.ID })
		if s.deliveries[i].Decision != store.DeliveryAccepted {
			return host.Started{}, &store.DeliveryKnownError{Delivery: s.deliveries[i]}
		}
		s.deliveries[i] = d
	} else {
		if known, is := s.known(d); is {
			return host.Started{}, &store.DeliveryKnownError{Delivery: known}
		}
		s.deliveries = append(s.deliveries, d)
	}
	s.moveCursor(d, order.Arrival.Cursor)
	s.starts = append(s.starts, order)
	s.change()
	return host.Started{Execution: order.Execution}, nil
}

// RefuseStarts lets a function refuse starts from now on; nil: none are refused.
func (s *Shelf) RefuseStarts(f func(trigger.Start) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = f
}

// Starts are those so far.
func (s *Shelf) Starts() []trigger.Start {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.starts)
}

func (s *Shelf) known(d store.TriggerDelivery) (store.TriggerDelivery, bool) {
	i := slices.IndexFunc(s.deliveries, func(o store.TriggerDelivery) bool {
		return d.Key != "" && o.Key == d.Key && o.Workspace == d.Workspace && o.WorkflowID == d.WorkflowID && o.Node == d.Node
	})
	if i < 0 {
		return store.TriggerDelivery{}, false
	}
	return s.deliveries[i], true
}

func name(parts ...string) string { return strings.Join(parts, "/") }

// checkInForce refuses a delivery with a cursor whose trigger is no longer in force.
func (s *Shelf) checkInForce(workspace string, d store.TriggerDelivery, cursor []byte) error {
	if t, ok := s.triggers[name(workspace, d.WorkflowID, d.Node)]; cursor != nil && (!ok || t.Revision != d.Revision || t.Kind != d.Kind) {
		return &store.SupersededError{Node: d.Node, Revision: d.Revision}
	}
	return nil
}

func (s *Shelf) moveCursor(d store.TriggerDelivery, cursor []byte) {
	if t, ok := s.triggers[name(d.Workspace, d.WorkflowID, d.Node)]; ok && cursor != nil {
		t.Cursor = cursor
		s.triggers[name(d.Workspace, d.WorkflowID, d.Node)] = t
	}
}

// Prepare implements [store.Triggers].
func (s *Shelf) Prepare(_ context.Context, p identity.Principal, d store.Deployment) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	d.Workspace = p.Workspace
	s.pending[name(p.Workspace, d.WorkflowID)] = d
	return nil
}

// Preparing implements [store.Triggers].
func (s *Shelf) Preparing(context.Context, identity.Principal) (list []store.Deployment, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.pending {
		list = append(list, d)
	}
	return list, nil
}

// Registered implements [store.Triggers].
func (s *Shelf) Registered(context.Context, identity.Principal, string, string, store.TriggerState, string) error {
	return nil
}

// Fail implements [store.Triggers].
func (s *Shelf) Fail(_ context.Context, p identity.Principal, workflow, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pending, name(p.Workspace, workflow))
	return nil
}

// PutInForce implements [store.Triggers].
func (s *Shelf) PutInForce(_ context.Context, p identity.Principal, d store.Deployment) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pending, name(p.Workspace, d.WorkflowID))
	former := s.remove(p.Workspace, d.WorkflowID)
	for _, t := range d.Triggers {
		t.InForce, t.State, t.Created = true, store.TriggerActive, d.Time
		if t.Cursor == nil && former[t.Node].Kind == t.Kind {
			t.Cursor = former[t.Node].Cursor
		}
		s.triggers[name(p.Workspace, d.WorkflowID, t.Node)] = t
	}
	return nil
}

func (s *Shelf) remove(workspace, workflow string) map[string]store.Trigger {
	former := map[string]store.Trigger{}
	for key, t := range s.triggers {
		if t.Workspace == workspace && t.WorkflowID == workflow {
			former[t.Node] = t
			delete(s.triggers, key)
		}
	}
	return former
}

// Undeploy implements [store.Triggers].
func (s *Shelf) Undeploy(_ context.Context, p identity.Principal, workflow string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(p.Workspace, workflow)
	return nil
}

func (s *Shelf) list(fits func(store.Trigger) bool) (list []store.Trigger) {
	for _, t := range s.triggers {
		if fits(t) {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(a, b store.Trigger) int {
		return cmp.Or(cmp.Compare(a.NextDue, b.NextDue), cmp.Compare(a.WorkflowID, b.WorkflowID), cmp.Compare(a.Node, b.Node))
	})
	return list
}

// InForce implements [store.Triggers].
func (s *Shelf) InForce(_ context.Context, p identity.Principal, workflow string) ([]store.Trigger, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list(func(t store.Trigger) bool { return t.Workspace == p.Workspace && t.WorkflowID == workflow }), nil
}

// OfKind implements [store.Triggers].
func (s *Shelf) OfKind(_ context.Context, _ identity.Principal, kind string) ([]store.Trigger, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list(func(t store.Trigger) bool { return t.Kind == kind }), nil
}

// Due implements [store.Triggers].
func (s *Shelf) Due(_ context.Context, _ identity.Principal, now int64, limit int) ([]store.Trigger, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.list(func(t store.Trigger) bool { return t.NextDue != 0 })
	n := 0
	for n < len(all) && n < limit && all[n].NextDue <= now {
		n++
	}
	s.Read += n
	if n < len(all) {
		return all[:n], all[n].NextDue, nil
	}
	return all, 0, nil
}

// Move implements [store.Triggers].
func (s *Shelf) Move(_ context.Context, _ identity.Principal, t store.Trigger) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.LoseMove != nil && s.LoseMove() {
		return fault.New(fault.Internal, "the process died")
	}
	if now, ok := s.triggers[name(t.Workspace, t.WorkflowID, t.Node)]; ok && now.Revision == t.Revision {
		now.Cursor, now.NextDue = t.Cursor, t.NextDue
		s.triggers[name(t.Workspace, t.WorkflowID, t.Node)] = now
		s.change()
	}
	return nil
}

// Record implements [store.Triggers].
func (s *Shelf) Record(_ context.Context, p identity.Principal, d store.TriggerDelivery, cursor []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.checkInForce(p.Workspace, d, cursor); err != nil {
		return err
	}
	defer s.change()
	s.moveCursor(d, cursor)
	if known, is := s.known(d); is {
		return &store.DeliveryKnownError{Delivery: known}
	}
	s.deliveries = append(s.deliveries, d)
	return nil
}

// Settle implements [store.Triggers].
func (s *Shelf) Settle(_ context.Context, _ identity.Principal, d store.TriggerDelivery) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.deliveries, func(o store.TriggerDelivery) bool { return o.ID == d.ID })
	s.deliveries[i] = d
	return nil
}

// DueDeliveries implements [store.Triggers].
func (s *Shelf) DueDeliveries(_ context.Context, _ identity.Principal, now int64,
	_ int) (due []store.TriggerDelivery, next int64, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.deliveries {
		switch {
		case d.Decision != store.DeliveryAccepted:
		case d.NextAt <= now:
			due = append(due, d)
		case next == 0 || d.NextAt < next:
			next = d.NextAt
		}
	}
	return due, next, nil
}

// Kept are the deliveries so far, as "key decision".
func (s *Shelf) Kept() (list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.deliveries {
		list = append(list, d.Key+" "+string(d.Decision))
	}
	return list
}

// Cursor is that of a trigger in force.
func (s *Shelf) Cursor(workspace, workflow, node string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.triggers[name(workspace, workflow, node)].Cursor)
}

// Put implements [store.Blobs].
func (s *Shelf) Put(_ context.Context, _ identity.Principal, r io.Reader) (store.Blob, error) {
	raw, err := io.ReadAll(r)
	sum := sha256.Sum256(raw)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blobs[hex.EncodeToString(sum[:])] = raw
	return store.Blob{Hash: hex.EncodeToString(sum[:]), Size: int64(len(raw))}, err
}

// Get implements [store.Blobs].
func (s *Shelf) Get(_ context.Context, _ identity.Principal, hash string) (io.ReadCloser, store.Blob, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	raw, ok := s.blobs[hash]
	if !ok {
		return nil, store.Blob{}, store.ErrNotFound
	}
	return io.NopCloser(bytes.NewReader(raw)), store.Blob{Hash: hash, Size: int64(len(raw))}, nil
}

// Stat implements [store.Blobs].
func (s *Shelf) Stat(ctx context.Context, p identity.Principal, hash string) (store.Blob, error) {
	_, blob, err := s.Get(ctx, p, hash)
	return blob, err
}

// Payload is a JSON object with one field.
func Payload(key string, value any) json.RawMessage {
	raw, err := json.Marshal(map[string]any{key: value})
	if err != nil {
		panic(err) // a test's own value
	}
	return raw
}
