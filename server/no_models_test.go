package server

import (
	"context"

	"tandem/api"
	"tandem/fault"
	"tandem/identity"
	"tandem/llm"
	"tandem/store"
)

// noModels is an instance without models; the routes that need one are tested with a real instance, in package app.
type noModels struct{}

func (noModels) Providers() []llm.About { return nil }

func (noModels) Profiles(context.Context, identity.Principal) ([]store.Profile, error) {
	return nil, nil
}

func (noModels) SaveProfile(context.Context, identity.Principal, llm.Profile) error {
	return fault.New(fault.Unsupported, "there are no models here")
}

func (noModels) DeleteProfile(context.Context, identity.Principal, string) error {
	return fault.New(fault.Unsupported, "there are no models here")
}

func (noModels) TryProfile(context.Context, identity.Principal, llm.Profile, string) (api.ProfileTest, error) {
	return api.ProfileTest{}, fault.New(fault.Unsupported, "there are no models here")
}

func (noModels) Budgets(context.Context, identity.Principal, api.BudgetQuery) (api.Budgets, error) {
	return api.Budgets{}, nil
}
