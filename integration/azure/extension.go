package azure

import (
	"tandem/credential"
	"tandem/plug"
)

// Extension is what this package brings.
func Extension(d plug.Deps) plug.Extension {
	return plug.Extension{
		Name:         "azure",
		Credentials:  []credential.Type{accountCredential(d.HTTP)},
		ObjectStores: []plug.ObjectStore{{Target: "azure_blob", Store: Blobs(d.HTTP)}},
	}
}
