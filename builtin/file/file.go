// Package file holds the kinds that work on files and pictures: fetching and putting them, the files of a workspace, and the tools that a
// model can use on them. What a file in a payload means is in package fileref, how text is found in one in package document.
//
// The package that puts a program together imports it; nothing else does.
package file

import (
	"tandem/builtin/models"
	"tandem/builtin/toolset"
	"tandem/files"
	"tandem/node"
	"tandem/objectstore"
	"tandem/outbound"
)

// Deps are what the kinds of this package need of the program that they are part of.
type Deps struct {
	// HTTP is how they call services; nil means a client that reaches public addresses only.
	HTTP *outbound.Client
	// Files are the files of the workspaces; nil: there are none, and kinds that need them say so.
	Files *files.Store
	// ObjectStores are where files can be put, by the name that a node gives as its target; the vendors' packages have them.
	ObjectStores map[string]objectstore.Store
	// Models are how language models are reached; nil: there are none, and pictures cannot be described.
	Models *models.Models
}

// Kinds lists every kind of this package.
func Kinds(d Deps) []node.Kind {
	if d.HTTP == nil {
		d.HTTP = outbound.New(outbound.Options{})
	}
	return []node.Kind{
		fileDownload(d.HTTP, d.Files),
		fileOperation(d.Files),
		fileUpload(d.HTTP, d.Files, d.ObjectStores),
		documentLoader(d.Files),
		toolset.Kind(fileProcessor(d.Files)),
		toolset.Kind(imageProcessor(d.Files, d.Models)),
	}
}
