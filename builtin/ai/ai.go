// Package ai holds the kinds that have a turn with a model, with its tools and memories (AI_AGENT), and the small calls of a model that
// other parts are made of (CALL). A turn is led by a program of the engine and so has many steps: package turn reads what a node says,
// tools.go and listed.go equip the model, turn.go does the steps, result.go tells what came of them. How models are reached is in package
// models.
//
// The package that puts a program together imports it; nothing else does.
package ai

import (
	"tandem/builtin/models"
	"tandem/builtin/turn"
	"tandem/files"
	"tandem/mcp"
	"tandem/node"
)

// Deps are what the kinds of this package need of the program that they are part of.
type Deps struct {
	// Models are how language models are reached; nil: there are none, and no kinds that have a turn with one.
	Models *models.Models
	// Files are the files of the workspaces; nil: there are none, and pictures cannot be shown from them.
	Files *files.Store
	// Tools are the tools of MCP servers; nil: there are none, and a node that lists some says so.
	Tools *mcp.Pool
	// Turns are what providers say of the kinds that have turns with their models, by the names of the providers.
	Turns map[string]turn.Kind
}

// Kinds lists every kind of this package.
func Kinds(d Deps) []node.Kind {
	return append(agents(d),
		callFacts(d.Models),
		callSlot(d.Models),
		callSummary(d.Models),
	)
}
