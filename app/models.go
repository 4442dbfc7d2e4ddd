package app

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tandem/api"
	"tandem/budget"
	"tandem/builtin/models"
	"tandem/credential"
	"tandem/fault"
	"tandem/identity"
	"tandem/llm"
	"tandem/outbound"
	"tandem/plug"
	"tandem/store"
	"tandem/text"
	"tandem/validation"
)

// maxCompletionBytes is how much a service may send in one completion.
const maxCompletionBytes = 64 << 20

// models is how kinds reach language models.
func (i *Instance) models(client *outbound.Client, set *plug.Set, o Options) *models.Models {
	http := client.HTTPClient()
	http.Transport, http.Timeout = client.RoundTripper(maxCompletionBytes), 0 // a call has limits of its own
	i.speech = &models.Models{
		Profile:   i.Profile,
		Providers: set.Factories(),
		Executor:  llm.NewExecutor(llm.Options{Observe: o.Observed, Log: logStages(o.Log)}),
		Settings:  llm.Settings{HTTP: llm.HangUp(http)},
		Purse:     i.purse,
	}
	return i.speech
}

// Providers is what the providers say about themselves, sorted by name.
func (i *Instance) Providers() []llm.About { return i.parts.AboutProviders() }

// logStages writes the stages of completions for operators who look that closely. Prompts and answers are not among it.
func logStages(log *slog.Logger) func(level, message string, fields map[string]any) {
	if log == nil {
		return nil
	}
	return func(level, message string, fields map[string]any) {
		at := slog.LevelDebug
		if level == "WARN" {
			at = slog.LevelWarn
		}
		args := make([]any, 0, 2*len(fields))
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			args = append(args, name, fields[name])
		}
		log.Log(context.Background(), at, message, args...)
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
	if id == demoProfile {
		return builtInDemo()
	}
	list, err := i.stores.Profiles.List(ctx, p)
	if err != nil {
		return llm.Profile{}, err
	}
	names := make([]string, len(list))
	for n, one := range list {
		names[n] = one.ID
	}
	return llm.Profile{}, fault.Newf(fault.NotFound, "there is no profile %q in this workspace%s", id, meant(id, append(names, demoProfile), text.Of(`; "tandem profiles" lists them`)))
}

// Profiles lists the profiles of a workspace by id, with those that are built in, which have no times.
func (i *Instance) Profiles(ctx context.Context, p identity.Principal) ([]store.Profile, error) {
	list, err := i.stores.Profiles.List(ctx, p)
	if err != nil || slices.ContainsFunc(list, func(s store.Profile) bool { return s.ID == demoProfile }) {
		return list, err
	}
	demo, err := builtInDemo()
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(demo)
	if err != nil {
		return nil, fault.Newf(fault.Internal, "the built-in profile %q: %w", demoProfile, err)
	}
	list = append(list, store.Profile{Workspace: p.Workspace, ID: demoProfile, Body: body})
	slices.SortFunc(list, func(a, b store.Profile) int { return cmp.Compare(a.ID, b.ID) })
	return list, nil
}

func readProfile(stored store.Profile) (profile llm.Profile, err error) {
	if err := json.Unmarshal(stored.Body, &profile); err != nil {
		return profile, fault.Newf(fault.Internal, "profile %q cannot be read: %w", stored.ID, err)
	}
	profile.ID = stored.ID
	return profile, nil
}

// SaveProfile makes a profile or replaces it. Nodes that wait for one of its budgets try again, since there may be room now.
func (i *Instance) SaveProfile(ctx context.Context, p identity.Principal, profile llm.Profile) error {
	if check := i.parts.Providers[profile.Provider].Check; check != nil {
		if err := check(profile); err != nil {
			return err
		}
	}
	body, err := json.Marshal(profile)
	if err != nil {
		return fault.Newf(fault.Invalid, "the profile %q cannot be kept: %w", profile.ID, err)
	}
	now := time.Now().UnixMilli()
	if err := i.stores.Profiles.Put(ctx, p, store.Profile{ID: profile.ID, Body: body, Created: now, Updated: now}); err != nil {
		return err
	}
	return i.lookAgain(ctx, p, profile.ID)
}

