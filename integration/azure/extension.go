package azure

import (
	"tandem/credential"
	"tandem/node"
	"tandem/plug"
)

// Extension is what this package brings.
func Extension(d plug.Deps) plug.Extension {
	store := &blobs{client: d.HTTP}
	return plug.Extension{
		Name:         "azure",
		Credentials:  []credential.Type{accountCredential(d.HTTP)},
		Kinds:        []node.Kind{act(store, d.Files)},
		ObjectStores: []plug.ObjectStore{{Target: "azure_blob", Store: store}},
	}
}
