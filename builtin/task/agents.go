package task

import (
	"context"

	"tandem/agent"
)

// Agents is what tasks have to know of the program that they are part of.
type Agents interface {
	// Workflow returns the id of the workflow that a stored agent is; an unknown one is not_found with the nearest name.
	Workflow(ctx context.Context, workspace, id string) (string, error)
	// Keep keeps an agent that a node describes by itself, and returns the id of its workflow. Keeping the same again changes
	// nothing.
	Keep(ctx context.Context, workspace string, s agent.Spec) (string, error)
	// Auto says that a user lets calls of low risk run without a confirmation.
	Auto(ctx context.Context, workspace, user string) (bool, error)
	// Rounds are the last rounds of a conversation of a user with an agent, the oldest first, without the execution that asks.
	Rounds(ctx context.Context, r RoundsQuery) ([]Round, error)
}

// RoundsQuery says which rounds are wanted.
type RoundsQuery struct {
	Workspace, User string
	// Workflow is the agent's, Conversation the id that its tasks have in common, Before the execution that asks.
	Workflow, Conversation, Before string
	Limit                          int
}

// Round is a task of a conversation that has ended.
type Round struct {
	Question string   `json:"question"`
	Answer   string   `json:"answer"`
	Facts    []string `json:"facts,omitempty"`
}
