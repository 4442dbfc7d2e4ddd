package budget

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"tandem/builtin/models"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/human/form"
	"tandem/identity"
	"tandem/llm"
	"tandem/store"
	"tandem/text"
)

// Purse keeps to the budgets of profiles. What is spent is in the store; in memory is only who queues for what others may
// give back.
type Purse struct {
	ledger     store.Ledger
	Waits      store.Budgets
	profiles   store.Profiles
	executions store.Executions
	questions  store.Interactions
	Now        func() time.Time
	// Again is how often who queues looks again: another process may have given something back, or be gone with what it had reserved. What
	// could not be settled is tried again as often.
	Again     time.Duration
	workflows store.Workflows
	log       *slog.Logger
	// read reads a profile, act tells an execution something.
	read func(store.Profile) (llm.Profile, error)
	act  func(ctx context.Context, p identity.Principal, r host.Request) error
	// waking are those who wake executions that wait for a budget, and who settles what is late.
	waking sync.WaitGroup
	late   late
	// withdrawing is held while the asking is handed on, of which two may hear at once.
	withdrawing sync.Mutex

	mu sync.Mutex
	// moved is closed, and replaced, when something was given back.
	moved chan struct{}
}

// Options is what a purse needs. All of it must be there.
type Options struct {
	Stores store.Stores
	// Read reads a profile as it is kept, Act tells an execution something.
	Read func(store.Profile) (llm.Profile, error)
	Act  func(ctx context.Context, p identity.Principal, r host.Request) error
	Log  *slog.Logger
}

// New makes a purse on a store. It must be closed.
func New(o Options) *Purse {
	s := o.Stores
	return &Purse{
		ledger: s.Ledger, Waits: s.Budgets, profiles: s.Profiles, executions: s.Executions, questions: s.Interactions,
		workflows: s.Workflows, log: o.Log,
		read: o.Read, act: o.Act, Now: time.Now, Again: 5 * time.Second,
		moved: make(chan struct{}), late: newLate(),
	}
}

// The spans of time or work that a budget is for.
const (
	PerExecution = "execution"
	perWorkflow  = "workflow"
	PerDay       = "day"
)

// Name names what is limited: one unit of one profile for one execution, workflow or day. A profile that limits both
// tokens and money for a span has two budgets, so that what one of them is raised by can only mean one thing.
type Name struct {
	Profile, per string
	// money says that it limits money, not tokens.
	money bool
	key   string
}

const ofMoney = "_cost"

// String is the name as people and the store know it: "main/day/2026-11-15", or "main/day_cost/2026-11-15" for money.
func (n Name) String() string {
	per := n.per
	if n.money {
		per += ofMoney
	}
	return n.Profile + "/" + per + "/" + n.key
}

// ReadName reads one. The ids of profiles have no slash.
func ReadName(text string) (n Name, ok bool) {
	profile, rest, _ := strings.Cut(text, "/")
	per, key, _ := strings.Cut(rest, "/")
	n = Name{Profile: profile, key: key}
	n.per, n.money = strings.CutSuffix(per, ofMoney)
	return n, profile != "" && key != "" && slices.Contains([]string{PerExecution, perWorkflow, PerDay}, n.per)
}

// Limits are what a call has to fit into.
func (p *Purse) Limits(s models.Spending) ([]store.Limit, string, error) {
	now, err := p.today(s.Profile)
	if err != nil {
		return nil, "", err
	}
	day := now.Format(time.DateOnly)
	list := make([]store.Limit, 0, len(s.Profile.Budgets))
	for _, b := range s.Profile.Budgets {
		query, name := store.LedgerQuery{Profile: s.Profile.ID}, Name{Profile: s.Profile.ID, per: b.Per}
		switch b.Per {
		case PerExecution:
			name.key, query.Execution = s.Execution, s.Execution
		case perWorkflow:
			name.key, query.Workflow = s.Workflow, s.Workflow
		case PerDay:
			name.key, query.Day = day, day
		default:
			return nil, "", fault.Newf(fault.InvalidConfig, "profile %q: a budget is per %s, %s or %s, not %q", s.Profile.ID, PerExecution, perWorkflow, PerDay, b.Per).With("path", "budgets.per")
		}
		if b.Tokens > 0 {
			list = append(list, store.Limit{Budget: name.String(), Query: query, Tokens: b.Tokens})
		}
		if b.Cost > 0 {
			name.money = true
			list = append(list, store.Limit{Budget: name.String(), Query: query, Cost: int64(math.Round(b.Cost * 1e6))})
		}
	}
	return list, day, nil
}

