// Package models is how kinds ask language models: the profile and the provider behind it, the budgets of a profile, an answer that must
// have a shape and is asked for again if it has not, and prompts that several families share.
//
// The families of kinds import it, and so does the package that keeps the budgets ([Purse]).
package models

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tandem/credential"
	"tandem/fault"
	"tandem/llm"
	"tandem/node"
)

// Models is how kinds reach language models.
type Models struct {
	// Profile returns a profile of a workspace; an unknown one is not_found with the nearest name.
	Profile func(ctx context.Context, workspace, id string) (llm.Profile, error)
	// Providers make providers, by the name that profiles have for them.
	Providers map[string]llm.Factory
	// Executor does completions.
	Executor *llm.Executor
	// Settings are what a provider is given besides its key.
	Settings llm.Settings
	// Purse keeps to the budgets; nil: there are none.
	Purse Purse
}

// Purse keeps to the budgets of profiles.
type Purse interface {
	// Reserve sets aside what a call may use at most, on disk before it returns. While it does not fit and other calls may
	// still give back, it waits. When none is open, the error is a [*Exhausted].
	Reserve(ctx context.Context, s Spending) (id string, err error)
	// Return gives back what a call that failed has not used.
	Return(ctx context.Context, workspace, id string, used llm.Usage, price llm.Price) error
}

// Spending is a call that wants to be paid for.
type Spending struct {
	Workspace, Execution, Workflow string
	// Activation and Node are who waits when there is no room.
	Activation, Node string
	// Language is that of whoever is asked when there is no room.
	Language string
	// Woken says that it has waited for a budget before.
	Woken   bool
	Profile llm.Profile
	// Most is what it can use at most.
	Most llm.Usage
}

// Exhausted says that a budget has no room for a call and that nothing will be given back to it.
type Exhausted struct {
	// Budget names it, Request is what a person is shown.
	Budget  string
	Request json.RawMessage
	// Asks says that this is who asks; others wait for the same answer.
	Asks bool
	// Until is when there is room again by itself; zero: never.
	Until time.Time
}

// BudgetSignal is the signal that wakes who waits for a budget.
func BudgetSignal(budget string) string { return "budget:" + budget }

// Error implements error.
func (e *Exhausted) Error() string { return "the budget " + e.Budget + " is exhausted" }

// ProfileFor finds the profile of a model: a stored one, or the one that a kind's own configuration describes.
func (m *Models) ProfileFor(ctx context.Context, call *node.Call, id string) (llm.Profile, error) {
	if m == nil || m.Profile == nil {
		return llm.Profile{}, fault.Newf(fault.Unsupported, "there are no profiles of models here, so %q cannot be used", id)
	}
	return m.Profile(ctx, call.Workspace, id)
}

// provider makes the provider of a profile for a node.
func (m *Models) provider(ctx context.Context, call *node.Call, p llm.Profile) (llm.Provider, error) {
	return m.Provider(ctx, call.Credential, p)
}

// Provider makes the provider of a profile, with the key that its credential has. It leaves releasing what it opens to who gave the opener.
func (m *Models) Provider(ctx context.Context, open credential.Opener, p llm.Profile) (llm.Provider, error) {
	factory, ok := m.Providers[p.Provider]
	if !ok {
		names := make([]string, 0, len(m.Providers))
		for name := range m.Providers { // order does not matter: sorted below
			names = append(names, name)
		}
		slices.Sort(names)
		return nil, fault.Newf(fault.InvalidConfig, "profile %q names the provider %q; there are %s", p.ID, p.Provider,
			strings.Join(names, ", ")).With("path", "provider")
	}
	s := m.Settings
	s.BaseURL, s.Script = p.BaseURL, p.Script
	if p.CredentialID != "" {
		c, err := open(ctx, p.CredentialID, p.Provider)
		if err != nil {
			return nil, err
		}
		var fields struct {
			Key     string `json:"api_key"`
			BaseURL string `json:"base_url"`
		}
		if err := json.Unmarshal(c.Data, &fields); err != nil {
			return nil, fault.Newf(fault.CredentialInvalid, "credential %q cannot be read", p.CredentialID)
		}
		if s.Key = fields.Key; s.BaseURL == "" {
			s.BaseURL = fields.BaseURL
		}
	}
	return factory(s)
}

// Spoken is a completion and what it costs.
type Spoken struct {
	llm.Completion
	Cost int64
	// Reserved is what was set aside for it, to be settled; empty when there is no budget.
	Reserved string
}

