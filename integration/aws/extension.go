package aws

import (
	"tandem/credential"
	"tandem/node"
	"tandem/plug"
)

// Extension is what this package brings.
func Extension(d plug.Deps) plug.Extension {
	return plug.Extension{
		Name:         "aws",
		Credentials:  []credential.Type{keysCredential(d.HTTP.HTTPClient())},
		Kinds:        []node.Kind{act(d.HTTP, d.Files)},
		ObjectStores: []plug.ObjectStore{{Target: "s3", Store: S3(d.HTTP)}},
	}
}
