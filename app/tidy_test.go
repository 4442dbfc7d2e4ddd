package app

import (
	"testing"
	"time"

	"tandem/identity"
	"tandem/store"
)

func TestInstance_Tidies(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	now := time.Now()
	p := identity.Principal{Workspace: "default", User: "ann", Roles: []identity.Role{identity.Admin}}
	if _, err := x.stores.Memories.Change(t.Context(), p, store.MemoryChange{
		Scope: store.MemoryScope{ID: "m", User: "ann", Kind: "k"}, Time: now.UnixMilli(),
		Put: []store.MemoryRecord{
			{Sort: "s", ID: "old", Body: []byte(`1`), Expires: now.Add(-time.Hour).UnixMilli()},
			{Sort: "s", ID: "new", Body: []byte(`2`), Expires: now.Add(time.Hour).UnixMilli()},
		},
	}); err != nil {
		t.Fatal(err)
	}
	if out, err := x.limits.Tidy(t.Context(), now, time.Hour, 1); err != nil || out.Others != 1 {
		t.Fatalf("removed %+v, %v", out, err)
	}
	page, err := x.stores.Memories.Records(t.Context(), p, store.MemoryQuery{Scope: "m"})
	if err != nil || len(page.Records) != 1 || page.Records[0].ID != "new" {
		t.Errorf("left %+v, %v", page, err)
	}
	if out, err := x.limits.Tidy(t.Context(), now, time.Hour, 1); err != nil || out.Others != 0 {
		t.Errorf("removed %+v more, %v", out, err)
	}
}
