package task

import (
	"tandem/builtin/models"
	"tandem/mcp"
	"tandem/node"
)

// Deps are what the kinds of this package need of the program that they are part of. Without any of them there are no such kinds.
type Deps struct {
	// Models are how language models are reached.
	Models *models.Models
	// Tools are the tools of MCP servers.
	Tools *mcp.Pool
	// Agents is what tasks have to know of the program that they are part of.
	Agents Agents
}

// Kinds lists every kind of this package.
func Kinds(d Deps) []node.Kind {
	if d.Models == nil || d.Tools == nil || d.Agents == nil {
		return nil
	}
	return []node.Kind{task(d.Models, d.Tools, d.Agents), mcpAgent(d.Agents)}
}
