package api

import "tandem/fault"

// WrongField makes the error for one field of a request that cannot be taken: the path of the field, and what is wrong with it.
func WrongField(path, format string, args ...any) *fault.Error {
	f := fault.Newf(fault.InvalidInput, format, args...)
	field := FaultField{Path: path, Message: f.Message}
	f.Message = path + ": " + f.Message
	return f.With("fields", []FaultField{field})
}
