package app

import (
	"tandem/reference"
	"tandem/server"
)

// NodesReference is the reference of all kinds that can be run: pages by file name.
func NodesReference() (map[string]string, error) {
	kinds := theKinds()
	var list []reference.Kind
	for _, k := range kinds.Offered() {
		list = append(list, reference.Kind{Kind: k, Told: server.TellKind(kinds, k)})
	}
	return reference.Pages(list)
}
