package budget

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"tandem/api"
	"tandem/fault"
	"tandem/identity"
	"tandem/llm"
	"tandem/store"
)

// List lists what the profiles of a workspace limit: the present day, the executions and workflows that have used
// something, and whatever somebody waits for, also when the profile is gone.
func (u *Purse) List(ctx context.Context, p identity.Principal, q api.BudgetQuery) (api.Budgets, error) {
	l := &budgetList{u: u, p: p, q: q, seen: map[string]bool{}, profiles: map[string]llm.Profile{},
		out: api.Budgets{Budgets: []api.Budget{}}}
	stored, err := u.profiles.List(ctx, p)
	if err != nil {
		return l.out, err
	}
	var ids []string
	for _, s := range stored {
		if l.profiles[s.ID], err = u.read(s); err != nil {
			return l.out, err
		}
		ids = append(ids, s.ID)
	}
	if err := l.findWaiting(ctx); err != nil {
		return l.out, err
	}
	if q.Budget != "" {
		return l.out, l.one(ctx, q.Budget)
	}
	for _, id := range ids {
		if err := l.profile(ctx, l.profiles[id]); err != nil {
			return l.out, err
		}
	}
	for _, w := range l.waiting {
		if name, ok := ReadName(w.Budget); ok && l.wanted(name.Profile, name.per) {
			if err := l.addBudget(ctx, name, nil); err != nil {
				return l.out, err
			}
		}
	}
	order := []string{PerDay, perWorkflow, PerExecution}
	slices.SortStableFunc(l.out.Budgets, func(a, b api.Budget) int {
		return cmp.Or(cmp.Compare(a.ProfileID, b.ProfileID), cmp.Compare(min(1, len(b.Waiting)), min(1, len(a.Waiting))),
			cmp.Compare(slices.Index(order, a.Per), slices.Index(order, b.Per)))
	})
	return l.out, nil
}

// budgetList is a listing that is being made.
type budgetList struct {
	u        *Purse
	p        identity.Principal
	q        api.BudgetQuery
	profiles map[string]llm.Profile
	waiting  []store.BudgetWait
	seen     map[string]bool
	out      api.Budgets
}

func (l *budgetList) wanted(profile, per string) bool {
	return (l.q.ProfileID == "" || l.q.ProfileID == profile) && (l.q.Per == "" || l.q.Per == per)
}

// findWaiting reads who waits. Executions that have ended wait no longer, though nobody may have noted that.
func (l *budgetList) findWaiting(ctx context.Context) error {
	all, err := l.u.Waits.Waiting(ctx, l.p, "")
	if err != nil {
		return err
	}
	for _, w := range all {
		e, err := l.u.executions.Get(ctx, l.p, w.Execution)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if err == nil && !e.Status.Final() {
			l.waiting = append(l.waiting, w)
		}
	}
	return nil
}

// profile lists the budgets of one profile.
func (l *budgetList) profile(ctx context.Context, profile llm.Profile) error {
	for _, b := range profile.Budgets {
		if !l.wanted(profile.ID, b.Per) {
			continue
		}
		if b.Per == PerDay {
			day, err := dayIn(l.u.Now(), b.TimeZone)
			if err != nil {
				return err
			}
			if err := l.both(ctx, b, Name{Profile: profile.ID, per: b.Per, key: day}, nil); err != nil {
				return err
			}
			continue
		}
		list, err := l.u.ledger.Spenders(ctx, l.p, store.SpenderQuery{Profile: profile.ID,
			Workflows: b.Per == perWorkflow, Limit: l.q.Limit + 1})
		if err != nil {
			return err
		}
		if len(list) > l.q.Limit {
			list, l.out.More = list[:l.q.Limit], true
		}
		for _, s := range list {
			if err := l.both(ctx, b, Name{Profile: profile.ID, per: b.Per, key: s.ID}, &s.LedgerSum); err != nil {
				return err
			}
		}
	}
	return nil
}

