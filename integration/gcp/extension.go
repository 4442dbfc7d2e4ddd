package gcp

import (
	"tandem/credential"
	"tandem/node"
	"tandem/plug"
)

// Extension is what this package brings.
func Extension(d plug.Deps) plug.Extension {
	store := &storage{client: d.HTTP}
	return plug.Extension{
		Name:         "gcp",
		Credentials:  []credential.Type{accountCredential(d.HTTP)},
		Kinds:        []node.Kind{act(store, d.Files)},
		ObjectStores: []plug.ObjectStore{{Target: "gcs", Store: store}},
	}
}