// Complete does one completion of a node within the budgets of its profile, and counts what it has used. The caller settles
// what was reserved. An exhausted budget is an [*Exhausted].
func (m *Models) Complete(ctx context.Context, call *node.Call, kind string, profile llm.Profile, c llm.Call) (Spoken, error) {
	provider, err := m.provider(ctx, call, profile)
	if err != nil {
		return Spoken{}, err
	}
	reserved, err := m.reserve(ctx, call, profile, c.Request)
	if err != nil {
		return Spoken{}, err
	}
	c.RequestID = fmt.Sprintf("%s/%s/%d.%d", call.ExecutionID, call.ActivationID, call.Generation, call.Attempt)
	c.ExecutionID, c.WorkflowID, c.NodeID, c.NodeType, c.Profile, c.Provider = call.ExecutionID, call.WorkflowID,
		call.NodeID, kind, profile, provider
	begun := time.Now()
	out, err := m.Executor.Do(ctx, c)
	if err != nil {
		m.GiveBack(ctx, call, reserved, llm.Usage{}, profile)
		return Spoken{}, failedCall(err)
	}
	for _, w := range out.Warnings {
		call.Log(node.Warn, w, nil)
	}
	done := Spoken{Completion: out, Cost: profile.Price.Cost(out.Usage), Reserved: reserved}
	done.Model = cmp.Or(out.Model, profile.Model)
	call.Used(node.Usage{
		InputTokens: out.Usage.InputTokens, OutputTokens: out.Usage.OutputTokens, CachedTokens: out.Usage.CachedTokens,
		Credits: float64(done.Cost) / 1e6,
	})
	call.Detail(map[string]any{
		"ai_model": done.Model, "profile_id": profile.ID, "prompt_tokens": out.Usage.InputTokens,
		"completion_tokens": out.Usage.OutputTokens,
		"finish_reason":     out.Finish, "duration_ms": time.Since(begun).Milliseconds(),
	})
	return done, nil
}

// Ask does one completion with a stored profile for a node that has no turn with it.
func (m *Models) Ask(ctx context.Context, call *node.Call, id string, r llm.Request) (Spoken, error) {
	profile, err := m.ProfileFor(ctx, call, id)
	if err != nil {
		return Spoken{}, err
	}
	done, err := m.Complete(ctx, call, call.Kind, profile, llm.Call{Request: r})
	if err == nil {
		m.GiveBack(ctx, call, done.Reserved, done.Usage, profile)
	}
	return done, err
}

// GiveBack settles what a call had reserved. When that fails it stays counted as spent, which keeps the budget.
func (m *Models) GiveBack(ctx context.Context, call *node.Call, reserved string, used llm.Usage, profile llm.Profile) {
	if reserved == "" {
		return
	}
	if err := m.Purse.Return(context.WithoutCancel(ctx), call.Workspace, reserved, used, profile.Price); err != nil {
		call.Log(node.Warn, "what a call had reserved stays counted as spent", map[string]any{"error": err.Error()})
	}
}

// reserve sets aside what a call may cost.
func (m *Models) reserve(ctx context.Context, call *node.Call, profile llm.Profile, r llm.Request) (string, error) {
	if m.Purse == nil || len(profile.Budgets) == 0 {
		return "", nil
	}
	most := llm.Estimate(r.Messages, llm.Message{})
	for _, t := range r.Tools {
		most.InputTokens += llm.Tokens(t.Name) + llm.Tokens(t.Description) + llm.Tokens(string(t.Parameters))
	}
	if r.Schema != nil {
		most.InputTokens += llm.Tokens(string(r.Schema.JSON))
	}
	most.InputTokens *= 2 // services count in ways of their own
	most.OutputTokens = cmp.Or(r.MaxTokens, profile.Params.MaxTokens, 8192)
	return m.Purse.Reserve(ctx, Spending{
		Workspace: call.Workspace, Execution: call.ExecutionID, Workflow: call.WorkflowID,
		Activation: string(call.ActivationID), Node: call.NodeID,
		Language: call.Speaks(""), Woken: call.Wake != nil, Profile: profile, Most: most,
	})
}

// WaitOrFail is the outcome of a call that failed: one that lacks a budget waits for it to be raised, and one of those who
// wait asks a person.
func WaitOrFail(err error) (node.Outcome, error) {
	over, ok := errors.AsType[*Exhausted](err)
	if !ok {
		return nil, err
	}
	w := node.Wait{Signal: BudgetSignal(over.Budget), Until: over.Until}
	if over.Asks {
		w.Ask = &node.Question{Purpose: "budget", Request: over.Request}
	}
	return w, nil
}

// failedCall is what the engine has to know of a completion that failed.
func failedCall(err error) error {
	if later, ok := errors.AsType[*llm.Unavailable](err); ok {
		return &node.Failure{Err: later.Err, RetryAfter: later.RetryAfter}
	}
	return err
}

// Embed turns texts into vectors with the embedding model of a profile, and counts what that has used.
func (m *Models) Embed(ctx context.Context, call *node.Call, id string, texts []string) ([][]float32, error) {
	profile, err := m.ProfileFor(ctx, call, id)
	if err != nil {
		return nil, err
	}
	provider, err := m.provider(ctx, call, profile)
	if err != nil {
		return nil, err
	}
	embedder, ok := provider.(llm.Embedder)
	if !ok || profile.EmbeddingModel == "" {
		return nil, fault.Newf(fault.Unsupported, `the profile %q cannot turn texts into vectors; choose one with an "embedding_model", or none`, id).With("path", "configurations.embedding_profile")
	}
	vectors, used, err := embedder.Embed(ctx, profile.EmbeddingModel, texts)
	if err != nil {
		return nil, failedCall(err)
	}
	if call.Used != nil {
		call.Used(node.Usage{InputTokens: used.InputTokens, OutputTokens: used.OutputTokens, CachedTokens: used.CachedTokens,
			Credits: float64(profile.Price.Cost(used)) / 1e6})
	}
	return vectors, nil
}

const MaxImageBytes = 10 << 20
