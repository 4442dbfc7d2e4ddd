// Package route takes the requests of the HTTP API: it lets callers in, bounds bodies and guesses, finds the operation, tells every error
// as a problem document, and documents what is registered. There is no way to register an operation without the roles that may call it
// ([Handle]).
//
// It does not know any resource; package server and its rooms register those.
package route
