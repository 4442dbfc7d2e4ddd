package ai

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"tandem/builtin/models"
	"tandem/builtin/values"
	"tandem/fault"
	"tandem/llm"
	"tandem/memory"
	"tandem/node"
	"tandem/text"
	"tandem/workflow"
)

type summaryConfig struct {
	ProfileID   string `json:"profile_id" names:"profile" older:"llm_profile" doc:"The model profile that writes the summary; without one the messages are shortened by rules." zh:"生成摘要的模型配置档；省略时按规则缩短。"`
	MaxChars    int    `json:"max_chars" range:"1.." doc:"The most characters of the summary." zh:"摘要的最多字符数。"`
	HistorySize int    `json:"history_size" range:"0.." doc:"How many past steps of the execution are looked at when no messages are given." zh:"未提供消息时回看多少个步骤。"`
	Language    string `json:"language" enum:"zh|en" doc:"The language of the summary." zh:"摘要的语言。"`
}

func (c *summaryConfig) Defaults() { c.MaxChars, c.HistorySize = 2000, 10 }

type summaryInput struct {
	Messages json.RawMessage `json:"messages,omitempty" doc:"The messages that are summarised; without them the conversation." zh:"要概括的消息；省略时为会话内容。"`
}

type summaryOutput struct {
	Summary    string       `json:"summary" doc:"The summary." zh:"摘要。"`
	Text       string       `json:"text" doc:"The same, for nodes that look for a text." zh:"同上，供查找文本的节点使用。"`
	TokenUsage models.Usage `json:"token_usage" doc:"The tokens that were used." zh:"所用的令牌数。"`
}

// callSummary makes a summary of what was said and done.
func callSummary(m *models.Models) node.Kind {
	k := node.Raw(
		node.About{
			Name: "CALL.SUMMARY", Title: node.Says("Summary", "总结"),
			Description: node.Says("Summarises messages, or what was said and done so far.", "总结给定的消息，或到目前为止的对话与执行历史。"),
			Effect:      workflow.Idempotent, Older: []string{"SUMMARY"},
			Keys: []node.Key{{Name: "result", Meaning: node.Says("The summary as summary and text, and the tokens used.", "摘要（summary 与 text）和所用的令牌。"), Fields: node.ValuesOf[summaryOutput]()}},
			Examples: []node.Example{
				{
					Shows:   node.Says("Summarises a conversation.", "概括一段对话。"),
					Config:  `{"profile_id": "writer"}`,
					Input:   `{"messages": [{"role": "user", "content": "I moved to Bern."}]}`,
					Replies: []string{`The user has moved to Bern.`},
					Output:  `{"result": {"summary": "The user has moved to Bern.", "text": "The user has moved to Bern.", "token_usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}}}`,
				},
			},
		},
		func(ctx context.Context, call *node.Call, cfg summaryConfig, in summaryInput) (node.Outcome, error) {
			messages, err := messagesOf(in.Messages, "messages")
			if err != nil {
				return nil, err
			}
			if values.IsNull(in.Messages) {
				if messages, err = soFar(call, cfg.HistorySize); err != nil {
					return nil, err
				}
			}
			out := summaryOutput{}
			switch {
			case len(messages) == 0:
			case cfg.ProfileID == "":
				out.Summary = memory.PlainSummary(messages, cfg.MaxChars)
			default:
				done, err := m.Ask(ctx, call, cfg.ProfileID, llm.Request{Messages: summaryMessages(call.Speaks(cfg.Language), messages,
					cfg.MaxChars)})
				if err != nil {
					return models.WaitOrFail(err)
				}
				if out.Summary = text.Fit(strings.TrimSpace(done.Message.Content), cfg.MaxChars); out.Summary == "" {
					return nil, fault.New(fault.OutputInvalid, "the model returned no summary; try again, or choose another profile")
				}
				out.TokenUsage = models.UsageOf(done.Usage)
			}
			out.Text = out.Summary
			return node.Succeed(out)
		})
	k.OutputSchema = node.ConfigurationSchema[summaryOutput]()
	return k
}

// messagesOf reads messages that an input brings: {role, content}, or texts of a user. Empty ones are left out.
func messagesOf(raw json.RawMessage, path string) ([]memory.Message, error) {
	if values.IsNull(raw) {
		return nil, nil
	}
	var list []memory.Message
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fault.Newf(fault.InvalidInput, "%q must be a list of {role, content}, or of texts", path).With("path", path)
	}
	kept := list[:0]
	for _, m := range list {
		if m.Role = cmp.Or(m.Role, "user"); strings.TrimSpace(m.Content) != "" {
			kept = append(kept, m)
		}
	}
	return kept, nil
}

// soFar is what was said and done in the execution: the conversation with models, then what other nodes have made.
func soFar(call *node.Call, n int) ([]memory.Message, error) {
	if n == 0 {
		return nil, nil
	}
	_, said, _, err := conversation(call, n)
	if err != nil {
		return nil, err
	}
	var list []memory.Message
	for _, m := range said {
		if strings.TrimSpace(m.Content) != "" {
			list = append(list, memory.Message{Role: string(m.Role), Content: m.Content})
		}
	}
	past, err := call.History(n)
	if err != nil {
		return nil, err
	}
	for _, p := range past {
		if strings.HasPrefix(p.NodeType, "AI_AGENT.") && len(said) > 0 || strings.HasPrefix(p.NodeType, "TRIGGER.") && string(p.Output) == "{}" {
			continue // the conversation has it, or there is nothing to tell
		}
		content := values.Text(p.Output)
		if p.Error != "" {
			content = p.Error
		}
		if content != "" {
			list = append(list, memory.Message{Role: cmp.Or(p.NodeName, p.NodeID), Content: content})
		}
	}
	return list, nil
}
