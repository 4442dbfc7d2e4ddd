// Package flow holds the kinds that lead a graph: branches, loops, waits, workflows inside workflows, what works on lists as they pass, and what
// answers the request that a run came from. One file is one kind; loop_body.go is what the loops share.
//
// The package that puts a program together imports it; nothing else does.
package flow

import (
	"tandem/builtin/models"
	"tandem/node"
)

// Deps are what the kinds of this package need of the program that they are part of.
type Deps struct {
	// Models are how language models are reached; nil: there are none, and a switch that asks one says so.
	Models *models.Models
	// Respond records an answer to the request that an execution came from; nil: no requests come.
	Respond Respond
}

// Kinds lists every kind of this package.
func Kinds(d Deps) []node.Kind {
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
		brief(flowWait()),
		brief(flowWhile()),
		flowRespond(d.Respond),
	}
}

// brief marks a kind whose runs are over at once.
func brief(k node.Kind) node.Kind {
	k.Brief = true
	return k
}
