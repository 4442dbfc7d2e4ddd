package app

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"tandem/builtin"
	"tandem/fault"
	"tandem/identity"
	"tandem/llm"
	"tandem/llm/anthropic"
	"tandem/llm/gemini"
	"tandem/llm/openai"
	"tandem/llm/scripted"
	"tandem/outbound"
	"tandem/store"
)

// Providers are the services that models are reached through. A provider is a package and a line here.
func providers() map[string]llm.Factory {
	return map[string]llm.Factory{
		"anthropic": anthropic.New,
		"gemini":    gemini.New,
		"openai":    openai.New,
		"scripted":  scripted.New,
	}
}

// maxCompletionBytes is how much a service may say in one completion.
const maxCompletionBytes = 64 << 20

// models is how kinds reach language models.
func (i *Instance) models(client *outbound.Client) *builtin.Models {
	http := client.HTTPClient()
	http.Transport, http.Timeout = client.RoundTripper(maxCompletionBytes), 0 // a call has limits of its own
	return &builtin.Models{
		Profile:   i.Profile,
		Providers: providers(),
		Executor:  llm.NewExecutor(llm.Options{}),
		Settings:  llm.Settings{HTTP: http},
		Purse:     i.purse,
	}
}

// Profile reads a profile of a workspace.
func (i *Instance) Profile(ctx context.Context, workspace, id string) (llm.Profile, error) {
	p := identity.System(workspace)
	stored, err := i.stores.Profiles.Get(ctx, p, id)
	if err == nil {
		return readProfile(stored)
	}
	if fault.CodeOf(err) != fault.NotFound {
		return llm.Profile{}, err
	}
	list, err := i.stores.Profiles.List(ctx, p)
	if err != nil {
		return llm.Profile{}, err
	}
	names := make([]string, len(list))
	for n, one := range list {
		names[n] = one.ID
	}
	hint := `; "tandem profiles" lists them`
	if near := fault.Nearest(id, names); near != "" {
		hint = fmt.Sprintf("; did you mean %q?", near)
	}
	return llm.Profile{}, fault.Newf(fault.NotFound, "there is no profile %q in this workspace%s", id, hint)
}

func readProfile(stored store.Profile) (profile llm.Profile, err error) {
	if err := json.Unmarshal(stored.Body, &profile); err != nil {
		return profile, fault.Newf(fault.Internal, "profile %q cannot be read: %w", stored.ID, err)
	}
	profile.ID = stored.ID
	return profile, nil
}

// SaveProfile makes a profile or replaces it.
func (i *Instance) SaveProfile(ctx context.Context, p identity.Principal, profile llm.Profile) error {
	body, err := json.Marshal(profile)
	if err != nil {
		return fault.Newf(fault.Invalid, "the profile %q cannot be kept: %w", profile.ID, err)
	}
	now := time.Now().UnixMilli()
	return i.stores.Profiles.Put(ctx, p, store.Profile{ID: profile.ID, Body: body, Created: now, Updated: now})
}
