package app

import (
	"tandem/importer"
	"tandem/importer/dify"
	"tandem/importer/n8n"
	"tandem/importer/seed"
	"tandem/node"
	"tandem/validation"
	"tandem/workflow"
)

// importSystems are the systems whose files can be imported. Each is a package, and a line here; they are asked in this order whether a
// file is theirs.
func importSystems() []importer.System {
	return []importer.System{n8n.System{}, dify.System{}, seed.Steps{}, seed.Older{}}
}

// Importer makes workflows of files of other systems, without an instance. Close it when it is no longer used.
type Importer struct {
	kinds *node.Registry
	code  *validation.Syntax
}

// NewImporter makes an importer with the kinds of this program.
func NewImporter() *Importer { return &Importer{kinds: Kinds(), code: validation.NewSyntax()} }

// Close ends the interpreters that code was read with.
func (i *Importer) Close() { i.code.Close() }

// Import makes workflows of the content of a file.
func (i *Importer) Import(name string, content []byte, language string) (*importer.Imported, error) {
	return importFile(name, content, language, i.kinds, func(definition []byte) (*workflow.Source, []workflow.Problem) {
		return check(definition, i.kinds, i.code)
	})
}

// Import makes workflows of the content of a file, with the kinds of the instance. Nothing is kept.
func (i *Instance) Import(name string, content []byte, language string) (*importer.Imported, error) {
	return importFile(name, content, language, &i.registry, i.check)
}

func importFile(name string, content []byte, language string, kinds *node.Registry,
	check func([]byte) (*workflow.Source, []workflow.Problem)) (*importer.Imported, error) {
	return importer.Import(name, content, importer.Options{Systems: importSystems(), Kinds: kinds, Language: language,
		Check: func(definition []byte) []workflow.Problem {
			_, problems := check(definition)
			return problems
		}})
}
