package storetest

import (
	"testing"

	"tandem/identity"
	"tandem/store"
)

func testNobody(t *testing.T, s store.Stores) {
	k := fill(t, s, tenant(t))
	for name, call := range probes() {
		got, err := call(t.Context(), s, identity.Principal{User: "ann", Roles: []identity.Role{identity.Admin}}, k)
		if err == nil {
			t.Errorf("%s answered somebody without a workspace: %v", name, got)
		}
	}
}
