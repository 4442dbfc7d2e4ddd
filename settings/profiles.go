package settings

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"tandem/agent"
	"tandem/api"
	"tandem/fault"
	"tandem/identity"
	"tandem/llm"
	"tandem/payload"
	"tandem/route"
	"tandem/store"
	"tandem/text"
)

// Models is what the settings need from the language models of an instance.
type Models interface {
	// Providers are those that profiles may name, the most usual first.
	Providers() []llm.About
	// Profiles are those of the workspace by id, with those that are built in, which have no times.
	Profiles(ctx context.Context, p identity.Principal) ([]store.Profile, error)
	// SaveProfile makes a profile or replaces it, and wakes the nodes that wait for its budgets.
	SaveProfile(ctx context.Context, p identity.Principal, profile llm.Profile) error
	DeleteProfile(ctx context.Context, p identity.Principal, id string) error
	// TryProfile asks the model something small. What goes wrong at the service is part of the answer.
	TryProfile(ctx context.Context, p identity.Principal, profile llm.Profile, prompt string) (api.ProfileTest, error)
	// Budgets lists the budgets of the profiles of a workspace.
	Budgets(ctx context.Context, p identity.Principal, q api.BudgetQuery) (api.Budgets, error)
}

type (
	profileInput struct {
		ID string `path:"id" maxLength:"128"`
	}
	// The bodies are read here and not by the framework: one with a secret in it is answered with where the secret belongs.
	profileCreate struct {
		RawBody []byte `contentType:"application/json"`
	}
	profileChange struct {
		ID      string `path:"id" maxLength:"128"`
		RawBody []byte `contentType:"application/json"`
	}
	profileDelete struct {
		ID    string `path:"id" maxLength:"128"`
		Force bool   `query:"force" doc:"also when workflows use it"`
	}
	profileTry struct {
		ID   string `path:"id" maxLength:"128"`
		Body *api.ProfileTestRequest
	}
	profileOutput     struct{ Body api.Profile }
	profilesOutput    struct{ Body api.Profiles }
	profileTestOutput struct{ Body api.ProfileTest }
)

// profiles registers the models of the workspace.
func (s *settings) profiles() {
	op := route.Tagged("models")
	created := op(http.MethodPost, "/llm/profiles", "create-profile", "Keep a profile of a model")
	created.DefaultStatus = http.StatusCreated
	created.Description = "Without an id one is made from the name. A profile holds no secret: the key is in the credential that it names."
	changed := op(http.MethodPut, "/llm/profiles/{id}", "put-profile", "Make or replace a profile")
	created.SkipValidateBody, changed.SkipValidateBody = true, true // readProfileBody does, with what it knows besides
	deleted := op(http.MethodDelete, "/llm/profiles/{id}", "delete-profile", "Delete a profile")
	deleted.Description = "Refused while another profile falls back to it and, without force, while the newest revision of a workflow or a node template names it."
	tried := op(http.MethodPost, "/llm/profiles/{id}/test", "test-profile", "Ask the model of a profile for a few words")
	tried.Description = "A real call of at most 20 seconds, without fallbacks. It counts for the budgets per day. What goes wrong at the service is in error, with status 200."

	route.Handle(s.Router, op(http.MethodGet, "/llm/profiles", "list-profiles", "List profiles by id"), route.Readers(), s.listProfiles)
	route.Handle(s.Router, created, route.Editors(), s.createProfile)
	route.Handle(s.Router, op(http.MethodGet, "/llm/profiles/{id}", "get-profile", "Read a profile"), route.Readers(), s.getProfile)
	route.Handle(s.Router, changed, route.Editors(), s.putProfile)
	route.Handle(s.Router, deleted, route.Editors(), s.deleteProfile)
	route.Handle(s.Router, tried, route.Editors(), s.testProfile)

	schema := s.Document().Components.Schemas.Schema(reflect.TypeFor[api.Profile](), true, "")
	for _, item := range []*huma.Operation{s.Document().Paths[route.Prefix+"/llm/profiles"].Post,
		s.Document().Paths[route.Prefix+"/llm/profiles/{id}"].Put} {
		item.RequestBody.Content["application/json"] = &huma.MediaType{Schema: schema}
	}
}

