// Package server is the HTTP API of Tandem: REST and streams under /api/v1, their OpenAPI document, the pages and numbers
// that operators look at.
//
// It decides who may do what, tells records as the shapes of package api, and turns every error into a problem document.
// It runs nothing itself: what it needs is given to it in [Options]. It listens on no port; package app does, and is the
// only one that imports it.
//
// Each resource is one file with one method of [Server] that registers its operations, through [handle] or stream: a route
// without roles cannot be made.
package server
