package trigger

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/tidwall/gjson"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

// Shared is a [Source] whose events come by an account of a channel to people. A bot has one address that its service calls, or one stream
// of updates, and the channel owns it, because people answer questions there. So all triggers with the same credential share it: the
// channel hands each event to them through a [Relay]. The configuration names the credential as credential_id.
type Shared interface {
	Source
	// Channel is the name of the channel.
	Channel() string
	// Join hands over the relay. It is called once, before anything is deployed or delivered.
	Join(r *Relay)
}

// Judge says what an event is to one trigger; false: nothing. After an error the event is handed over again later.
type Judge func(ctx context.Context, t Trigger) (e Event, fits bool, err error)

// Relay hands what has come by an account to the triggers that share it. A nil relay has no triggers.
type Relay struct {
	s    *Service
	kind string
}

// skew is how much the clock of a service may be behind ours. What was sent longer than that before a trigger was deployed does not start
// it.
const skew = time.Minute

// standing is the cursor of a trigger that shares an account.
type standing struct {
	// Since is when the trigger was first deployed, in Unix milliseconds.
	Since int64 `json:"since"`
	// At is how far each place was read, such as a channel up to a message.
	At map[string]string `json:"at,omitempty"`
}

func (t *Trigger) standing() (s standing, err error) {
	if len(t.Cursor) == 0 {
		return s, nil
	}
	if err := json.Unmarshal(t.Cursor, &s); err != nil {
		return s, fault.Newf(fault.Internal, "how far trigger %q of workflow %q has come cannot be read: %w", t.Node, t.WorkflowID, err)
	}
	return s, nil
}

// ReadUpTo is how far a place was read for the trigger; empty: nothing of it was.
func (t *Trigger) ReadUpTo(place string) (string, error) {
	s, err := t.standing()
	return s.At[place], err
}

// Deliver hands an event to every trigger of the account, and returns how many have taken it, now or before. It returns without an error
// when all of that is on disk. After an error the event has to be handed over again; triggers that have taken it know its key.
func (r *Relay) Deliver(ctx context.Context, a store.Account, judge Judge) (taken int, err error) {
	triggers, err := r.Watched(ctx, a)
	if err != nil {
		return 0, err
	}
	var failed []error
	for _, t := range triggers {
		took, err := r.one(ctx, t, judge)
		if err != nil {
			failed = append(failed, err)
		}
		if took {
			taken++
		}
	}
	return taken, errors.Join(failed...)
}

func (r *Relay) one(ctx context.Context, t Trigger, judge Judge) (took bool, err error) {
	defer recovered(t.Kind, &err)
	e, fits, err := judge(ctx, t)
	if err != nil || !fits {
		return false, err
	}
	s, err := t.standing()
	if err != nil {
		return false, err
	}
	if !e.Time.IsZero() && e.Time.UnixMilli() < s.Since-skew.Milliseconds() {
		return false, nil // it waited at the service since before the trigger was there
	}
	out, err := r.s.deliver(ctx, t.Trigger, e, nil, "", nil)
	if err != nil && permanent(err) { // recorded as refused; sending it again would come to the same
		r.s.o.Log.Warn("an event was refused", "workspace", t.Workspace, "workflow", t.WorkflowID, "node", t.Node, "error", err)
		return false, nil
	}
	return err == nil && out.Delivery.Decision != store.DeliveryIgnored && out.Delivery.Decision != store.DeliveryRefused, err
}

// Watched lists the triggers in force whose events come by an account.
func (r *Relay) Watched(ctx context.Context, a store.Account) (list []Trigger, err error) {
	if r == nil {
		return nil, nil
	}
	stored, err := r.s.o.Triggers.OfKind(ctx, identity.System(a.Workspace), r.kind)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{} // which names stand for the credential of the account
	for _, t := range stored {
		name := credentialOf(&t)
		is, ok := known[name]
		if !ok {
			own, found, err := r.s.AccountOf(ctx, t)
			if err != nil {
				return nil, err
			}
			is = found && own == a
			known[name] = is
		}
		if is {
			list = append(list, r.s.trigger(t))
		}
	}
	return list, nil
}

