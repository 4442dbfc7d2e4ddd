package credential_test

import (
	"encoding/json"
	"strings"
	"testing"

	"tandem/credential"
	"tandem/fault"
	"tandem/text"
)

// databaseLogin is a type with a secret that has another one in it.
func databaseLogin() credential.Type {
	return credential.Type{Name: "sql", Label: text.Beside("Database", "数据库"), Fields: []credential.Field{
		credential.Choice("driver", "Driver", "驱动", "postgres").Needed(), credential.Secret("dsn", "Data source name", "连接字符串").Needed(),
	}}.Complete()
}

func TestKeyring_OpenDataHoldsTheSecrets(t *testing.T) {
	t.Parallel()
	r, redactor := ring(t, key(1)), &credential.Redactor{}
	in := `{"driver":"postgres","dsn":"postgres://u:canary-1@h/d"}`
	sealed, err := r.SealData(databaseLogin(), "main", "c1", json.RawMessage(in))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.OpenData(redactor, databaseLogin(), "other", "c1", sealed); reason(err) != "context" {
		t.Errorf("in another workspace: %v", err)
	}
	opened, err := r.OpenData(redactor, databaseLogin(), "main", "c1", sealed)
	if err != nil || string(opened.Data) != in || opened.ID != "c1" || opened.Type != "sql" {
		t.Fatalf("opened %+v, %v", opened, err)
	}
	data := opened.Data
	if got := redactor.Text("login as u with canary-1 refused"); got != "login as u with "+mark+" refused" {
		t.Errorf("an error shows the password: %q", got)
	}
	released := 0
	opened = opened.OnRelease(func() { released++ })
	release := opened.Keep()
	if opened.Release(); released != 0 || redactor.Text("canary-1") == "canary-1" {
		t.Error("what was kept was released by somebody else")
	}
	release()
	if opened.Release(); released != 1 {
		t.Errorf("it was released %d times", released)
	}
	if strings.Contains(string(data), "canary") {
		t.Error("the data outlived its release")
	}
	if _, err := r.SealData(databaseLogin(), "main", "c1", json.RawMessage(`{}`)); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("sealing data that is incomplete: %v", err)
	}
	odd, err := r.Seal([]byte("[]"), credential.Context("main", "c1", "sql"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.OpenData(redactor, databaseLogin(), "main", "c1", odd); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("opening what is not an object: %v", err)
	}
}

func TestRedactor_BoundsLongSecrets(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789abcdef", credential.MaxSecret/8)
	r := holding(long)
	if got := r.Text("a " + long[:credential.MaxSecret] + " b"); got != "a "+mark+" b" {
		t.Errorf("%d bytes are left of the beginning of a long secret", len(got))
	}
	err := credential.Type{Name: "openai", Fields: []credential.Field{credential.APIKey()}}.Validate(json.RawMessage(`{"api_key":"` + long + `"}`))
	if fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), "longer than") || len(err.Error()) > 200 {
		t.Errorf("a long secret: %v", err)
	}
}

func TestTypes(t *testing.T) {
	t.Parallel()
	types := credential.NewTypes(databaseLogin(), credential.Type{Name: "bot", Fields: []credential.Field{credential.Token()}})
	if len(types) != 2 || types[0].Name != "bot" || len(types[0].Fields) != 2 || types[0].Fields[1].Name != "base_url" || len(types[1].Fields) != 3 {
		t.Errorf("they are not sorted and complete: %+v", types)
	}
	if got, err := types.Find("sql"); err != nil || got.Name != "sql" {
		t.Errorf("found %+v, %v", got, err)
	}
	if _, err := types.Find("sqk"); fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), `did you mean "sql"?`) {
		t.Errorf("a type that there is not: %v", err)
	}
}
