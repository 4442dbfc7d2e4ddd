package storetest

import (
	"slices"
	"testing"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

// testWorkspaces renames a workspace and deletes another: only one that holds nothing goes, nobody gets in any more, its id is not given
// again, and nothing of the first is touched.
func testWorkspaces(t *testing.T, s store.Stores, p identity.Principal, w identity.Workspace) {
	ctx, system := t.Context(), identity.System("")
	wantCode(t, "renamed by a user", s.Workspaces.Rename(ctx, p, w.ID, "N"), fault.Forbidden)
	wantCode(t, "deleted by a user", s.Workspaces.Delete(ctx, p, w.ID, 6), fault.Forbidden)
	wantCode(t, "renamed by the workspace", s.Workspaces.Rename(ctx, identity.System(w.ID), w.ID, "N"), fault.Forbidden)
	wantCode(t, "a name for none", s.Workspaces.Rename(ctx, system, "nowhere", "N"), fault.NotFound)
	wantCode(t, "no workspace", s.Workspaces.Delete(ctx, system, "nowhere", 6), fault.NotFound)
	ok(t, s.Workspaces.Rename(ctx, system, w.ID, "Other"))
	equal(t, "its name", "Other", must[identity.Workspace](t)(s.Workspaces.Get(ctx, p, w.ID)).Name)
	ok(t, s.Workspaces.Rename(ctx, system, w.ID, w.Name))

	gone := identity.Workspace{ID: w.ID + "-gone", Name: "Gone", Created: 5}
	own := identity.System(gone.ID)
	hash := identity.HashSecret("secret of " + gone.ID)
	ok(t, s.Workspaces.Create(ctx, system, gone))
	ok(t, s.Users.Create(ctx, own, identity.User{ID: "ann", Roles: []identity.Role{identity.Admin}}))
	ok(t, s.Tokens.Create(ctx, own, identity.Token{ID: "tok", User: "ann"}, hash))
	if _, _, err := s.Tokens.Resolve(ctx, system, hash, 6); err != nil {
		t.Fatal(err)
	}
	ok(t, s.Credentials.Create(ctx, own, store.Credential{ID: "c", Name: "c", Type: "t", Sealed: []byte("x")}))
	err := s.Workspaces.Delete(ctx, system, gone.ID, 6)
	wantCode(t, "one that holds something", err, fault.Conflict)
	if want := "workspace \"" + gone.ID + "\" still holds 1 credentials; remove these first"; fault.From(err).Message != want {
		t.Errorf("it says %q, want %q", fault.From(err).Message, want)
	}
	equal(t, "it is there", gone, must[identity.Workspace](t)(s.Workspaces.Get(ctx, own, gone.ID)))
	ok(t, s.Credentials.Delete(ctx, own, "c"))
	ok(t, s.Workspaces.Delete(ctx, system, gone.ID, 6))
	wantCode(t, "deleted twice", s.Workspaces.Delete(ctx, system, gone.ID, 7), fault.NotFound)
	wantCode(t, "renamed afterwards", s.Workspaces.Rename(ctx, system, gone.ID, "N"), fault.NotFound)
	wantCode(t, "made again", s.Workspaces.Create(ctx, system, gone), fault.Conflict)
	wantCode(t, "a user of it", s.Users.Create(ctx, own, identity.User{ID: "bob"}), fault.NotFound)
	if _, _, err := s.Tokens.Resolve(ctx, system, hash, 6); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("a token of it is answered with %v", err)
	}
	if _, err := s.Workspaces.Get(ctx, system, gone.ID); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("it is answered with %v", err)
	}
	equal(t, "its users", 0, len(must[[]identity.User](t)(s.Users.List(ctx, own))))
	equal(t, "what it sees", 0, len(must[[]identity.Workspace](t)(s.Workspaces.List(ctx, own))))
	gone.Deleted = 6
	if all := must[[]identity.Workspace](t)(s.Workspaces.List(ctx, system)); !slices.Contains(all, gone) {
		t.Errorf("Tandem itself does not know of it any more: %+v", all)
	}
}
