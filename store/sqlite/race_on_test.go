//go:build race

package sqlite_test

// raceEnabled: times mean nothing with the race detector.
const raceEnabled = true
