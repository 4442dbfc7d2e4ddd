package human

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"hash/maphash"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"tandem/credential"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/human/replies"
	"tandem/identity"
	"tandem/store"
)

// Options are what a [Desk] needs.
type Options struct {
	Interactions store.Interactions
	Users        store.Users
	// Contacts are the accounts that people can choose to be reached through. Nil: there are none.
	Contacts store.ContactChannels
	// Channels are the media. Two with the same name are a programming error.
	Channels []Channel
	// Credentials is what opens the credentials of a workspace. Nil: there are none.
	Credentials func(workspace string) credential.Opener
	// Listened lists accounts to listen to besides those of questions: triggers use them, too. May be nil.
	Listened func(ctx context.Context) ([]store.Account, error)
	// Wake is called when something is in the inbox of an execution.
	Wake func(store.Ref)
	// Raise adds to a budget. It is called before the answer is written; under the same id it does nothing a second time.
	Raise func(ctx context.Context, p identity.Principal, id, budget string, by float64) error
	// Withdrawn is called for each question about a budget that has ended without an answer, and again if that could not be noted. Nil:
	// nobody wants to know.
	Withdrawn func(ref store.Ref, ask engine.AskID) error
	// Judge lets a model read free text. Nil: rules do.
	Judge replies.Judge
	// PublicURL is where people reach this instance. Empty: messages carry no links.
	PublicURL string
	Log       *slog.Logger
}

// Desk is the service: it takes answers, and sends and receives the messages in between. It keeps no state of its own about
// questions, so that several may work on one database.
type Desk struct {
	o Options
	// locks serialize answers to the same question in this process; between processes the version of the record does so.
	locks [64]sync.Mutex
	seed  maphash.Seed
	*backroom
}

// New makes a desk. Nothing is sent before [Desk.Start].
func New(o Options) *Desk {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Wake == nil {
		o.Wake = func(store.Ref) {}
	}
	o.PublicURL = strings.TrimRight(o.PublicURL, "/")
	d := &Desk{o: o, seed: maphash.MakeSeed()}
	d.backroom = newBackroom(o, d.Receive)
	return d
}

// Submission is an answer as it comes in.
type Submission struct {
	// Data is the response_data; for questions of other purposes than human_node, the answer in the form of that purpose.
	Data json.RawMessage
	// ArgumentsHash is the hash of what the person was shown; empty: it is not known.
	ArgumentsHash string
	// Channel is where it comes from; empty: in_app.
	Channel string
}

// progress is what is stored about a question besides its columns. The clock owns Requested, Reminders, Reminded and Escalated.
type progress struct {
	Delegations []delegation `json:"delegations,omitempty"`
	// Requested says that the messages that ask were made.
	Requested bool `json:"requested,omitempty"`
	// Reminders counts them; Reminded is when the last were made, by the clock or by somebody.
	Reminders int   `json:"reminders,omitempty"`
	Reminded  int64 `json:"reminded,omitempty"`
	// Escalated is when others were asked as well.
	Escalated int64 `json:"escalated,omitempty"`
	// Told says that people were notified of the end.
	Told bool `json:"told,omitempty"`
	// Ways are the accounts that messages went through, besides that of the question: those that people have chosen.
	Ways []way `json:"ways,omitempty"`
	// Override is an admin's decision in the place of those who were asked.
	Override *override `json:"override,omitempty"`
}

// override is who has decided in the place of others, and why.
type override struct {
	By     string         `json:"by"`
	Reason string         `json:"reason"`
	Means  identity.Means `json:"means,omitzero"`
	At     int64          `json:"at"`
}

// delegation hands a vote on. From is a person, To an approver. By is who did it, if it was an admin and not From; Note is their
// reason then.
type delegation struct {
	From  string         `json:"from"`
	To    string         `json:"to"`
	Note  string         `json:"note,omitempty"`
	At    int64          `json:"at"`
	By    string         `json:"by,omitempty"`
	Means identity.Means `json:"means,omitzero"`
}

func readProgress(i store.Interaction) (progress, error) {
	var p progress
	if len(i.Progress) == 0 {
		return p, nil
	}
	if err := json.Unmarshal(i.Progress, &p); err != nil {
		return p, fault.Newf(fault.Internal, "how far interaction %q is cannot be read: %w", i.ID, err)
	}
	return p, nil
}

func writeProgress(i *store.Interaction, p progress) error {
	raw, err := json.Marshal(p)
	if err != nil {
		return fault.Newf(fault.Internal, "how far interaction %q is cannot be written: %w", i.ID, err)
	}
	i.Progress = raw
	return nil
}

// ReadRequest reads the request of a question.
func ReadRequest(i store.Interaction) (Request, error) {
	var r Request
	if err := json.Unmarshal(i.Request, &r); err != nil {
		return r, fault.Newf(fault.Internal, "what interaction %q asks cannot be read: %w", i.ID, err)
	}
	return r, nil
}

