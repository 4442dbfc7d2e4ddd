// Package web holds the kinds that speak with services over HTTP: a request, a webhook that may wait to be called back, a search of the
// web, and the HTTP client that a model can use. How a call is made is in package httpcall.
//
// The package that puts a program together imports it; nothing else does.
package web

import (
	"tandem/builtin/toolset"
	"tandem/node"
	"tandem/outbound"
)

// Deps are what the kinds of this package need of the program that they are part of.
type Deps struct {
	// HTTP is how they call services; nil means a client that reaches public addresses only.
	HTTP *outbound.Client
	// Callbacks makes the addresses that services call back; nil: nobody listens.
	Callbacks Callbacks
}

// Kinds lists every kind of this package.
func Kinds(d Deps) []node.Kind {
	if d.HTTP == nil {
		d.HTTP = outbound.New(outbound.Options{})
	}
	return []node.Kind{
		httpRequest(d.HTTP),
		webhookCall(d.HTTP, d.Callbacks),
		webSearch(d.HTTP),
		htmlExtraction(),
		feedRead(d.HTTP),
		toolset.Kind(httpClient(d.HTTP)),
	}
}
