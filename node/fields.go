package node

import (
	"slices"

	"tandem/node/shape"
)

// Field is one configuration field of a kind, as validation, references and forms see it.
type Field struct {
	Name    string
	Meaning Text
	// Takes is what may be written: text, expression, sql, code, integer, number, flag, object, list, file or any.
	Takes    []string
	Required bool
	// Fixed says that the value cannot be a placeholder.
	Fixed bool
	// Values are the values that a text, or the texts of a list, can have; OlderValues are accepted besides, and not offered.
	Values, OlderValues []string
	// OlderNames are accepted spellings.
	OlderNames []string
	Min, Max   *float64
	// Names says which records of the workspace it names, by their ids or names; empty: it names none.
	Names RecordSort
	// With are the values of other fields without which it is ignored; none: it is never ignored.
	With []Condition
	// Default is the value of a field that is not written, as text; empty: there is none, or it is zero.
	Default string
	// Fields are the fields of an object, or of the objects of a list.
	Fields []Field
}

// Fields lists the kind's own configuration fields, in the order in which they are written in its code.
func (k Kind) Fields() []Field { return listed(k.config) }

// NeedGroups lists groups of fields; one field of each group must be set.
func (k Kind) NeedGroups() [][]string {
	if k.config == nil {
		return nil
	}
	return slices.Clone(k.config.Needs)
}

// Dropped lists the names that files of older versions have and that are ignored with a warning.
func (k Kind) Dropped() []string {
	if k.config == nil {
		return nil
	}
	return slices.Clone(k.config.Dropped)
}

// CommonFields lists the configuration fields that every kind has.
func CommonFields() []Field { return listed(commonShape) }

func listed(s *shape.Shape) []Field {
	if s == nil {
		return nil
	}
	list := make([]Field, len(s.Fields))
	for i := range s.Fields {
		f := &s.Fields[i]
		list[i] = Field{
			Name: f.Name, Meaning: f.Meaning, Takes: slices.Clone(f.Takes), Required: f.Required, Fixed: f.Fixed,
			Values: slices.Clone(f.Enum), OlderValues: slices.Clone(f.Legacy), OlderNames: slices.Clone(f.Older), Min: f.Min, Max: f.Max,
			Default: f.Usual, Names: f.Names, With: slices.Clone(f.With),
			Fields: listed(f.Inner),
		}
	}
	return list
}
