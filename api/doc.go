// Package api holds the shapes of the HTTP API: what the server sends and takes, what the client and the command line
// read and write. Names are snake_case, times are Unix milliseconds unless a comment says otherwise.
//
// It has shapes and no behaviour, and imports the vocabulary of the engine only. The server fills them from records of
// the store; the client returns them to its callers as they are.
package api
