// Package app puts a Tandem together: which kinds of nodes there are, an instance on a data directory, the server around it, and
// what the commands do.
//
// The command line and programs that embed Tandem import app; no package below it may.
package app

import (
	"log/slog"
	"strings"
	"sync"

	"tandem/api"
	"tandem/builtin/models"
	"tandem/fault"
	"tandem/mcp"
	"tandem/memory"
	"tandem/node"
	"tandem/outbound"
	"tandem/plug"
	"tandem/route"
	"tandem/server"
	"tandem/text"
)

// Kinds is every kind that a workflow can name, as definitions are checked against them.
func Kinds() *node.Registry { return theKinds() }

// theKinds are the kinds of this program, to be looked at and not to be run. read-only
var theKinds = sync.OnceValue(func() *node.Registry {
	var registry node.Registry
	registry.Register(builtIn(outbound.Options{}, askable()).Kinds...)
	return &registry
})

// askable has what kinds need to describe themselves.
func askable() kindDeps {
	return kindDeps{Models: &models.Models{}, Memories: memory.New(memory.Options{}), Tools: &mcp.Pool{}, Agents: agents{}}
}

// builtIn are the parts of this program without an instance: kinds can use only what they are given here.
func builtIn(reach outbound.Options, k kindDeps) *plug.Set {
	set, err := partsWith(reach, k, nil)
	if err != nil {
		panic(err) // two of our own parts have one name: no program can be made of them
	}
	return set
}

// partsWith are the parts of this program and those that an embedding one brings, without an instance.
func partsWith(reach outbound.Options, k kindDeps, more []plug.Maker) (*plug.Set, error) {
	deps := plug.Deps{HTTP: outbound.New(reach), Log: slog.New(slog.DiscardHandler)}
	return gather(deps, families(func(*plug.Set) kindDeps { return k }), more)
}

// NodeKinds lists the kinds that this program can run, as its server lists them.
func NodeKinds() []api.NodeKind {
	kinds := theKinds()
	var list []api.NodeKind
	for _, k := range kinds.Offered() {
		list = append(list, server.TellKind(kinds, k))
	}
	return list
}

// NodeKind returns one of these kinds.
func NodeKind(name string) (api.NodeKind, error) {
	var names []string
	for _, k := range NodeKinds() {
		if strings.EqualFold(k.Name, name) {
			return k, nil
		}
		names = append(names, k.Name)
	}
	return api.NodeKind{}, fault.Newf(fault.NotFound, "no kind %q can be run here%s", name, meant(strings.ToUpper(name), names, text.Of(`; "tandem nodes" lists those that can`)))
}

// meant offers the most similar name or, without one, says how to see those that there are.
func meant(name string, known []string, otherwise text.Text) text.Text {
	if hint := route.DidYouMean(name, known); !hint.IsZero() {
		return hint
	}
	return otherwise
}
