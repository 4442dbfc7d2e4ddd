package settings

import (
	"testing"
	"time"

	"tandem/api"
	"tandem/fault"
	"tandem/identity"
	"tandem/route"
	"tandem/store/sqlite"
	"tandem/store/sqlite/sqlitetest"
)

func TestMe_WithoutAServer(t *testing.T) {
	t.Parallel()
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: sqlitetest.Dir(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	stores := db.Stores()
	s := &settings{Router: route.New(route.Options{Version: "test", Now: time.Now}), o: Options{Stores: stores}}
	local := identity.Principal{Workspace: "new", User: localUser, Roles: []identity.Role{identity.Admin}}
	ctx := route.As(t.Context(), local)
	got, err := s.getMe(ctx, local, nil)
	if err != nil || got.Body.AutoExecute || got.Body.ID != localUser || len(got.Body.Roles) != 1 {
		t.Fatalf("before: %+v, %v", got, err)
	}
	yes := true
	for range 2 { // the first makes a record of the user, in a workspace that has none
		got, err = s.updateMe(ctx, local, &meChange{api.MeRequest{AutoExecute: &yes}})
		if err != nil || !got.Body.AutoExecute || len(got.Body.Roles) != 1 {
			t.Fatalf("changed: %+v, %v", got, err)
		}
	}
	u, err := stores.Users.Get(t.Context(), local, localUser)
	if err != nil || !u.AutoExecute || len(u.Roles) != 0 {
		t.Errorf("kept is %+v, %v", u, err)
	}
	if got, err = s.getMe(ctx, local, nil); err != nil || !got.Body.AutoExecute || len(got.Body.Roles) != 1 {
		t.Errorf("read again: %+v, %v", got, err)
	}
	// It is nobody's last admin, and nobody makes it one.
	if err := s.keepAdmin(t.Context(), local, "somebody"); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("the local user counts as an admin: %v", err)
	}
	if _, err := s.updateUser(ctx, local, &userChange{ID: localUser, Body: api.UserRequest{Name: "x", Roles: []string{"admin"}}}); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("the local user was changed: %v", err)
	}
	// A caller with a token is in the store, or is nobody.
	if _, err := s.getMe(t.Context(), identity.Principal{Workspace: "new", User: "gone"}, nil); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("a user that is not there: %v", err)
	}
}
