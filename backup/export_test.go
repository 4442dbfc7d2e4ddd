package backup

import (
	"context"
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
	die(t, point, func(reached func(string)) error {
		o.reached = reached
		_, err := Restore(t.Context(), o)
		return err
	})
}

// DieMoving lets a move get no further than a point.
func DieMoving(t *testing.T, o MoveOptions, point string) {
	t.Helper()
	die(t, point, func(reached func(string)) error {
		o.reached = reached
		_, err := Move(t.Context(), o)
		return err
	})
}

// GiveUpMoving interrupts a move when only the commit is left to do.
func GiveUpMoving(t *testing.T, o MoveOptions) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	o.reached = func(point string) {
		if point == "put aside" {
			cancel()
		}
	}
	_, err := Move(ctx, o)
	return err
}

func die(t *testing.T, point string, run func(reached func(string)) error) {
	t.Helper()
	defer func() {
		if got := recover(); got != point {
			t.Errorf("it did not die at %q: %v", point, got)
		}
	}()
	err := run(func(now string) {
		if now == point {
			panic(point)
		}
	})
	t.Errorf("it came to its end: %v", err)
}