// today is the time where the profile's days begin.
func (p *Purse) today(profile llm.Profile) (time.Time, error) {
	for _, b := range profile.Budgets {
		if b.Per != PerDay || b.TimeZone == "" {
			continue
		}
		zone, err := time.LoadLocation(b.TimeZone)
		if err != nil {
			return time.Time{}, fault.Newf(fault.InvalidConfig, "profile %q: %q is not a time zone", profile.ID,
				b.TimeZone).With("path", "budgets.time_zone")
		}
		return p.Now().In(zone), nil
	}
	return p.Now().UTC(), nil
}

// Reserve implements models.Purse.
func (p *Purse) Reserve(ctx context.Context, s models.Spending) (string, error) {
	limits, day, err := p.Limits(s)
	if err != nil {
		return "", err
	}
	entry := store.LedgerEntry{
		ID: "call_" + rand.Text(), Execution: s.Execution, Workflow: s.Workflow, Profile: s.Profile.ID, Day: day,
		Tokens: s.Most.Total(), Cost: s.Profile.Price.Cost(s.Most),
	}
	principal := identity.System(s.Workspace)
	if s.Woken { // what it waited for has come, or a new day; it waits again if that does not suffice
		if err := p.Waits.Leave(ctx, principal, s.Execution, s.Activation); err != nil {
			return "", err
		}
	}
	for {
		p.mu.Lock()
		moved := p.moved
		p.mu.Unlock()
		err := p.ledger.Reserve(ctx, principal, entry, limits...)
		over := (*store.OverError)(nil)
		if !errors.As(err, &over) {
			return entry.ID, err
		}
		if over.OpenCalls == 0 {
			exhausted, err := p.exhausted(ctx, principal, s, entry, over)
			if err != nil {
				return "", err
			}
			// Who is entered is woken by a raise and by a change of the profile. One that came before must be seen here.
			if limits, err = p.newLimits(ctx, principal, &s); err != nil {
				return "", err
			}
			err = p.ledger.Reserve(ctx, principal, entry, limits...)
			if errors.As(err, &over) && over.OpenCalls == 0 {
				return "", exhausted
			}
			lerr := p.Leave(ctx, principal, s, exhausted.Budget)
			if lerr != nil && err == nil { // the call is not made
				return "", errors.Join(lerr, p.Return(context.WithoutCancel(ctx), s.Workspace, entry.ID, llm.Usage{}, s.Profile.Price))
			}
			if lerr != nil || !errors.As(err, &over) {
				return entry.ID, errors.Join(err, lerr)
			}
			continue // there is more room than before, and others may give back
		}
		select {
		case <-moved:
		case <-time.After(p.Again):
		case <-ctx.Done():
			return "", fault.Newf(fault.Canceled, "the call was stopped while it waited for the budget %q", over.Budget)
		}
	}
}

// exhausted enters who waits for a budget. Of all who do, one asks a person.
func (p *Purse) exhausted(ctx context.Context, principal identity.Principal, s models.Spending, entry store.LedgerEntry,
	over *store.OverError) (*models.Exhausted, error) {
	if err := p.sweep(ctx, principal, over.Budget); err != nil {
		return nil, err
	}
	kept, err := p.Waits.Wait(ctx, principal, store.BudgetWait{
		Budget: over.Budget, Execution: s.Execution, Activation: s.Activation, Node: s.Node, Since: p.Now().UnixMilli(),
	})
	if err != nil {
		return nil, err
	}
	asked := map[string]any{
		"interaction_type": "input",
		"budget":           over.Budget, "limit": map[string]any{"tokens": over.Limit.Tokens, "cost": float64(over.Limit.Cost) / 1e6},
		"spent":  map[string]any{"tokens": over.LedgerSum.Tokens, "cost": float64(over.LedgerSum.Cost) / 1e6},
		"needed": map[string]any{"tokens": entry.Tokens, "cost": float64(entry.Cost) / 1e6},
		"schema": json.RawMessage(`{"type":"object","required":["raise_by"],"properties":{"raise_by":{"type":"number","exclusiveMinimum":0,"description":"tokens; for a budget of money, units of the currency"}}}`),
	}
	form.Say(asked, s.Language, form.TitleText, text.Of("Raise the budget %s?", over.Budget))
	form.Say(asked, s.Language, form.DescriptionText, lacking(s.Profile.ID, entry, over))
	request, err := json.Marshal(asked)
	if err != nil {
		return nil, fault.Newf(fault.Internal, "the question about the budget %q: %w", over.Budget, err)
	}
	exhausted := &models.Exhausted{Budget: over.Budget, Request: request, Asks: kept.Asks}
	if over.Query.Day != "" {
		now, err := p.today(s.Profile)
		if err != nil {
			return nil, err
		}
		exhausted.Until = time.Date(now.Year(), now.Month(), now.Day()+1, 0, 0, 0, 0, now.Location()) // the next day has its own
	}
	return exhausted, nil
}

