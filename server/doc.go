// Package server is the HTTP API of Tandem: REST and streams under /api/v1, their OpenAPI document, the pages and numbers
// that operators look at.
//
// It says who may call what, and answers with what other packages prepare: package story describes executions, package respond
// draws pages, package settings serves what a workspace is set up with. Package route lets callers in and sends refusals. It
// runs nothing itself: what it needs is given to it in [Options]. It listens on no port; package app does.
//
// Each resource is one file with one method of [Server] that registers its operations, through [route.Handle] or a stream of the
// router: a route without roles cannot be made.
package server
