package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"tandem/builtin/models"
	"tandem/fault"
	"tandem/llm"
	"tandem/node"
	"tandem/payload"
	"tandem/text"
)

// choiceTries is how often a model is asked before the default is taken.
const choiceTries = 3

// byChoice lets a model choose. One that does not name a branch in its tries leaves the choice to the default; one that
// cannot be reached is an error, which may pass.
func (c *switchConfig) byChoice(ctx context.Context, call *node.Call, models *models.Models) (string, error) {
	if c.LLMProfile == "" {
		return "", fault.New(fault.InvalidConfig, `"llm_profile" is missing; a model chooses among "choices"`).With("path", "configurations.llm_profile")
	}
	names := make([]string, len(c.Choices))
	var branches strings.Builder
	for i, choice := range c.Choices {
		names[i] = choice.Branch
		fmt.Fprintf(&branches, "- %s: %s\n", choice.Branch, choice.Description)
	}
	schema, err := json.Marshal(map[string]any{
		"type": "object", "required": []string{"branch"}, "additionalProperties": false,
		"properties": map[string]any{"branch": map[string]any{"enum": names}},
	})
	if err != nil {
		return "", fault.Newf(fault.Internal, "the choices: %w", err)
	}
	shape := &llm.Schema{Name: "choice", JSON: schema}
	system := text.Of("Choose the branch that fits. Answer with JSON: {\"branch\": \"…\"}.\nThe branches:\n").In(call.Language)
	proposal := string(c.Propose)
	if proposal == "" {
		proposal = payload.JSON(call.Input)
	}
	messages := []llm.Message{{Role: llm.System, Content: system + branches.String()}, {Role: llm.User, Content: proposal}}
	for try := range choiceTries {
		said, err := models.Ask(ctx, call, c.LLMProfile, llm.Request{Messages: messages, Schema: shape})
		if err != nil {
			return "", err
		}
		var answer struct {
			Branch string `json:"branch"`
		}
		raw, err := shape.Read(said.Message.Content)
		if err == nil {
			if err = json.Unmarshal(raw, &answer); err == nil {
				return answer.Branch, nil
			}
		}
		problem := err.Error()
		if f := (*fault.Error)(nil); errors.As(err, &f) {
			problem = f.Message
		}
		call.Log(node.Warn, "the model named no branch", map[string]any{"try": try + 1, "problem": problem})
		messages = append(messages, said.Message, llm.Repair(problem, call.Language))
	}
	return c.DefaultKey, nil
}
