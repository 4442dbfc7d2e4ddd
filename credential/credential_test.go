package credential_test

import (
	"encoding/json"
	"strings"
	"testing"

	"tandem/credential"
	"tandem/fault"
)

func TestKeyring_OpenDataHoldsTheSecrets(t *testing.T) {
	t.Parallel()
	r, redactor := ring(t, key(1)), &credential.Redactor{}
	in := `{"driver":"postgres","dsn":"postgres://u:canary-1@h/d"}`
	sealed, err := r.SealData("main", "c1", "sql", json.RawMessage(in))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.OpenData(redactor, "other", "c1", "sql", sealed); reason(err) != "context" {
		t.Errorf("in another workspace: %v", err)
	}
	data, release, err := r.OpenData(redactor, "main", "c1", "sql", sealed)
	if err != nil || string(data) != in {
		t.Fatalf("opened %s, %v", data, err)
	}
	if got := redactor.Text("login as u with canary-1 refused"); got != "login as u with "+mark+" refused" {
		t.Errorf("an error shows the password: %q", got)
	}
	release()
	if strings.Contains(string(data), "canary") {
		t.Error("the data outlived its release")
	}
	if _, err := r.SealData("main", "c1", "sql", json.RawMessage(`{}`)); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("sealing data that is incomplete: %v", err)
	}
	odd, err := r.Seal([]byte("[]"), credential.Context("main", "c1", "sql"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.OpenData(redactor, "main", "c1", "sql", odd); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("opening what is no object: %v", err)
	}
}

func TestRedactor_BoundsLongSecrets(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789abcdef", credential.MaxSecret/8)
	r := holding(long)
	if got := r.Text("a " + long[:credential.MaxSecret] + " b"); got != "a "+mark+" b" {
		t.Errorf("%d bytes are left of the beginning of a long secret", len(got))
	}
	err := credential.Validate("openai", json.RawMessage(`{"api_key":"`+long+`"}`))
	if fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), "longer than") || len(err.Error()) > 200 {
		t.Errorf("a long secret: %v", err)
	}
}