// newLimits are the limits as the profile has them now.
func (p *Purse) newLimits(ctx context.Context, principal identity.Principal, s *models.Spending) ([]store.Limit, error) {
	stored, err := p.profiles.Get(ctx, principal, s.Profile.ID)
	if err == nil {
		var now llm.Profile
		if now, err = p.read(stored); err == nil {
			s.Profile.Budgets = now.Budgets
		}
	}
	if err != nil { // nothing would wake it
		return nil, errors.Join(err, p.Waits.Leave(context.WithoutCancel(ctx), principal, s.Execution, s.Activation))
	}
	limits, _, err := p.Limits(*s)
	return limits, err
}

// Leave takes out who need not wait after all. If it was to ask, somebody else has to.
func (p *Purse) Leave(ctx context.Context, principal identity.Principal, s models.Spending, budget string) error {
	ctx = context.WithoutCancel(ctx)
	if err := p.Waits.Leave(ctx, principal, s.Execution, s.Activation); err != nil {
		return err
	}
	waiting, err := p.Waits.Waiting(ctx, principal, budget)
	if err != nil || len(waiting) == 0 || slices.ContainsFunc(waiting, func(w store.BudgetWait) bool { return w.Asks }) {
		return err
	}
	return p.Rouse(ctx, principal, budget)
}

// lacking says what a budget lacks, in its own unit.
func lacking(profile string, entry store.LedgerEntry, over *store.OverError) text.Text {
	if over.Limit.Cost > 0 {
		return text.Of("A call of the model %q may cost up to %g; %g of %g are spent.", profile,
			float64(entry.Cost)/1e6, float64(over.LedgerSum.Cost)/1e6, float64(over.Limit.Cost)/1e6)
	}
	return text.Of("A call of the model %q needs up to %d tokens; %d of %d are spent.", profile,
		entry.Tokens, over.LedgerSum.Tokens, over.Limit.Tokens)
}

// sweep takes out who waited in executions that have ended, so that somebody who is there asks.
func (p *Purse) sweep(ctx context.Context, principal identity.Principal, budget string) error {
	waiting, err := p.Waits.Waiting(ctx, principal, budget)
	if err != nil {
		return err
	}
	for _, w := range waiting {
		e, err := p.executions.Get(ctx, principal, w.Execution)
		if err == nil && !e.Status.Final() {
			continue
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if err := p.Waits.Leave(ctx, principal, w.Execution, w.Activation); err != nil {
			return err
		}
	}
	return nil
}

// Return implements models.Purse.
func (p *Purse) Return(ctx context.Context, workspace, id string, used llm.Usage, price llm.Price) error {
	err := p.ledger.Settle(ctx, identity.System(workspace), store.Settlement{ID: id, Tokens: used.Total(), Cost: price.Cost(used)})
	p.Wake()
	return err
}

// Wake lets those who queue look again.
func (p *Purse) Wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.moved)
	p.moved = make(chan struct{})
}

// Settled says that a row gives something back.
func Settled(row host.Row) bool {
	for _, t := range row.Told {
		if t.What == host.ToldUsage {
			return true
		}
	}
	return false
}

// RaiseBudget adds to a budget and wakes everybody who waits for it. By is tokens, or units of the currency for a budget of
// money. The id makes saying it twice harmless.
func (u *Purse) RaiseBudget(ctx context.Context, p identity.Principal, id, budget string, by float64) error {
	return u.Raise(ctx, p, id, budget, by, false)
}

// Raise is RaiseBudget. Answers says that it answers the question that the id names, as execution/question, so that
// who asked that is told by the answer.
func (u *Purse) Raise(ctx context.Context, p identity.Principal, id, budget string, by float64, answers bool) error {
	if !(by > 0) || by > 1e12 {
		return fault.New(fault.InvalidInput, "raise_by: a budget is raised by a positive number, of at most a million millions").With("path", "raise_by")
	}
	raise := store.Raise{Budget: budget, Tokens: int64(math.Ceil(by))}
	if name, ok := ReadName(budget); ok && name.money {
		raise.Tokens, raise.Cost = 0, int64(math.Ceil(by*1e6))
	}
	return u.raise(ctx, p, id, raise, answers)
}