func (s *settings) listProfiles(ctx context.Context, p identity.Principal, _ *struct{}) (*profilesOutput, error) {
	list, err := s.o.Models.Profiles(ctx, p)
	if err != nil {
		return nil, err
	}
	out := &profilesOutput{api.Profiles{Profiles: make([]api.Profile, len(list)), Providers: []api.ProfileProvider{}}}
	for i, stored := range list {
		if out.Body.Profiles[i], err = tellProfile(stored); err != nil {
			return nil, err
		}
	}
	for _, provider := range s.o.Models.Providers() {
		out.Body.Providers = append(out.Body.Providers, api.ProfileProvider{
			Name: provider.Name, Label: api.TextOf(provider.Label), Scripted: provider.Scripted})
	}
	return out, nil
}

func (s *settings) getProfile(ctx context.Context, p identity.Principal, in *profileInput) (*profileOutput, error) {
	stored, err := s.profile(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	told, err := tellProfile(stored)
	return &profileOutput{told}, err
}

// profile reads a profile. If there is none, the error names similar ones.
func (s *settings) profile(ctx context.Context, p identity.Principal, id string) (store.Profile, error) {
	list, err := s.o.Models.Profiles(ctx, p)
	if err != nil {
		return store.Profile{}, err
	}
	ids := make([]string, len(list))
	for i, stored := range list {
		if ids[i] = stored.ID; stored.ID == id {
			return stored, nil
		}
	}
	return store.Profile{}, fault.Newf(fault.NotFound, "there is no profile %q%s", id, route.DidYouMean(id, ids))
}

// profileIDs are the profiles of the workspace with what each falls back to.
func (s *settings) profileIDs(ctx context.Context, p identity.Principal) (map[string][]string, error) {
	list, err := s.o.Models.Profiles(ctx, p)
	if err != nil {
		return nil, err
	}
	all := make(map[string][]string, len(list))
	for _, stored := range list {
		profile, err := readProfile(stored)
		if err != nil {
			return nil, err
		}
		all[stored.ID] = profile.Fallbacks
	}
	return all, nil
}

func (s *settings) createProfile(ctx context.Context, p identity.Principal, in *profileCreate) (*profileOutput, error) {
	body, wrong := s.readProfileBody(in.RawBody)
	s.accounts.Lock()
	defer s.accounts.Unlock()
	find := func(id string) error {
		_, err := s.o.Stores.Profiles.Get(ctx, p, id)
		return err
	}
	if body.ID == "" {
		var err error
		if body.ID, err = route.FreeID(route.MadeID(body.Name, "profile"), find); err != nil {
			return nil, err
		}
	} else if err := find(body.ID); err == nil {
		return nil, fault.Newf(fault.Conflict, "there is already a profile %q; replace it with PUT", body.ID)
	} else if !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	return s.keepProfile(ctx, p, body, wrong)
}

func (s *settings) putProfile(ctx context.Context, p identity.Principal, in *profileChange) (*profileOutput, error) {
	body, wrong := s.readProfileBody(in.RawBody)
	if body.ID != "" && body.ID != in.ID {
		wrong = append(wrong, api.Wrong("id", text.Of("%q is not the profile of the address, %q", body.ID, in.ID)))
	}
	body.ID = in.ID
	s.accounts.Lock()
	defer s.accounts.Unlock()
	return s.keepProfile(ctx, p, body, wrong)
}

// keepProfile stores a profile unless something is wrong with it, by what was found before or is found here.
func (s *settings) keepProfile(ctx context.Context, p identity.Principal, body api.Profile,
	wrong []api.FaultField) (*profileOutput, error) {
	if slices.ContainsFunc(wrong, func(f api.FaultField) bool { return f.Path == wholeBody }) {
		return nil, wrongFields(wrong) // nothing else can be said about it
	}
	more, err := s.checkProfile(ctx, p, &body, wrong)
	if err != nil {
		return nil, err
	}
	if wrong = append(wrong, more...); len(wrong) > 0 {
		return nil, wrongFields(wrong)
	}
	before, err := s.auditedProfile(ctx, p, body.ID)
	if err != nil {
		return nil, err
	}
	if err := s.o.Models.SaveProfile(route.Audited(ctx, "profile.put", body.ID, before, profileLine(profileOf(body))), p,
		profileOf(body)); err != nil {
		return nil, err
	}
	return s.getProfile(ctx, p, &profileInput{body.ID})
}

// wrongFields is a refusal because of fields of a request.
func wrongFields(fields []api.FaultField) error {
	return api.WrongFields(fields...)
}

func (s *settings) deleteProfile(ctx context.Context, p identity.Principal, in *profileDelete) (*route.Nothing, error) {
	s.accounts.Lock()
	defer s.accounts.Unlock()
	stored, err := s.profile(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	if stored.Created == 0 {
		return nil, fault.Newf(fault.Conflict, "profile %q is built in; one that is kept under its id takes its place", in.ID)
	}
	all, err := s.profileIDs(ctx, p)
	if err != nil {
		return nil, err
	}
	var users []string
	for _, id := range slices.Sorted(maps.Keys(all)) {
		if id != in.ID && slices.Contains(all[id], in.ID) {
			users = append(users, id)
		}
	}
	if len(users) > 0 {
		return nil, fault.Newf(fault.Conflict, "profile %q takes the place of %s when that fails; change its fallback_profiles first", in.ID, route.Quoted(users)).With("profiles", users)
	}
	if !in.Force {
		workflows, templates, err := s.usersOf(ctx, p, in.ID)
		if err != nil {
			return nil, err
		}
		if len(workflows)+len(templates) > 0 {
			what := text.Of("the workflows %s", route.Quoted(workflows))
			switch named := text.Of("the node templates %s", route.Quoted(templates)); {
			case len(workflows) == 0:
				what = named
			case len(templates) > 0:
				what = text.Of("%s and %s", what, named)
			}
			return nil, fault.Newf(fault.Conflict, "profile %q is named by %s; give them another one, or delete it with force=true", in.ID, what).
				With("workflows", workflows).With("node_templates", templates)
		}
	}
	before, err := s.auditedProfile(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	return nil, s.o.Models.DeleteProfile(route.Audited(ctx, "profile.delete", in.ID, before, nil), p, in.ID)
}

// usersOf finds the workflows whose newest revision names a profile, which is the one that is deployed too, and the node
// templates that do.
func (s *settings) usersOf(ctx context.Context, p identity.Principal, id string) (workflows, templates []string, err error) {
	for page := (store.Page{Number: 1, Size: 500}); ; page.Number++ {
		list, err := s.o.Stores.Workflows.List(ctx, p, store.WorkflowQuery{NotPrefix: agent.UnnamedID(""), Page: page})
		if err != nil {
			return nil, nil, err
		}
		for i := range list.Workflows {
			w := &list.Workflows[i]
			r, err := s.o.Stores.Workflows.Revision(ctx, p, w.ID, w.Revision)
			if err != nil && !errors.Is(err, store.ErrNotFound) { // deleted meanwhile
				return nil, nil, err
			}
			if err == nil && mentions(r.Definition, id) {
				workflows = append(workflows, w.ID)
			}
		}
		if len(list.Workflows) < page.Size {
			break
		}
	}
	list, err := s.o.Stores.Templates.List(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	for _, t := range list {
		if mentions(t.KnownParams, id) {
			templates = append(templates, t.ID)
		}
	}
	slices.Sort(workflows)
	return workflows, templates, nil
}

// mentions says whether a document names a profile: under profile_id, or a name that ends with _profile or _profiles.
func mentions(document json.RawMessage, id string) bool {
	if !bytes.Contains(document, []byte(id)) {
		return false
	}
	var value any
	if payload.Read(document, &value) != nil {
		return false // what is not JSON names no profile
	}
	var in func(v any) bool
	in = func(v any) bool {
		switch v := v.(type) {
		case []any:
			return slices.ContainsFunc(v, in)
		case map[string]any:
			for key, one := range v { // order does not matter: any will do
				if key = route.SnakeCase(key); (key == "profile_id" || strings.HasSuffix(key, "_profile") ||
					strings.HasSuffix(key, "_profiles")) && is(one, id) || in(one) {
					return true
				}
			}
		}
		return false
	}
	return in(value)
}

// is says whether a value is a text, or a list with that text.
func is(v any, text string) bool {
	if list, ok := v.([]any); ok {
		return slices.Contains(list, any(text))
	}
	return v == any(text)
}

func (s *settings) testProfile(ctx context.Context, p identity.Principal, in *profileTry) (*profileTestOutput, error) {
	stored, err := s.profile(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	profile, err := readProfile(stored)
	if err != nil {
		return nil, err
	}
	prompt := ""
	if in.Body != nil {
		prompt = in.Body.Prompt
	}
	out, err := s.o.Models.TryProfile(ctx, p, profile, prompt)
	return &profileTestOutput{out}, err
}

// auditedProfile is how the audit log describes a stored profile; nil: there is none.
func (s *settings) auditedProfile(ctx context.Context, p identity.Principal, id string) (any, error) {
	stored, err := s.o.Stores.Profiles.Get(ctx, p, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	profile, err := readProfile(stored)
	return profileLine(profile), err
}

// profileLine is how the audit log describes a profile: without its parameters and headers.
func profileLine(p llm.Profile) any {
	return map[string]any{"name": p.Name, "provider": p.Provider, "model": p.Model, "credential_id": p.CredentialID,
		"fallback_profiles": p.Fallbacks, "budgets": p.Budgets}
}

func readProfile(stored store.Profile) (profile llm.Profile, err error) {
	if err := json.Unmarshal(stored.Body, &profile); err != nil {
		return profile, fault.Newf(fault.Internal, "profile %q cannot be read: %w", stored.ID, err)
	}
	profile.ID = stored.ID
	return profile, nil
}

func tellProfile(stored store.Profile) (api.Profile, error) {
	in, err := readProfile(stored)
	if err != nil {
		return api.Profile{}, err
	}
	out := api.Profile{
		ID: in.ID, Name: in.Name, Provider: in.Provider, Model: in.Model, EmbeddingModel: in.EmbeddingModel, BaseURL: in.BaseURL,
		CredentialID: in.CredentialID,
		Parameters:   api.ProfileParameters(in.Params), Price: api.ProfilePrice(in.Price), Fallbacks: in.Fallbacks,
		Script: api.ProfileScript{Recorded: in.Script.Recorded}, CreatedTime: stored.Created, UpdatedTime: stored.Updated,
	}
	for _, b := range in.Budgets {
		out.Budget = append(out.Budget, api.ProfileBudget(b))
	}
	for _, r := range in.Script.Rules {
		rule := api.ProfileRule{
			Contains: r.Contains, Matches: r.Matches, System: r.System, Tool: r.Tool, Schema: r.Schema, Reply: r.Reply,
			JSON: r.JSON, Reasoning: r.Reasoning,
			FinishReason: string(r.Finish), Fail: r.Fail,
		}
		for _, c := range r.Calls {
			rule.Calls = append(rule.Calls, api.ProfileRuleCall(c))
		}
		out.Script.Rules = append(out.Script.Rules, rule)
	}
	return out, nil
}

// profileOf is the reverse of tellProfile.
func profileOf(in api.Profile) llm.Profile {
	out := llm.Profile{
		ID: in.ID, Name: in.Name, Provider: in.Provider, Model: in.Model, EmbeddingModel: in.EmbeddingModel, BaseURL: in.BaseURL,
		CredentialID: in.CredentialID,
		Params:       llm.Params(in.Parameters), Price: llm.Price(in.Price), Fallbacks: in.Fallbacks,
		Script: llm.Script{Recorded: in.Script.Recorded},
	}
	for _, b := range in.Budget {
		out.Budgets = append(out.Budgets, llm.Budget(b))
	}
	for _, r := range in.Script.Rules {
		rule := llm.Rule{
			Contains: r.Contains, Matches: r.Matches, System: r.System, Tool: r.Tool, Schema: r.Schema, Reply: r.Reply,
			JSON: r.JSON, Reasoning: r.Reasoning,
			Finish: llm.Finish(r.FinishReason), Fail: r.Fail,
		}
		for _, c := range r.Calls {
			rule.Calls = append(rule.Calls, llm.RuleCall(c))
		}
		out.Script.Rules = append(out.Script.Rules, rule)
	}
	return out
}