// InteractionID is the id of a question of an execution.
func InteractionID(ref store.Ref, ask engine.AskID) string {
	return host.InteractionID(ref.Workspace, ref.Execution, ask)
}

// Receiver returns the channel with a name, if it is a [Receiver].
func (d *Desk) Receiver(channel string) (Receiver, bool) {
	r, ok := d.channels[channel].(Receiver)
	return r, ok
}

// Media are the channels of the desk.
func (d *Desk) Media() Media { return d.media }

// Account is what a channel acts with.
func (d *Desk) Account(a store.Account) Account {
	return d.account(a)
}

// lock is the lock of a question.
func (d *Desk) lock(id string) *sync.Mutex {
	return &d.locks[maphash.String(d.seed, id)%uint64(len(d.locks))]
}

// now is the time as records have it.
func now() int64 { return time.Now().UnixMilli() }

// maxTries is how often a change is decided again because another process was faster.
const maxTries = 200

// pause waits for other processes, a little longer each time, so that none of them always loses.
func pause(ctx context.Context, try int) error {
	most := min(try, 10)
	select {
	case <-time.After(time.Duration(rand.IntN(most*1000)) * time.Microsecond):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// sitting is a question as it stands, with everything that a decision about it needs. Decisions fill in change.
type sitting struct {
	store.Interaction
	request   Request
	progress  progress
	responses []store.Response
	people    *people
	now       int64
	cast      []vote // see votes
	// audit is the entry of the change in the audit log.
	audit store.AuditEntry

	change store.InteractionChange
}

// decide lets a function decide about a question and writes what it has decided; it repeats both while others are faster. A
// function that leaves the change of its sitting empty has changed nothing. It returns the record as it is then.
func (d *Desk) decide(ctx context.Context, workspace, id string, f func(*sitting) error) (store.Interaction, error) {
	mu := d.lock(id)
	mu.Lock()
	defer mu.Unlock()
	system := identity.System(workspace)
	for try := 1; ; try++ {
		s, err := d.sit(ctx, system, id)
		if errors.Is(err, store.ErrNotFound) {
			err = d.refuse(store.Interaction{Workspace: workspace, ID: id}, "", err)
		}
		if err != nil {
			return store.Interaction{}, err
		}
		if err := f(s); err != nil {
			return s.Interaction, err
		}
		if s.change.Interaction.ID == "" {
			return s.Interaction, nil
		}
		err = d.o.Interactions.Change(s.audited(ctx), system, s.change)
		switch {
		case errors.Is(err, store.ErrConflict) && try < maxTries:
			if err := pause(ctx, try); err != nil {
				return s.Interaction, err
			}
			continue
		case err != nil:
			return s.Interaction, err
		}
		after := s.change.Interaction
		after.Version++
		d.changed(after, s.change.Deliver != nil)
		return after, nil
	}
}

// changed tells those who wait for it that a record has changed, after it was written.
func (d *Desk) changed(i store.Interaction, wake bool) {
	if wake {
		d.o.Wake(store.Ref{Workspace: i.Workspace, Execution: i.Execution})
	}
	d.Look()
	d.tellWatchers(Event{Interaction: i})
}

// sit reads a question and what was replied to it.
func (d *Desk) sit(ctx context.Context, system identity.Principal, id string) (*sitting, error) {
	i, err := d.o.Interactions.Get(ctx, system, id)
	if err != nil {
		return nil, err
	}
	return d.sitAt(ctx, system, i)
}

// sitAt is sit for a record that was read.
func (d *Desk) sitAt(ctx context.Context, system identity.Principal, i store.Interaction) (*sitting, error) {
	s := &sitting{Interaction: i, now: now()}
	var err error
	if s.request, err = ReadRequest(i); err != nil {
		return nil, err
	}
	if s.progress, err = readProgress(i); err != nil {
		return nil, err
	}
	if s.responses, err = d.o.Interactions.Responses(ctx, system, i.ID); err != nil {
		return nil, err
	}
	users, err := d.o.Users.List(ctx, system)
	if err != nil {
		return nil, err
	}
	s.people = d.media.newPeople(users)
	return s, nil
}

// begin makes a change of the record as it is.
func (s *sitting) begin() *store.InteractionChange {
	if s.change.Interaction.ID == "" {
		s.change.Interaction = s.Interaction
		s.change.Interaction.Updated = s.now
	}
	return &s.change
}

// refuse logs that somebody was refused. It does not log the link.
func (d *Desk) refuse(i store.Interaction, who string, err error) error {
	d.o.Log.Info("an answer was refused", "workspace", i.Workspace, "interaction", i.ID, "who", cmp.Or(who, "nobody"), "why", err.Error())
	return err
}

// has says whether a list of approvers names one of the seats.
func has(approvers, seats []string) bool {
	return slices.ContainsFunc(approvers, func(a string) bool { return slices.Contains(seats, a) })
}