// DeleteProfile deletes a profile. Nodes that wait for one of its budgets go on, and find that it is gone.
func (i *Instance) DeleteProfile(ctx context.Context, p identity.Principal, id string) error {
	if err := i.stores.Profiles.Delete(ctx, p, id); err != nil {
		return err
	}
	return i.lookAgain(ctx, p, id)
}

// lookAgain wakes those who wait for a budget of a profile.
func (i *Instance) lookAgain(ctx context.Context, p identity.Principal, profile string) error {
	waiting, err := i.stores.Budgets.Waiting(ctx, p, "")
	if err != nil {
		return err
	}
	woken := map[string]bool{}
	for _, w := range waiting {
		if name, _ := budget.ReadName(w.Budget); name.Profile != profile || woken[w.Budget] {
			continue
		}
		woken[w.Budget] = true
		if err := i.purse.Rouse(ctx, p, w.Budget); err != nil {
			return err
		}
	}
	i.purse.Wake() // also those who queue behind calls that are under way
	return nil
}

// RaiseBudget adds to a budget and wakes everybody who waits for it. By is tokens, or units of the currency for a budget of
// money. A second call with the same id changes nothing.
func (i *Instance) RaiseBudget(ctx context.Context, p identity.Principal, id, budget string, by float64) error {
	return i.purse.RaiseBudget(ctx, p, id, budget, by)
}

// Budgets lists what the profiles of a workspace limit: the present day, the executions and workflows that have used
// something, and budgets that nodes wait for, also when the profile is gone.
func (i *Instance) Budgets(ctx context.Context, p identity.Principal, q api.BudgetQuery) (api.Budgets, error) {
	return i.purse.List(ctx, p, q)
}

// The limits of a trial: a person waits for it.
const (
	tryTotal      = 20 * time.Second
	tryFirstToken = 15 * time.Second
	tryTokens     = 256
	// tryExcerpt is how much of the reply is shown.
	tryExcerpt = 500
)

// TryProfile asks the model of a profile something small, without fallbacks. It counts for budgets per day. What goes wrong
// at the service, or on the way there, is part of the answer.
func (i *Instance) TryProfile(ctx context.Context, p identity.Principal, profile llm.Profile, prompt string) (api.ProfileTest, error) {
	begun := time.Now()
	out := api.ProfileTest{}
	// The key is held while anything that the service said is made fit to be shown.
	open, release := i.vault.Holding(identity.System(p.Workspace))
	defer release()
	err := i.try(ctx, p, open, profile, cmp.Or(prompt, "Say ok."), &out)
	out.LatencyMS = time.Since(begun).Milliseconds()
	if ctx.Err() != nil {
		return out, context.Cause(ctx)
	}
	if err != nil {
		f := i.vault.Redactor().Fault(fault.From(err))
		out.OK, out.Error = false, &api.ProfileFailed{Code: string(f.Code), Message: f.Message}
	}
	return out, nil
}

