package backup

import (
	"testing"
)

// Points are those at which a restore may die. It comes to its end.
func Points(t *testing.T, o RestoreOptions) (points []string) {
	t.Helper()
	o.reached = func(point string) { points = append(points, point) }
	if _, err := Restore(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return points
}

// MakeMeanwhile makes a backup, and does something when all of it is written and has no name yet.
func MakeMeanwhile(t *testing.T, o Options, meanwhile func()) (Result, error) {
	t.Helper()
	o.reached = func(string) { meanwhile() }
	return Make(t.Context(), o)
}

// DieAt lets a restore get no further than a point.
func DieAt(t *testing.T, o RestoreOptions, point string) {
	t.Helper()
	o.reached = func(now string) {
		if now == point {
			panic(point)
		}
	}
	defer func() {
		if got := recover(); got != point {
			t.Errorf("it did not die at %q: %v", point, got)
		}
	}()
	_, err := Restore(t.Context(), o)
	t.Errorf("it came to its end: %v", err)
}
