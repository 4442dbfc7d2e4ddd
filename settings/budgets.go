package settings

import (
	"context"
	"net/http"
	"strings"

	"tandem/api"
	"tandem/fault"
	"tandem/identity"
	"tandem/route"
)

type (
	budgetsInput struct {
		Profile string `query:"profile_id" maxLength:"128"`
		Per     string `query:"per" enum:"execution,workflow,day"`
		Waiting bool   `query:"waiting" doc:"only those that somebody waits for"`
		Limit   int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"how many executions and how many workflows are listed per profile, the last and largest first"`
	}
	budgetsOutput struct{ Body api.Budgets }
	raiseInput    struct{ Body api.RaiseRequest }
	budgetOutput  struct{ Body api.Budget }
)

// budgets registers the budgets of profiles, and how they are raised.
func (s *settings) budgets() {
	op := route.Tagged("models")
	listed := op(http.MethodGet, "/budgets", "list-budgets", "List what the profiles limit, what is spent and who waits")
	listed.Description = "The present day of every budget per day, the executions and workflows that have used something, and everything that somebody waits for."
	raised := op(http.MethodPost, "/budgets/raise", "raise-budget", "Add to a budget and wake everybody who waits for it")
	raised.Description = "With a request_id saying it twice adds once. The profile stays as it is: the next day, execution or workflow has its limit."
	route.Handle(s.Router, listed, route.Readers(), s.listBudgets)
	route.Handle(s.Router, raised, route.Operators(), s.raiseBudget)
}

func (s *settings) listBudgets(ctx context.Context, p identity.Principal, in *budgetsInput) (*budgetsOutput, error) {
	if in.Profile != "" {
		if _, err := s.profile(ctx, p, in.Profile); err != nil {
			return nil, err
		}
	}
	list, err := s.o.Models.Budgets(ctx, p, api.BudgetQuery{ProfileID: in.Profile, Per: in.Per, Waiting: in.Waiting, Limit: in.Limit})
	return &budgetsOutput{list}, err
}

func (s *settings) raiseBudget(ctx context.Context, p identity.Principal, in *raiseInput) (*budgetOutput, error) {
	r := in.Body
	if !(r.RaiseBy > 0) || r.RaiseBy > maxBudgetCost {
		return nil, api.WrongField("raise_by", "must be more than 0 and at most %g", maxBudgetCost)
	}
	if _, err := s.budget(ctx, p, r.Budget); err != nil {
		return nil, err
	}
	id := route.NewID("raise")
	if r.RequestID != "" {
		id = "request-by/" + p.User + "/" + r.Budget + "/" + r.RequestID // each user has ids of their own
	}
	if err := s.o.Raise(route.Audited(ctx, "budget.raise", r.Budget, nil, map[string]float64{"raise_by": r.RaiseBy}), p, id,
		r.Budget, r.RaiseBy); err != nil {
		return nil, err
	}
	now, err := s.budget(ctx, p, r.Budget)
	if err != nil {
		return nil, err
	}
	return &budgetOutput{*now}, nil
}

// budget reads one budget.
func (s *settings) budget(ctx context.Context, p identity.Principal, name string) (*api.Budget, error) {
	profile, _, _ := strings.Cut(name, "/")
	list, err := s.o.Models.Budgets(ctx, p, api.BudgetQuery{ProfileID: profile, Budget: name, Limit: 1})
	if err != nil {
		return nil, err
	}
	for i := range list.Budgets {
		if list.Budgets[i].Budget == name {
			return &list.Budgets[i], nil
		}
	}
	return nil, fault.Newf(fault.NotFound, "there is no budget %q; GET %s/budgets lists them", name, route.Prefix)
}