// both adds the budget of tokens and that of money, as far as there are.
func (l *budgetList) both(ctx context.Context, b llm.Budget, name Name, sum *store.LedgerSum) error {
	if b.Tokens > 0 {
		if err := l.addBudget(ctx, name, sum); err != nil {
			return err
		}
	}
	if b.Cost <= 0 {
		return nil
	}
	name.money = true
	return l.addBudget(ctx, name, sum)
}

// one adds a budget that is named, if there is something that it could be for.
func (l *budgetList) one(ctx context.Context, text string) error {
	name, ok := ReadName(text)
	if !ok {
		return nil
	}
	waits := slices.ContainsFunc(l.waiting, func(w store.BudgetWait) bool { return w.Budget == text })
	if limitOf(l.profiles[name.Profile], name) == 0 && !waits {
		return nil
	}
	var err error
	switch name.per {
	case PerDay:
		if _, err := time.Parse(time.DateOnly, name.key); err != nil {
			return nil
		}
	case perWorkflow:
		_, err = l.u.workflows.Get(ctx, l.p, name.key)
	default:
		_, err = l.u.executions.Get(ctx, l.p, name.key)
	}
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return l.addBudget(ctx, name, nil)
}

// addBudget adds a budget that is not there yet. Sum is what was used of it; nil: it has to be looked up.
func (l *budgetList) addBudget(ctx context.Context, name Name, sum *store.LedgerSum) error {
	text := name.String()
	if l.seen[text] {
		return nil
	}
	l.seen[text] = true
	b := api.Budget{Budget: text, ProfileID: name.Profile, Per: name.per, Key: name.key, Unit: "tokens", Waiting: []api.BudgetWait{}}
	for _, w := range l.waiting {
		if w.Budget == text {
			b.Waiting = append(b.Waiting, api.BudgetWait{ExecutionID: w.Execution, NodeID: w.Node, ActivationID: w.Activation,
				SinceTime: w.Since, Asks: w.Asks})
		}
	}
	if l.q.Waiting && len(b.Waiting) == 0 {
		return nil
	}
	if sum == nil {
		query := store.LedgerQuery{Profile: name.Profile}
		switch name.per {
		case PerDay:
			query.Day = name.key
		case perWorkflow:
			query.Workflow = name.key
		default:
			query.Execution = name.key
		}
		found, err := l.u.ledger.Sum(ctx, l.p, query)
		if err != nil {
			return err
		}
		sum = &found
	}
	raised, err := l.u.Waits.Raised(ctx, l.p, text)
	if err != nil {
		return err
	}
	limit, unit := limitOf(l.profiles[name.Profile], name), 1.0
	added, spent, reserved := raised.Tokens, sum.Tokens, sum.OpenTokens
	if name.money {
		b.Unit, unit = "cost", 1e6
		added, spent, reserved = raised.Cost, sum.Cost, sum.OpenCost
	}
	b.Limit, b.Raised, b.Spent, b.Reserved, b.OpenCalls = float64(limit)/unit, float64(added)/unit, float64(spent)/unit,
		float64(reserved)/unit, sum.OpenCalls
	if limit > 0 {
		b.Remaining = float64(max(0, limit+added-spent-reserved)) / unit
	}
	l.out.Budgets = append(l.out.Budgets, b)
	return nil
}

// limitOf is what a profile says about a budget, in tokens or in millionths of the currency, zero for nothing.
func limitOf(profile llm.Profile, name Name) int64 {
	for _, b := range profile.Budgets {
		switch {
		case b.Per != name.per:
		case name.money:
			return int64(math.Round(b.Cost * 1e6))
		default:
			return b.Tokens
		}
	}
	return 0
}

// dayIn is the calendar day in a time zone; no zone is UTC.
func dayIn(now time.Time, zone string) (string, error) {
	place, err := time.LoadLocation(cmp.Or(zone, "UTC"))
	if err != nil {
		return "", fault.Newf(fault.InvalidConfig, "%q is not a time zone", zone)
	}
	return now.In(place).Format(time.DateOnly), nil
}
