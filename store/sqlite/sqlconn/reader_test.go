package sqlconn

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"tandem/store/relational"
)

// What is read one after the other is read on one connection, which has at hand what it has read; nobody waits who has left.
func TestReaders_TakeTheLastUsed(t *testing.T) {
	t.Parallel()
	r := NewReaders(filepath.Join(t.TempDir(), "x.db"), 2)
	used := func() (taken *Conn) {
		t.Helper()
		if err := r.Use(t.Context(), func(c relational.Reader) error { taken = c.(*Conn); return nil }); err != nil {
			t.Fatal(err)
		}
		return taken
	}
	first := used()
	for range 5 {
		if used() != first {
			t.Fatal("another connection was taken, though the one that was used last is free")
		}
	}
	if err := r.Use(t.Context(), func(relational.Reader) error {
		second := used()
		if second == first {
			t.Error("a connection was handed out twice")
		}
		return r.Use(t.Context(), func(relational.Reader) error {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := r.Use(ctx, func(relational.Reader) error { return errors.New("called") }); !errors.Is(err, context.Canceled) {
				t.Errorf("who has left is answered with %v", err)
			}
			if used := len(r.free); used != 0 {
				t.Errorf("%d connections are free while all are used", used)
			}
			return nil
		})
	}); err != nil {
		t.Fatal(err)
	}
	if len(r.free) != 2 {
		t.Errorf("%d connections are open", len(r.free))
	}
	if err := r.Close(); err != nil || len(r.free) != 0 {
		t.Errorf("closed with %v, %d are left", err, len(r.free))
	}
}
