package identity_test

import (
	"slices"
	"testing"

	"tandem/identity"
)

func TestPrincipal_Narrowed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		roles  []identity.Role
		scopes []identity.Scope
		want   []identity.Role
	}{
		"AdminWithoutScopes":  {[]identity.Role{identity.Admin}, nil, []identity.Role{identity.Admin}},
		"AdminWithAdmin":      {[]identity.Role{identity.Admin}, []identity.Scope{identity.ScopeAdmin, identity.ScopeRead}, []identity.Role{identity.Admin}},
		"AdminExecutes":       {[]identity.Role{identity.Admin}, []identity.Scope{identity.ScopeExecute}, []identity.Role{identity.Operator, identity.Viewer}},
		"AdminEditsAnswers":   {[]identity.Role{identity.Admin}, []identity.Scope{identity.ScopeEdit, identity.ScopeAnswer}, []identity.Role{identity.Editor, identity.Approver, identity.Viewer}},
		"AdminReads":          {[]identity.Role{identity.Admin}, []identity.Scope{identity.ScopeRead}, []identity.Role{identity.Viewer}},
		"EditorExecutes":      {[]identity.Role{identity.Editor}, []identity.Scope{identity.ScopeExecute, identity.ScopeAnswer}, []identity.Role{identity.Operator, identity.Viewer}},
		"OperatorEdits":       {[]identity.Role{identity.Operator}, []identity.Scope{identity.ScopeEdit}, []identity.Role{identity.Viewer}},
		"ViewerWithAdmin":     {[]identity.Role{identity.Viewer}, []identity.Scope{identity.ScopeAdmin}, []identity.Role{identity.Viewer}},
		"NobodyWithEverySort": {nil, []identity.Scope{identity.ScopeEdit, identity.ScopeExecute}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := identity.Principal{Roles: c.roles, Scopes: c.scopes}
			if got := p.Narrowed().Roles; !slices.Equal(got, c.want) {
				t.Errorf("%v with %v acts as %v, want %v", c.roles, c.scopes, got, c.want)
			}
		})
	}
}
