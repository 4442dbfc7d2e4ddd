package database_test

import (
	"net"
	"strings"
	"testing"

	"tandem/credential"
	"tandem/database"
	"tandem/fault"
)

// A credential of a database is tried by logging in.
func TestCredential_Check(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, r *rig) {
		out := credential.Outside{Dial: (&net.Dialer{}).DialContext}
		try := func(data []byte) (string, error) {
			return database.Credential().Check(t.Context(), credential.Opened{ID: "cred_1", Type: "sql", Data: data}, out)
		}
		if found, err := try(r.target.Data); err != nil || !strings.Contains(found, "logged in") {
			t.Errorf("a good one: %q, %v", found, err)
		}
		nowhere := map[string]string{"postgres": "postgres://u:" + canary + "@127.0.0.1:1/d?sslmode=disable", "mysql": "u:" + canary + "@tcp(127.0.0.1:1)/d"}[r.driver]
		if _, err := try(r.with(nowhere).Data); fault.CodeOf(err) != fault.NetworkError || strings.Contains(err.Error(), canary) {
			t.Errorf("where no database is: %v", err)
		}
	})
}
