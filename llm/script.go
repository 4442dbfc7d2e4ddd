package llm

import "encoding/json"

// Script is what the scripted provider does: rules that are tried in order, the first that fits answers. It needs no
// network, so examples and tests run with it.
type Script struct {
	Rules []Rule `json:"rules,omitempty"`
	// Recorded are the answers of a recorded run, by the fingerprint of their request ([Fingerprint]). Each is a
	// [Recording], as [Record] makes it. They come before the rules.
	Recorded map[string]json.RawMessage `json:"recorded,omitempty"`
}

// Rule is one answer and when it is given. All conditions that are set must hold; a rule without any always fits.
type Rule struct {
	// Contains is a text that the last message of a person has; Matches a regular expression on it.
	Contains string `json:"contains,omitempty"`
	Matches  string `json:"matches,omitempty"`
	// System is a text that a system message has.
	System string `json:"system,omitempty"`
	// Tool says that the last message is the result of the tool of this name.
	Tool string `json:"tool,omitempty"`
	// Schema is the name of the shape that is asked for.
	Schema string `json:"schema,omitempty"`

	// Reply is the answer. "{{last}}" in it stands for the last message, "$1" and so on for what Matches has found,
	// "{{tool}}" for the result of a tool and "{{tool.path}}" for a part of it, "{{system}}" for the last system message:
	// what a memory knows, where one is attached.
	Reply string `json:"reply,omitempty"`
	// JSON is an answer that is an object. Within its strings, and those of the arguments of calls, the same is replaced.
	JSON json.RawMessage `json:"json,omitempty"`
	// Reasoning is handed over before the answer.
	Reasoning string `json:"reasoning,omitempty"`
	// Calls are tools that the model wants called.
	Calls []RuleCall `json:"calls,omitempty"`
	// Finish is the end, stop or tool_calls by default.
	Finish Finish `json:"finish_reason,omitempty"`
	// Fail answers with an error of this code instead.
	Fail string `json:"fail,omitempty"`
}

// RuleCall is a tool call of a rule.
type RuleCall struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}
