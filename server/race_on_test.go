//go:build race

package server

// raceEnabled: the race detector allocates, too.
const raceEnabled = true
