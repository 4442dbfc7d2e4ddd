// Package limits says what a workspace may use and how long it keeps things: caps of what runs, windows of starts, quotas, retention.
// It decides who may start something now, counts what is started, measures what is stored, and removes what has been kept long enough.
//
// It has no HTTP routes and delays nothing itself: hosts ask it for caps, and callers ask it before they start something. The server, the
// settings and the wiring of an instance import it.
package limits
