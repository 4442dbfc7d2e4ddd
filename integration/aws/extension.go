package aws

import (
	"tandem/credential"
	"tandem/plug"
)

// Extension is what this package brings.
func Extension(d plug.Deps) plug.Extension {
	return plug.Extension{
		Name:         "aws",
		Credentials:  []credential.Type{keysCredential(d.HTTP.HTTPClient())},
		ObjectStores: []plug.ObjectStore{{Target: "s3", Store: S3(d.HTTP)}},
	}
}
