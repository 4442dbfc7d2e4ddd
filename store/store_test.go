package store_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

func TestPage_Limits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		page          store.Page
		limit, offset int
	}{
		{store.Page{}, 20, 0},
		{store.Page{Number: 1, Size: 5}, 5, 0},
		{store.Page{Number: 3, Size: 5}, 5, 10},
		{store.Page{Number: -4, Size: -5}, 20, 0},
		{store.Page{Number: 2, Size: 1 << 30}, 500, 500},
	} {
		if limit, offset := c.page.Limits(); limit != c.limit || offset != c.offset {
			t.Errorf("%+v: limit %d, offset %d; want %d, %d", c.page, limit, offset, c.limit, c.offset)
		}
	}
	if _, offset := (store.Page{Number: math.MaxInt, Size: 500}).Limits(); offset < 0 {
		t.Errorf("the last page of all begins at %d", offset)
	}
}

func TestScope(t *testing.T) {
	t.Parallel()
	if w, err := store.Scope(identity.Principal{Workspace: "a"}); w != "a" || err != nil {
		t.Errorf("a user: %q, %v", w, err)
	}
	for _, p := range []identity.Principal{{}, {User: "ann", Roles: []identity.Role{identity.Admin}}, identity.System("")} {
		if _, err := store.Scope(p); fault.CodeOf(err) != fault.Forbidden {
			t.Errorf("%+v: %v, want a refusal", p, err)
		}
	}
	if w, all, err := store.ScopeAll(identity.System("")); w != "" || !all || err != nil {
		t.Errorf("the system: %q, %v, %v", w, all, err)
	}
	if w, all, err := store.ScopeAll(identity.System("a")); w != "a" || all || err != nil {
		t.Errorf("the system for a workspace: %q, %v, %v", w, all, err)
	}
	if _, all, err := store.ScopeAll(identity.Principal{User: "ann"}); all || fault.CodeOf(err) != fault.Forbidden {
		t.Errorf("nobody: %v, %v", all, err)
	}
	if store.RequireSystem(identity.System("a")) != nil || fault.CodeOf(store.RequireSystem(identity.Principal{Workspace: "a"})) != fault.Forbidden {
		t.Error("only the system is the system")
	}
}

func TestKeyUsedError_IsAConflict(t *testing.T) {
	t.Parallel()
	for _, same := range []bool{true, false} {
		var err error = &store.KeyUsedError{IdempotencyKey: store.IdempotencyKey{Key: "k", Execution: "e"}, Same: same}
		err = fmt.Errorf("start: %w", err)
		if !errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound) || fault.CodeOf(err) != fault.Conflict {
			t.Errorf("same %v: %v", same, err)
		}
		if used, ok := errors.AsType[*store.KeyUsedError](err); !ok || used.Execution != "e" {
			t.Errorf("same %v: the execution is lost in %v", same, err)
		}
	}
}