// credentialOf is the name or id of the credential of a trigger. NeedCredential is the credential that the configuration of the trigger
// names. A trigger that names none is refused, with the type that it needs.
func (t *Trigger) NeedCredential(kind string) (string, error) {
	id := gjson.GetBytes(t.Config, "credential_id").String()
	if id == "" {
		return "", fault.Newf(fault.CredentialMissing, "credential_id: the trigger needs a credential of the type %s", kind)
	}
	return id, nil
}

func credentialOf(t *store.Trigger) string { return gjson.GetBytes(t.Config, "credential_id").String() }

// Reach notes how far a place was read for a trigger, on disk and in the trigger that is handed in.
func (r *Relay) Reach(ctx context.Context, t *Trigger, place, position string) error {
	s, err := t.standing()
	if err != nil || s.At[place] == position {
		return err
	}
	at := map[string]string{place: position}
	for name, was := range s.At { // order does not matter: one entry per name
		if name != place {
			at[name] = was
		}
	}
	s.At = at
	if t.Cursor, err = json.Marshal(s); err != nil {
		return fault.Newf(fault.Internal, "how far a trigger has come cannot be written: %w", err)
	}
	t.Updated = now().UnixMilli()
	return r.s.o.Triggers.Move(ctx, identity.System(t.Workspace), t.Trigger)
}

// AccountOf is the account that the events of a trigger come by; false: it shares none, or its credential is not there any more.
func (s *Service) AccountOf(ctx context.Context, t store.Trigger) (a store.Account, ok bool, err error) {
	shared, is := s.sources[t.Kind].(Shared)
	name := credentialOf(&t)
	if !is || s.o.CredentialID == nil || name == "" {
		return a, false, nil
	}
	id, err := s.o.CredentialID(ctx, t.Workspace, name)
	if errors.Is(err, store.ErrNotFound) {
		return a, false, nil
	}
	return store.Account{Workspace: t.Workspace, Channel: shared.Channel(), Credential: id}, err == nil, err
}

// Accounts lists the accounts that triggers in force share: the channels have to listen to them.
func (s *Service) Accounts(ctx context.Context) (list []store.Account, err error) {
	for kind, source := range s.sources { // order does not matter: accounts have none
		if _, is := source.(Shared); !is {
			continue
		}
		triggers, err := s.o.Triggers.OfKind(ctx, identity.System(""), kind)
		if err != nil {
			return nil, err
		}
		for _, t := range triggers {
			a, ok, err := s.AccountOf(ctx, t)
			if err != nil {
				return nil, err
			}
			if ok {
				list = append(list, a)
			}
		}
	}
	return list, nil
}

// join hands the relays over.
func (s *Service) join() {
	for kind, source := range s.sources { // order does not matter: each has its own
		if shared, is := source.(Shared); is {
			shared.Join(&Relay{s: s, kind: kind})
		}
	}
}

// standFrom lets a trigger that shares an account begin now, unless it was there before with the same credential.
func (s *Service) standFrom(t *store.Trigger, former []store.Trigger, at time.Time) error {
	if _, is := s.sources[t.Kind].(Shared); !is {
		return nil
	}
	for i := range former {
		if f := &former[i]; f.Node == t.Node && f.Kind == t.Kind && credentialOf(f) == credentialOf(t) {
			return nil // its cursor is kept
		}
	}
	raw, err := json.Marshal(standing{Since: at.UnixMilli()})
	if err != nil {
		return fault.Newf(fault.Internal, "where a trigger begins cannot be written: %w", err)
	}
	t.Cursor = raw
	return nil
}

// Account is the account whose channel takes the requests that come to the trigger; false: the trigger takes them itself.
func (d *Door) Account(ctx context.Context) (a store.Account, shared bool, err error) {
	if d.source != nil {
		return a, false, nil
	}
	a, ok, err := d.s.AccountOf(ctx, d.trigger)
	if err == nil && !ok {
		err = Unknown()
	}
	return a, true, err
}

// sharedRoute is where requests reach the account of a trigger besides the account's own address.
func sharedRoute(s Shared, t *store.Trigger) Route {
	return Route{Path: "/" + s.Channel() + "/" + t.Node, Methods: []string{"POST"}}
}
