package human_test

import (
	"strings"
	"testing"

	"tandem/human"
	"tandem/identity"
)

// Who cannot answer is told also where nobody but the one without a server is: a user who is not there, and an address of a question in the
// app.
func TestAbsent(t *testing.T) {
	t.Parallel()
	local := identity.User{ID: identity.LocalUser}
	ann := identity.User{ID: "ann", Email: "Ann@example.com", Roles: []identity.Role{identity.Approver}, Settings: []byte(`{"addresses":["slack:U1"]}`)}
	gone := ann
	gone.Disabled = true
	for _, c := range []struct {
		name, approver string
		inApp          bool
		users          []identity.User
		says           string
	}{
		{"User", "bob", false, []identity.User{local}, `user "bob" is not in this workspace; create them`},
		{"NearUser", "anm", false, []identity.User{local, ann}, `did you mean "ann"?`},
		{"Local", "local", true, []identity.User{local}, ""},
		{"RoleWithoutUsers", "role:approver", true, []identity.User{local}, ""},
		{"Role", "role:editor", false, []identity.User{local, ann}, `no enabled user has the role "editor"`},
		{"MailElsewhere", "bob@example.com", false, []identity.User{local, ann}, ""},
		{"MailInApp", "bob@example.com", true, []identity.User{local, ann}, "asked in the app only"},
		{"MailInAppWithoutUsers", "bob@example.com", true, []identity.User{local}, "asked in the app only"},
		{"MailOfAUser", "ann@example.com", true, []identity.User{local, ann}, ""},
		{"MailOfADisabledUser", "ann@example.com", true, []identity.User{local, gone}, "asked in the app only"},
		{"AccountOfAUser", "slack:U1", true, []identity.User{local, ann}, ""},
		{"Account", "slack:U2", true, []identity.User{local, ann}, "channel_type"},
		{"Visitor", "visitor", true, []identity.User{local, ann}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := human.Absent(c.approver, c.inApp, c.users)
			if c.says == "" && !got.IsZero() || c.says != "" && !strings.Contains(got.String(), c.says) {
				t.Errorf("it says %q, want %q", got.String(), c.says)
			}
		})
	}
}
