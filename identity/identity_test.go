package identity_test

import (
	"strings"
	"testing"

	"tandem/fault"
	"tandem/identity"
)

func TestPrincipal_Has(t *testing.T) {
	t.Parallel()
	p := identity.Principal{Workspace: "ws", User: "ann", Roles: []identity.Role{identity.Operator}}
	if !p.Has(identity.Admin, identity.Operator) || p.Has(identity.Admin, identity.Editor) || p.Has() {
		t.Error("a principal has the roles it was given, and no other")
	}
	if p.IsSystem() || !identity.System("").IsSystem() || !identity.System("ws").Has(identity.Admin) {
		t.Error("only the system is the system, and it has every role")
	}
	if (identity.Principal{}).Has(identity.Viewer) {
		t.Error("nobody has a role")
	}
}

func TestUser_PrincipalIsACopy(t *testing.T) {
	t.Parallel()
	u := identity.User{Workspace: "ws", ID: "ann", Roles: []identity.Role{identity.Viewer}}
	p := u.Principal()
	p.Roles[0] = identity.Admin
	if u.Roles[0] != identity.Viewer || p.Workspace != "ws" || p.User != "ann" || p.IsSystem() {
		t.Errorf("user %+v, principal %+v", u, p)
	}
}

func TestRole_Known(t *testing.T) {
	t.Parallel()
	for _, r := range identity.Roles() {
		if !r.Known() {
			t.Errorf("role %q is not known", r)
		}
	}
	if len(identity.Roles()) != 5 || identity.Role("king").Known() || identity.Role("").Known() {
		t.Error("there are five roles, and no other is known")
	}
}

func TestCheckWorkspace(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"default", "a", "0", "team-1_x", strings.Repeat("a", 63)} {
		if err := identity.CheckWorkspace(id); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
	for _, id := range []string{"", ".", "..", "a/b", "../a", "A", "-a", "_a", "a b", "a\n", "ä", strings.Repeat("a", 64)} {
		if err := identity.CheckWorkspace(id); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%q: %v, want a refusal", id, err)
		}
	}
}

func TestNewSecret(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 100 {
		s := identity.NewSecret()
		if !strings.HasPrefix(s, "tdm_") || len(s) != len("tdm_")+43 || seen[s] {
			t.Fatalf("secret %q", s)
		}
		seen[s] = true
		if h := identity.HashSecret(s); h != identity.HashSecret(s) || h == identity.HashSecret(s+"x") || strings.Contains(string(h[:]), s) {
			t.Fatalf("hash %x of %q", h, s)
		}
	}
}

// TestPrincipal_InWorkspace: a principal that acts in no workspace is refused, Tandem itself included.
func TestPrincipal_InWorkspace(t *testing.T) {
	t.Parallel()
	if workspace, err := (identity.Principal{Workspace: "ws"}).InWorkspace(); workspace != "ws" || err != nil {
		t.Errorf("%q, %v", workspace, err)
	}
	for _, p := range []identity.Principal{{User: "ann"}, identity.System("")} {
		if workspace, err := p.InWorkspace(); workspace != "" || fault.CodeOf(err) != fault.Forbidden {
			t.Errorf("%q acts in %q: %v", p.User, workspace, err)
		}
	}
}
