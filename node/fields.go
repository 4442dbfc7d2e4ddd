package node

import "slices"

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
	// With are the values of other fields that it is looked at beside; none: it always is.
	With []Condition
	// Default is the value of a field that is not written, as text; empty: there is none, or it is zero.
	Default string
	// Fields are those of an object, or of the objects of a list.
	Fields []Field
}

// Fields lists the kind's own configuration fields, in the order in which they are written in its code.
func (k Kind) Fields() []Field { return k.config.list() }

// NeedGroups lists groups of fields, one of each of which must be set.
func (k Kind) NeedGroups() [][]string {
	if k.config == nil {
		return nil
	}
	return slices.Clone(k.config.needs)
}

// Dropped lists the names that files of older versions have and that are ignored with a warning.
func (k Kind) Dropped() []string {
	if k.config == nil {
		return nil
	}
	return slices.Clone(k.config.dropped)
}

// CommonFields lists the configuration fields that every kind has.
func CommonFields() []Field { return commonShape.list() }

func (s *shape) list() []Field {
	if s == nil {
		return nil
	}
	list := make([]Field, len(s.fields))
	for i := range s.fields {
		f := &s.fields[i]
		list[i] = Field{
			Name: f.name, Meaning: f.meaning, Takes: slices.Clone(f.takes), Required: f.required, Fixed: f.fixed,
			Values: slices.Clone(f.enum), OlderValues: slices.Clone(f.legacy), OlderNames: slices.Clone(f.older), Min: f.lo, Max: f.hi, Default: f.usual, Names: f.names, With: slices.Clone(f.with),
			Fields: f.inner.list(),
		}
	}
	return list
}
