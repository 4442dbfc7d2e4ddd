package payload

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// Reads is which fields of an object a Go type reads.
type Reads struct {
	names []string
}

// ReadsNamed are the fields of these names.
func ReadsNamed(names ...string) *Reads { return &Reads{names} }

// ReadsOf are the fields that an object is read into by a Go type; nil if it may be all of them.
func ReadsOf(t reflect.Type) *Reads {
	if t.Kind() != reflect.Struct {
		return nil
	}
	r := &Reads{}
	if !r.collect(t) {
		return nil
	}
	return r
}

// collect adds the names of a struct, and says whether these are all that it reads.
func (r *Reads) collect(t reflect.Type) bool {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return false
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case f.Anonymous && name == "":
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			if inner.Kind() != reflect.Struct || !r.collect(inner) {
				return false
			}
		case !f.IsExported():
		case name == "":
			r.names = append(r.names, f.Name)
		default:
			r.names = append(r.names, name)
		}
	}
	return true
}

// Has says that a field is one of those, in any letter case, as JSON is read.
func (r *Reads) Has(name string) bool {
	return slices.ContainsFunc(r.names, func(known string) bool { return strings.EqualFold(known, name) })
}
