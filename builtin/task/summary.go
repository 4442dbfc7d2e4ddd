package task

import (
	"context"
	"errors"
	"strings"

	"tandem/builtin/models"
	"tandem/fault"
	"tandem/llm"
	"tandem/memory"
	"tandem/node"
)

// taskAnswer is what the summary leaves.
type taskAnswer struct {
	Answer    string   `json:"answer"`
	Reasoning string   `json:"reasoning,omitempty"`
	Facts     []string `json:"facts"`
}

// summing is how far a summary has come: the answer is on disk before facts are taken from it.
type summing struct {
	Answer    string        `json:"answer,omitempty"`
	Reasoning string        `json:"reasoning,omitempty"`
	Usage     llm.Usage     `json:"usage,omitzero"`
	Facts     models.Asking `json:"facts,omitzero"`
}

// maxAnswerFacts is how many facts are kept of a task.
const maxAnswerFacts = 20

// summary writes the answer, which is seen as it comes, and takes facts from it.
func (t *tasks) summary(ctx context.Context, call *node.Call, p *taskStep) (node.Outcome, error) {
	s := summing{Facts: models.Asking{Most: p.Tries}}
	if err := models.ReadMemo(call, &s); err != nil {
		return nil, err
	}
	if s.Answer == "" {
		if err := t.sumUp(ctx, call, p, &s); err != nil {
			return models.WaitWith(err, s)
		}
		return models.Again(call, s)
	}
	out := taskAnswer{Answer: s.Answer, Reasoning: s.Reasoning, Facts: []string{}}
	fit, err := t.askFacts(ctx, call, p, &s, &out)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, err
	case err == nil && !fit && !s.Facts.Over():
		return models.Again(call, s)
	case err != nil:
		call.Log(node.Warn, "no facts were taken from the answer", map[string]any{"error": factsError(err)})
	case !fit:
		call.Log(node.Warn, "no facts were taken from the answer", map[string]any{"error": s.Facts.Problem()})
	}
	return stepDone(out, nil, s.Usage.Add(s.Facts.Usage))
}

// factsError says why there are no facts.
func factsError(err error) string {
	if _, ok := errors.AsType[*models.Exhausted](err); ok {
		return "a budget has no room for it"
	}
	return fault.From(err).Message
}

// sumUp asks for the answer.
func (t *tasks) sumUp(ctx context.Context, call *node.Call, p *taskStep, s *summing) error {
	profile, err := t.models.ProfileFor(ctx, call, p.Profile)
	if err != nil {
		return err
	}
	thoughts := &thinking{emit: call.Emit}
	done, err := t.models.Complete(ctx, call, call.Kind, profile, llm.Call{
		Request: llm.Request{Messages: []llm.Message{{Role: llm.System, Content: p.system(p.Kind)},
			{Role: llm.User, Content: p.promptFor(p.Kind)}}, Stream: true, User: call.UserID},
		Sink: func(d llm.Delta) {
			if d.Text != "" {
				call.Emit(d.Text)
			}
			thoughts.addThought(d.Reasoning)
		},
	})
	if err != nil {
		return err
	}
	t.models.GiveBack(ctx, call, done.Reserved, done.Usage, profile)
	thoughts.end()
	s.Answer, s.Reasoning, s.Usage = strings.TrimSpace(done.Message.Content), done.Message.Reasoning, done.Usage
	if s.Answer == "" {
		return fault.New(fault.OutputInvalid, "the model has written no answer; try again, or choose another profile")
	}
	return nil
}

// thinking lets thoughts be seen as they come, apart from the answer: each time all of them, ever farther apart.
type thinking struct {
	emit func(any)
	text strings.Builder
	told int
}

// minThought is how many bytes of thoughts are worth telling of.
const minThought = 256

func (t *thinking) addThought(text string) {
	if text == "" {
		return
	}
	t.text.WriteString(text)
	if n := t.text.Len(); n-t.told >= max(minThought, t.told/4) {
		t.tellThoughts()
	}
}

func (t *thinking) end() {
	if t.text.Len() > t.told {
		t.tellThoughts()
	}
}

func (t *thinking) tellThoughts() {
	t.told = t.text.Len()
	t.emit(map[string]string{"reasoning": t.text.String()})
}

// askFacts asks once which facts are worth keeping of the task.
func (t *tasks) askFacts(ctx context.Context, call *node.Call, p *taskStep, s *summing, out *taskAnswer) (bool, error) {
	said := []memory.Message{{Role: "user", Content: p.Question}}
	if done := p.done(models.MaxPromptValue); done != "" {
		said = append(said, memory.Message{Role: "tools", Content: done})
	}
	said = append(said, memory.Message{Role: "assistant", Content: s.Answer})
	found, fit, err := s.Facts.AskFacts(ctx, t.models, call, p.Profile, p.Language, said, maxAnswerFacts)
	if fit {
		out.Facts = found.Facts
	}
	return fit, err
}
