// Package flow holds the kinds that lead a graph: branches, loops, waits, workflows inside workflows, what works on lists as they pass, and
// what answers the request that a run came from. One file is one kind; loop_body.go is what the loops share.
//
// The package that puts a program together imports it; nothing else does.
package flow

import (
	"tandem/builtin/models"
	"tandem/database"
	"tandem/files"
	"tandem/node"
	"tandem/outbound"
)

// Deps are what the kinds of this package need of the program that they are part of.
type Deps struct {
	// Models are how language models are reached; nil: there are none, and a switch that asks one says so.
	Models *models.Models
	// HTTP is how a wait asks services; nil means a client that reaches public addresses only.
	HTTP *outbound.Client
	// Files are the files directories that a wait looks into, Databases the connections of its queries; nil: there are none, and it says
	// so.
	Files     *files.Store
	Databases *database.Pools
	// Listens says that calls reach the program, so that a wait can be ended by one.
	Listens bool
	// Respond records an answer to the request that an execution came from; nil: no requests come.
	Respond Respond
	// Offers tells what workflows offer to models; nil: nothing.
	Offers Offers
}

// Kinds lists every kind of this package.
func Kinds(d Deps) []node.Kind {
	if d.HTTP == nil {
		d.HTTP = outbound.New(outbound.Options{})
	}
	return []node.Kind{
		brief(callEmpty()),
		brief(flowDelay()),
		flowFilter(),
		brief(flowForEach()),
		brief(flowIf()),
		brief(flowLoop()),
		flowMerge(),
		flowSort(),
		flowSplit(),
		brief(flowSubWorkflow()),
		brief(flowSwitch(d.Models)),
		brief(flowTimeout()),
		brief(flowWait(d)),
		brief(flowWhile()),
		flowRespond(d.Respond),
		workflowTool(d.Offers),
	}
}

// brief marks a kind whose runs are over at once.
func brief(k node.Kind) node.Kind {
	k.Brief = true
	return k
}
