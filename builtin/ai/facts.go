package ai

import (
	"context"
	"encoding/json"
	"strings"

	"tandem/builtin/models"
	"tandem/builtin/values"
	"tandem/fault"
	"tandem/memory"
	"tandem/node"
	"tandem/workflow"
)

type factsConfig struct {
	ProfileID string `json:"profile_id" names:"profile" older:"llm_profile" doc:"The model profile that finds the facts; without one rules do." zh:"提取事实的模型配置档；省略时按规则提取。"`
	MaxFacts  int    `json:"max_facts" range:"1.." doc:"The most facts that are returned." zh:"最多返回的事实数。"`
}

func (c *factsConfig) Defaults() { c.MaxFacts = 20 }

type factsInput struct {
	Messages json.RawMessage `json:"messages,omitempty" doc:"The messages that are read." zh:"要读取的消息。"`
	Content  json.RawMessage `json:"content,omitempty" doc:"A text, in their place." zh:"代替消息的文本。"`
}

type factsOutput struct {
	Facts      []string     `json:"facts" doc:"What is worth remembering, a sentence each." zh:"值得记住的内容，每条一句。"`
	Domain     []string     `json:"domain" doc:"What the facts are about." zh:"事实所属的领域。"`
	TokenUsage models.Usage `json:"token_usage" doc:"The tokens that were used." zh:"所用的令牌数。"`
}

// callFacts takes facts from a conversation.
func callFacts(m *models.Models) node.Kind {
	k := node.Raw(
		node.About{
			Name: "CALL.FACTS", Title: node.Says("Facts", "事实提取"),
			Description: node.Says("Takes facts from messages or a text.", "从消息或文本中提取事实。"),
			Effect:      workflow.Idempotent, Older: []string{"FACTS"},
			Keys: []node.Key{{Name: "result", Meaning: node.Says("The facts, their domains, and the tokens used.", "事实、其领域和所用的令牌。"),
				Fields: node.ValuesOf[factsOutput]()}},
			Examples: []node.Example{
				{
					Shows:   node.Says("Notes what is worth remembering.", "记录值得记住的内容。"),
					Config:  `{"profile_id": "writer"}`,
					Input:   `{"content": "Ann lives in Bern."}`,
					Replies: []string{`{"facts": ["Ann lives in Bern."], "domain": ["people"]}`},
					Output:  `{"result": {"facts": ["Ann lives in Bern."], "domain": ["people"], "token_usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}}}`,
				},
			},
		},
		func(ctx context.Context, call *node.Call, cfg factsConfig, in factsInput) (node.Outcome, error) {
			messages, err := messagesOf(in.Messages, "messages")
			if err != nil {
				return nil, err
			}
			if text := values.Text(in.Content); strings.TrimSpace(text) != "" {
				messages = append(messages, memory.Message{Role: "user", Content: text})
			}
			out := factsOutput{Facts: []string{}, Domain: []string{}}
			if len(messages) == 0 {
				return node.Succeed(out)
			}
			if cfg.ProfileID == "" {
				var list []string
				for _, one := range messages {
					list = append(list, memory.PlainFacts(one.Content)...)
				}
				out.Facts = models.Distinct(list, cfg.MaxFacts)
				return node.Succeed(out)
			}
			return askFacts(ctx, m, call, cfg, messages)
		})
	k.OutputSchema = node.ConfigurationSchema[factsOutput]()
	return k
}

func askFacts(ctx context.Context, m *models.Models, call *node.Call, cfg factsConfig, messages []memory.Message) (node.Outcome, error) {
	var a models.Asking
	if err := models.ReadMemo(call, &a); err != nil {
		return nil, err
	}
	found, fit, err := a.AskFacts(ctx, m, call, cfg.ProfileID, call.Speaks(""), messages, cfg.MaxFacts)
	switch {
	case err != nil:
		return models.WaitWith(err, a)
	case !fit && a.Over():
		return nil, fault.Newf(fault.OutputInvalid, "the model's answers have not the shape that was asked for: %s", a.Problem()).With("tries", models.MaxTries)
	case !fit:
		return models.Again(call, a)
	}
	return node.Succeed(factsOutput{found.Facts, found.Domain, models.UsageOf(a.Usage)})
}