// raise adds to a budget, which may be nothing, and lets those who wait for it look again. That they are told is on disk
// together with the raise; a process that dies right then tells them with its next start.
func (u *Purse) raise(ctx context.Context, p identity.Principal, id string, raise store.Raise, answers bool) error {
	requests, err := u.recordRaise(ctx, p, id, raise, func(w store.BudgetWait) bool {
		return answers && strings.HasPrefix(id, w.Execution+"/"+w.Activation+"#") // it is told by the answer
	})
	if err != nil {
		return err
	}
	return u.wakeRaised(ctx, p.Workspace, requests)
}

// recordRaise writes a raise down and what those who wait are told, except for those who know.
func (u *Purse) recordRaise(ctx context.Context, p identity.Principal, id string, raise store.Raise,
	knows func(store.BudgetWait) bool) ([]host.Request, error) {
	now := time.Now().UnixMilli()
	request := func(w store.BudgetWait) host.Request {
		return host.Request{
			Execution: w.Execution, Action: host.ActionSignal, Node: w.Node, Activation: engine.ActivationID(w.Activation),
			Signal: models.BudgetSignal(raise.Budget),
			Dedup:  "budget:" + id + ":" + w.Activation, Value: json.RawMessage(`{"raised":true}`),
		}
	}
	var unsaid error
	raise.Wake = func(w store.BudgetWait) store.InboxItem {
		if knows(w) {
			return store.InboxItem{}
		}
		r := request(w)
		body, err := json.Marshal(r)
		unsaid = errors.Join(unsaid, err)
		return store.InboxItem{Execution: w.Execution, Kind: string(r.Action), Dedup: r.Dedup, Time: now, Body: body}
	}
	waited, err := u.Waits.Raise(ctx, p, id, raise, now)
	if err = errors.Join(err, unsaid); err != nil {
		return nil, err
	}
	u.Wake()
	var requests []host.Request
	for _, w := range waited {
		if !knows(w) {
			requests = append(requests, request(w))
		}
	}
	return requests, nil
}

// wakeRaised lets those look into their inbox who were told of a raise.
func (u *Purse) wakeRaised(ctx context.Context, workspace string, requests []host.Request) error {
	var errs []error
	for _, r := range requests {
		err := u.act(ctx, identity.System(workspace), r)
		if code := fault.CodeOf(err); err != nil && code != fault.Conflict && code != fault.NotFound { // it has ended, or goes on already
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Withdrawn hands the asking on when a question about a budget was taken back: who asked was stopped or left out, and those
// who wait for the same answer would wait for nothing. An execution's owner calls it and must not wait for another, so
// that they are told is written down here, and they are woken later. Saying it again changes nothing, also when who asked has been woken
// meanwhile, and waits and asks anew.
func (u *Purse) Withdrawn(ref store.Ref, ask engine.AskID) error {
	activation, _, _ := strings.Cut(string(ask), "#")
	ctx, p := context.Background(), identity.System(ref.Workspace)
	u.withdrawing.Lock()
	defer u.withdrawing.Unlock()
	waiting, err := u.Waits.Waiting(ctx, p, "")
	if err != nil {
		return err
	}
	left := func(w store.BudgetWait) bool { return w.Execution == ref.Execution && w.Activation == activation }
	n := slices.IndexFunc(waiting, func(w store.BudgetWait) bool { return left(w) && w.Asks })
	if n < 0 {
		return nil // it was about something else, or they know
	}
	q, err := u.questions.Get(ctx, p, host.InteractionID(ref.Workspace, ref.Execution, ask))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if err == nil && waiting[n].Since > q.Created+(q.Updated-q.Created)/2 {
		return nil // it waits since after the question, not since before: clocks of processes may differ a little
	}
	requests, err := u.recordRaise(ctx, p, "rouse/"+rand.Text(), store.Raise{Budget: waiting[n].Budget}, left)
	if err != nil || len(requests) == 0 {
		return err
	}
	u.waking.Go(func() {
		if err := u.wakeRaised(ctx, ref.Workspace, requests); err != nil {
			u.log.Warn("who waits for a budget was not woken", "budget", waiting[n].Budget, "error", err)
		}
	})
	return nil
}

// Rouse lets everybody who waits for a budget look again, without adding to it.
func (u *Purse) Rouse(ctx context.Context, p identity.Principal, budget string) error {
	return u.raise(ctx, p, "rouse/"+rand.Text(), store.Raise{Budget: budget}, false)
}

// Close waits for those who wake executions, and gives up what could not be settled yet.
func (u *Purse) Close() {
	u.late.stop()
	u.waking.Wait()
}
