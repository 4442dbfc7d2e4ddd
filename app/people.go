package app

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"time"

	"tandem/credential"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/host/local"
	"tandem/human"
	"tandem/human/lineage"
	"tandem/human/replies"
	"tandem/identity"
	"tandem/llm"
	"tandem/store"
)

// people makes the desk where questions are put and answered.
func (i *Instance) people(o Options) *human.Desk {
	questions := i.stores.Interactions
	if o.Idle {
		questions = ownQuestions{questions, func() []store.Ref { return i.host.Own() }}
	}
	return human.New(human.Options{
		Interactions: questions, Users: i.stores.Users, Contacts: i.stores.Contacts, Channels: i.parts.Channels,
		PublicURL: o.PublicURL, Log: i.log,
		Credentials: func(workspace string) credential.Opener { return i.vault.Opener(identity.System(workspace)) },
		Wake:        i.wakes(o.Rest),
		Listened:    func(ctx context.Context) ([]store.Account, error) { return i.triggers.Accounts(ctx) },
		Raise: func(ctx context.Context, p identity.Principal, id, budget string, by float64) error {
			return i.purse.Raise(ctx, p, id, budget, by, true)
		},
		Withdrawn: func(ref store.Ref, ask engine.AskID) error { return i.purse.Withdrawn(ref, ask) },
		Judge:     i.judge,
	})
}

// wakes tells an execution that one of its questions is decided. A resting instance may end at once, so it waits until the execution
// has recorded the answer: else it would be listed as waiting for a person until another instance works on it. No node runs for that.
func (i *Instance) wakes(rest bool) func(store.Ref) {
	if !rest {
		return func(ref store.Ref) { i.host.Look(ref) }
	}
	return func(ref store.Ref) {
		ctx, cancel := context.WithTimeout(context.Background(), noteLimit)
		defer cancel()
		if _, err := i.host.Act(ctx, identity.System(ref.Workspace),
			host.Request{Execution: ref.Execution, Action: host.ActionLook}); err != nil {
			i.log.Warn("the answer is on disk, and its execution will learn of it from the next instance", "execution", ref.Execution, "error", err)
		}
	}
}

// noteLimit is how long an execution may take to note an answer before a command ends without it.
const noteLimit = 10 * time.Second

// asked makes the record of a question. A question that cannot be asked as intended is put to operators: a question
// without a record could never be answered.
func (i *Instance) asked(q local.Question) store.Interaction {
	var begun *lineage.Begun
	if q.Begun != nil {
		begun = &lineage.Begun{Execution: q.Begun.Execution, Node: q.Node, Status: q.Begun.Status}
	}
	opened, err := i.desk.Media().Open(human.Question{
		Begun: begun, Why: q.Why, Ref: q.Ref, Root: q.Root, WorkflowID: q.WorkflowID, User: q.User, Requesters: q.Requesters,
		Fork: human.ForkOf(q.Forks), Again: human.AgainOf(q.Again), Language: cmp.Or(q.Language, i.language), Node: q.Node,
		Tool: q.Tool, Ask: q.Ask, Activation: q.Activation, Attempt: q.Attempt, Purpose: q.Purpose,
		Request: i.byID(q.Workspace, q.Request), Time: q.Time, Reach: i.desk.Reaches(context.Background(), q.Workspace),
	})
	if err != nil {
		i.log.Error("a question cannot be asked as it was meant; operators are asked", "execution", q.Execution, "question", q.Ask, "error", err)
		opened.Approvers = []string{"role:operator", "role:editor", "role:admin"}
	}
	return opened
}

// byID is the request of a question with the ids of the credentials that it names. Media call back to the id, and accounts are
// told apart by it. A name that no credential has stays as it is: sending the question reports it.
func (i *Instance) byID(workspace string, request json.RawMessage) json.RawMessage {
	ids := map[string]string{}
	for _, r := range credential.References(request) {
		switch found, err := i.stores.Credentials.Find(context.Background(), identity.System(workspace), r.Name); {
		case err == nil:
			ids[r.Name] = found.ID
		case !errors.Is(err, store.ErrNotFound):
			i.log.Error("the credential that a question names cannot be looked up", "workspace", workspace, "credential", r.Name, "error", err)
		}
	}
	return credential.Named(request, ids)
}

// changed lets the desk look at the questions that a row asks and takes back.
func (i *Instance) changed(ref store.Ref, commands []engine.Command) {
	var ids []string
	for _, c := range commands {
		switch c := c.(type) {
		case engine.Ask:
			ids = append(ids, host.InteractionID(ref.Workspace, ref.Execution, c.Ask))
		case engine.Withdraw:
			ids = append(ids, host.InteractionID(ref.Workspace, ref.Execution, c.Ask))
		}
	}
	if len(ids) > 0 {
		i.desk.Recorded(ref.Workspace, ids...)
	}
}

// The limits of a judgement: a person waits for it.
const (
	judgeTotal      = time.Minute
	judgeFirstToken = 30 * time.Second
	judgeTokens     = 2000
)

// judge lets the model of a profile judge a reply in prose.
func (i *Instance) judge(ctx context.Context, workspace string, t replies.Text) (replies.Judgement, error) {
	profile, err := i.Profile(ctx, workspace, t.Request.AnalysisModel)
	if err != nil {
		return replies.Judgement{}, err
	}
	open, release := i.vault.Holding(identity.System(workspace))
	defer release()
	provider, err := i.speech.Provider(ctx, open, profile)
	if err != nil {
		return replies.Judgement{}, err
	}
	system, user, schema := replies.JudgePrompt(t)
	request := llm.Request{
		Messages: []llm.Message{{Role: llm.System, Content: system}, {Role: llm.User, Content: user}},
		Schema:   &llm.Schema{Name: "judgement", JSON: schema},
	}
	request.MaxTokens = judgeTokens + profile.Params.ThinkingBudget
	reserved, err := i.reserveTrial(ctx, identity.Principal{Workspace: workspace}, profile, request)
	if err != nil {
		return replies.Judgement{}, err
	}
	done, err := i.speech.Executor.Do(ctx, llm.Call{
		RequestID: "judge_" + rand.Text(), Profile: profile, Provider: provider, Request: request, FirstToken: judgeFirstToken, Total: judgeTotal,
	})
	if reserved != "" {
		if rerr := i.purse.Return(context.WithoutCancel(ctx), workspace, reserved, done.Usage, profile.Price); err == nil {
			err = rerr
		}
	}
	if err != nil {
		return replies.Judgement{}, err
	}
	raw, err := llm.FindJSON(done.Message.Content)
	if err != nil {
		return replies.Judgement{}, fault.Newf(fault.OutputInvalid, "the model %q did not judge the reply: %w", cmp.Or(done.Model, profile.Model), err)
	}
	return replies.ReadJudgement(t, raw)
}
