package builtin

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"tandem/fault"
	"tandem/llm"
	"tandem/node"
	"tandem/payload"
)

// maxTries is how often a model is asked for an answer of the right shape.
const maxTries = 3

// asking is a question to a model whose answer must have a shape. It is kept from try to try, so that none that was paid for is
// asked for again.
type asking struct {
	// Most is how often it is asked; 0: maxTries.
	Most  int       `json:"most,omitempty"`
	Tries []asked   `json:"tries,omitempty"`
	Usage llm.Usage `json:"usage,omitzero"`
}

// asked is an answer that could not be used, and why.
type asked struct {
	Answer  string `json:"answer"`
	Problem string `json:"problem"`
}

// over says that the model is not asked once more.
func (a *asking) over() bool { return len(a.Tries) >= cmp.Or(a.Most, maxTries) }

// problem is what was wrong with the last answer.
func (a *asking) problem() string {
	if len(a.Tries) == 0 {
		return ""
	}
	return a.Tries[len(a.Tries)-1].Problem
}

// ask asks once. Read takes the answer, and says what is wrong with it.
func (a *asking) ask(ctx context.Context, m *Models, call *node.Call, profile, language string, messages []llm.Message, shape *llm.Schema, read func(json.RawMessage) (problem string, err error)) (fit bool, err error) {
	for _, t := range a.Tries {
		messages = append(messages, llm.Message{Role: llm.Assistant, Content: t.Answer}, llm.Repair(t.Problem, language))
	}
	done, err := m.ask(ctx, call, profile, llm.Request{Messages: messages, Schema: shape})
	if err != nil {
		return false, err
	}
	a.Usage = a.Usage.Add(done.Usage)
	answer := done.Message.Content
	problem := ""
	raw, err := llm.FindJSON(answer)
	if err != nil {
		problem = fault.From(err).Message
	} else if problem, err = read(raw); err != nil {
		return false, err
	}
	if problem == "" {
		return true, nil
	}
	a.Tries = append(a.Tries, asked{answer, problem})
	return false, nil
}

// again lets the run go on at once, with what it has so far on disk.
func again(call *node.Call, memo any) (node.Outcome, error) {
	raw, err := payload.Encode(memo)
	if err != nil {
		return nil, fault.Newf(fault.Internal, "what was asked so far: %w", err)
	}
	return node.Wait{Until: clockOf(call), Memo: raw}, nil
}

func clockOf(call *node.Call) time.Time {
	if call.Clock != nil {
		return call.Clock()
	}
	return call.Now
}

// waitWith is the outcome of a call that failed; one that waits for a budget keeps what it has so far.
func waitWith(err error, memo any) (node.Outcome, error) {
	out, err := waitOrFail(err)
	w, ok := out.(node.Wait)
	if err != nil || !ok {
		return out, err
	}
	if w.Memo, err = payload.Encode(memo); err != nil {
		return nil, fault.Newf(fault.Internal, "what was asked so far: %w", err)
	}
	return w, nil
}

// readMemo reads what a run has left; nothing when there is nothing.
func readMemo(call *node.Call, memo any) error {
	if len(call.Memo) == 0 {
		return nil
	}
	if err := json.Unmarshal(call.Memo, memo); err != nil {
		return fault.Newf(fault.Internal, "what was asked so far cannot be read: %w", err)
	}
	return nil
}

func usageOf(u llm.Usage) turnUsage {
	return turnUsage{u.InputTokens, u.OutputTokens, u.Total(), u.CachedTokens}
}
