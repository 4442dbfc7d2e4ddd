package gcp

import (
	"tandem/credential"
	"tandem/plug"
)

// Extension is what this package brings.
func Extension(d plug.Deps) plug.Extension {
	return plug.Extension{
		Name:         "gcp",
		Credentials:  []credential.Type{accountCredential(d.HTTP)},
		ObjectStores: []plug.ObjectStore{{Target: "gcs", Store: Storage(d.HTTP)}},
	}
}