// try does the call and fills in the answer.
func (i *Instance) try(ctx context.Context, p identity.Principal, open credential.Opener, profile llm.Profile, prompt string,
	out *api.ProfileTest) error {
	provider, err := i.speech.Provider(ctx, open, profile)
	if err != nil {
		return err
	}
	request := llm.Request{Stream: true, Messages: []llm.Message{{Role: llm.User, Content: prompt}}}
	request.MaxTokens = tryTokens + profile.Params.ThinkingBudget // thoughts count as output
	reserved, err := i.reserveTrial(ctx, p, profile, request)
	if err != nil {
		return err
	}
	begun := time.Now()
	var first time.Duration
	done, err := i.speech.Executor.Do(ctx, llm.Call{
		RequestID: "test_" + rand.Text(), Profile: profile, Provider: provider, Request: request,
		FirstToken: tryFirstToken, Total: tryTotal,
		Sink: func(llm.Delta) {
			if first == 0 {
				first = time.Since(begun)
			}
		},
	})
	if reserved != "" {
		if rerr := i.purse.Return(context.WithoutCancel(ctx), p.Workspace, reserved, done.Usage, profile.Price); err == nil {
			err = rerr
		}
	}
	if err != nil {
		return err
	}
	reply := []rune(i.vault.Redactor().Text(done.Message.Content))
	if len(reply) > tryExcerpt {
		reply = append(reply[:tryExcerpt], '…')
	}
	out.OK, out.Model, out.Reply, out.FirstTokenMS, out.Warnings = true, cmp.Or(done.Model, profile.Model), string(reply),
		first.Milliseconds(), done.Warnings
	out.Usage = &api.ProfileUsage{
		InputTokens: done.Usage.InputTokens, OutputTokens: done.Usage.OutputTokens, CachedTokens: done.Usage.CachedTokens,
		Estimated: done.Usage.Estimated,
		Cost:      float64(profile.Price.Cost(done.Usage)) / 1e6,
	}
	return nil
}

// reserveTrial sets aside what a trial may use of the budgets per day. It belongs to no execution, so it neither queues nor asks.
func (i *Instance) reserveTrial(ctx context.Context, p identity.Principal, profile llm.Profile, r llm.Request) (string, error) {
	daily := profile
	daily.Budgets = slices.DeleteFunc(slices.Clone(profile.Budgets), func(b llm.Budget) bool { return b.Per != budget.PerDay })
	if len(daily.Budgets) == 0 {
		return "", nil
	}
	limits, day, err := i.purse.Limits(models.Spending{Workspace: p.Workspace, Profile: daily})
	if err != nil {
		return "", err
	}
	most := llm.Estimate(r.Messages, llm.Message{})
	most.InputTokens *= 2
	most.OutputTokens = r.MaxTokens
	entry := store.LedgerEntry{ID: "test_" + rand.Text(), Profile: profile.ID, Day: day, Tokens: most.Total(),
		Cost: profile.Price.Cost(most)}
	err = i.stores.Ledger.Reserve(ctx, identity.System(p.Workspace), entry, limits...)
	if over, ok := errors.AsType[*store.OverError](err); ok {
		return "", fault.Newf(fault.BudgetExhausted, "the budget %q has no room for a test; raise it, or wait until the day is over", over.Budget)
	}
	return entry.ID, err
}

// SetProfile makes or replaces the profile in a file, YAML or JSON. Without an id it is named after the file.
func (c *Connection) SetProfile(ctx context.Context, file string, stdin io.Reader) (api.Profile, error) {
	id, document, err := readNamed(file, stdin, text.Of("a profile"), "{id: main, provider: scripted}")
	if err != nil {
		return api.Profile{}, err
	}
	raw, err := json.Marshal(document)
	if err != nil {
		return api.Profile{}, fmt.Errorf("write the profile %q: %w", id, err)
	}
	return c.PutProfile(ctx, id, raw)
}

// readNamed reads an object that people write in a file, YAML or JSON, and its id: the one in it or, without one, the file's name.
// The arguments what and like are for errors: the sort of object, and an example.
func readNamed(file string, stdin io.Reader, what text.Text, like string) (id string, document map[string]json.RawMessage, err error) {
	data, problem := validation.ReadFile(file, stdin)
	if problem != nil {
		return "", nil, fault.Newf(fault.Invalid, "%s: %s", file, problem.Says())
	}
	raw, err := yamlToJSON(data)
	if err == nil {
		err = json.Unmarshal(raw, &document)
	}
	if err != nil || document == nil {
		return "", nil, fault.Newf(fault.Invalid, "%s: %s is an object in YAML or JSON, such as %s: %v", file, what, like, err)
	}
	if json.Unmarshal(document["id"], &id) != nil || id == "" { // without one, or of another type
		base := filepath.Base(file)
		if id = strings.TrimSuffix(base, filepath.Ext(base)); file == "-" {
			return "", nil, fault.Newf(fault.Invalid, "%s from standard input needs an id", what)
		}
	}
	return id, document, nil
}
