package api

import (
	"tandem/fault"
	"tandem/text"
)

// Wrong says what is wrong with one field, in the languages of readers.
func Wrong(path string, words text.Text) FaultField {
	f := FaultField{Path: path, Message: words.In(text.English)}
	if zh := words.In(text.Chinese); zh != f.Message {
		f.MessageZH = zh
	}
	return f
}

// WrongField makes the error for one field of a request that cannot be taken: the path of the field, and what is wrong with it, in a format
// that has words in every language. The test of the catalogues reads the format where this is called.
func WrongField(path, format string, args ...any) *fault.Error {
	words, cause := text.Formatted(format, args...), fault.Newf(fault.InvalidInput, format, args...).Unwrap()
	return WrongFields(Wrong(path, words)).WithCause(cause).WithDetail("")
}

// WrongFields makes the error for fields of a request that cannot be taken, of which there is at least one.
func WrongFields(fields ...FaultField) *fault.Error {
	return fault.Newf(fault.InvalidInput, "%s: %s", fields[0].Path, fields[0].Text()).With("fields", fields)
}
