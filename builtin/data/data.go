// Package data holds the kinds that shape data and read and write databases: formatting, transforming and validating values, queries and
// changes. What a database is asked and how is in package database.
//
// The package that puts a program together imports it; nothing else does.
package data

import (
	"tandem/builtin/models"
	"tandem/database"
	"tandem/node"
)

// Deps are what the kinds of this package need of the program that they are part of.
type Deps struct {
	// Databases are the connections to databases; nil: there are none, and kinds that need them say so.
	Databases *database.Pools
	// Models are how language models are reached; nil: there are none, and a question in plain words cannot become a query.
	Models *models.Models
}

// Kinds lists every kind of this package.
func Kinds(d Deps) []node.Kind {
	return []node.Kind{
		dataFormatting(),
		dataTransformation(),
		dataValidation(),
		editFields(),
		jinjaTemplate(),
		textSplitter(),
		databaseOperation(d.Databases),
		databaseQuery(d.Databases, d.Models),
		databaseTool(d.Databases),
	}
}
