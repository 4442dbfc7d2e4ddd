package toolset

import (
	"tandem/mcp"
	"tandem/node"
)

// Deps are what the kinds of this package need of the program that they are part of.
type Deps struct {
	// Servers are the tool servers; nil: there are none, and no kind that uses them.
	Servers *mcp.Pool
}

// Kinds lists every kind of this package.
func Kinds(d Deps) []node.Kind {
	if d.Servers == nil {
		return nil
	}
	return []node.Kind{published(mcpTool(d.Servers))}
}
