package route

import (
	"crypto/rand"
	"strings"

	"tandem/fault"
	"tandem/store"
)

// Paging is the part of a listing that is wanted. It is exported for the framework only, as are all parts of requests that are
// embedded.
type Paging struct {
	Page     int `query:"page" minimum:"1" default:"1" doc:"counted from 1"`
	PageSize int `query:"page_size" minimum:"1" maximum:"500" default:"20"`
}

// StorePage is the part of a listing that is asked for, as stores take it.
func (p Paging) StorePage() store.Page { return store.Page{Number: p.Page, Size: p.PageSize} }

// Listed is a parameter that was given several times, or once with commas.
func Listed(values []string) []string {
	var list []string
	for _, v := range values {
		for part := range strings.SplitSeq(v, ",") {
			if part = strings.TrimSpace(part); part != "" {
				list = append(list, part)
			}
		}
	}
	return list
}

// Nothing is the answer of an operation that has none.
type Nothing struct{}

// NewID makes an id that nobody can guess and that says what it is of.
func NewID(what string) string { return what + "_" + strings.ToLower(rand.Text()) }

// ConflictOf words a conflict as what it is here; other errors stay as they are.
func ConflictOf(err error, format string, args ...any) error {
	if fault.CodeOf(err) == fault.Conflict {
		return fault.Newf(fault.Conflict, format, args...)
	}
	return err
}
