package models

import (
	"cmp"
	"context"
	"encoding/json"

	"tandem/fault"
	"tandem/llm"
	"tandem/node"
	"tandem/payload"
)

// MaxTries is how often a model is asked for an answer of the right shape.
const MaxTries = 3

// Asking is a question to a model whose answer must have a shape. It is kept from try to try, so that none that was paid for is
// asked for again.
type Asking struct {
	// Most is how often it is asked; 0: maxTries.
	Most  int       `json:"most,omitempty"`
	Tries []Asked   `json:"tries,omitempty"`
	Usage llm.Usage `json:"usage,omitzero"`
}

// Asked is an answer that could not be used, and why.
type Asked struct {
	Answer  string `json:"answer"`
	Problem string `json:"problem"`
}

// Over says that the model is not asked once more.
func (a *Asking) Over() bool { return len(a.Tries) >= cmp.Or(a.Most, MaxTries) }

// Problem is what was wrong with the last answer.
func (a *Asking) Problem() string {
	if len(a.Tries) == 0 {
		return ""
	}
	return a.Tries[len(a.Tries)-1].Problem
}

// Ask asks once. Read takes the answer, and says what is wrong with it.
func (a *Asking) Ask(ctx context.Context, m *Models, call *node.Call, profile, language string, messages []llm.Message, shape *llm.Schema,
	read func(json.RawMessage) (problem string, err error)) (fit bool, err error) {
	for _, t := range a.Tries {
		messages = append(messages, llm.Message{Role: llm.Assistant, Content: t.Answer}, llm.Repair(t.Problem, language))
	}
	done, err := m.Ask(ctx, call, profile, llm.Request{Messages: messages, Schema: shape})
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
	a.Tries = append(a.Tries, Asked{answer, problem})
	return false, nil
}

// Again lets the run go on at once, with what it has so far on disk.
func Again(call *node.Call, memo any) (node.Outcome, error) {
	raw, err := payload.Encode(memo)
	if err != nil {
		return nil, fault.Newf(fault.Internal, "what was asked so far: %w", err)
	}
	return node.Wait{Until: call.Time(), Memo: raw}, nil
}

// WaitWith is the outcome of a call that failed; one that waits for a budget keeps what it has so far.
func WaitWith(err error, memo any) (node.Outcome, error) {
	out, err := WaitOrFail(err)
	w, ok := out.(node.Wait)
	if err != nil || !ok {
		return out, err
	}
	if w.Memo, err = payload.Encode(memo); err != nil {
		return nil, fault.Newf(fault.Internal, "what was asked so far: %w", err)
	}
	return w, nil
}

// ReadMemo reads what a run has left; nothing when there is nothing.
func ReadMemo(call *node.Call, memo any) error {
	if len(call.Memo) == 0 {
		return nil
	}
	if err := json.Unmarshal(call.Memo, memo); err != nil {
		return fault.Newf(fault.Internal, "what was asked so far cannot be read: %w", err)
	}
	return nil
}

// UsageOf is how many tokens a call of a model took, as outputs show it.
func UsageOf(u llm.Usage) Usage {
	return Usage{u.InputTokens, u.OutputTokens, u.Total(), u.CachedTokens}
}

// Usage counts the tokens of calls of models in the output of a node.
type Usage struct {
	InputTokens  int64 `json:"input_tokens"`
	OutputTokens int64 `json:"output_tokens"`
	TotalTokens  int64 `json:"total_tokens"`
	CachedTokens int64 `json:"cached_tokens,omitempty"`
}
