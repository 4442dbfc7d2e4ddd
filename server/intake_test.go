package server

import (
	"encoding/json"
	"strings"
	"testing"

	"tandem/api"
	"tandem/identity"
	"tandem/route"
)

// importBody asks for the import of a file that has a secret, or none.
func importBody(description string, dry bool) string {
	body := `{"files":[{"name":"f.json","content":"{\"metadata\":{\"name\":\"Brought\",\"description\":\"` + description + `\"},\"nodes\":[{\"id\":\"start\",\"description\":\"d\",\"type\":\"TRIGGER\",\"subtype\":\"MANUAL\"}]}"},{"name":"bad","content":"["}]`
	if dry {
		body += `,"dry_run":true`
	}
	return body + "}"
}

func TestIntake(t *testing.T) {
	t.Parallel()
	w := setup(t)
	got := read[api.ImportReport](t, w.admin("POST", route.Prefix+"/import", importBody("secret canary-secret", true)).want(t, 200))
	if len(got.Files) != 2 || got.Files[1].Error == "" || len(got.Files[0].Workflows) != 1 || len(got.Files[0].Workflows[0].Definition) == 0 || got.Files[0].Workflows[0].WorkflowID != "" {
		t.Fatalf("a dry run tells %+v", got)
	}
	if list := read[api.Workflows](t, w.admin("GET", route.Prefix+"/workflows", "").want(t, 200)); list.TotalCount != 0 {
		t.Errorf("a dry run has kept %+v", list)
	}
	for n, name := range []string{"moved", "moved_2"} {
		got = read[api.ImportReport](t, w.admin("POST", route.Prefix+"/import", importBody("secret canary-secret", false)).want(t, 200))
		told := got.Files[0].Workflows[0]
		if told.WorkflowID == "" || told.Revision != 1 || len(told.Credentials) != 1 || told.Credentials[0].Name != name || !told.Credentials[0].Created {
			t.Errorf("import %d tells %+v", n, told)
		}
	}
	if credentials := w.admin("GET", route.Prefix+"/credentials", "").want(t, 200).body; !strings.Contains(credentials, `"moved_2"`) || strings.Contains(credentials, "canary-secret") {
		t.Errorf("credentials %s", credentials)
	}
	for _, dry := range []bool{true, false} {
		got = read[api.ImportReport](t, w.call(w.tokens[identity.Editor], "POST", route.Prefix+"/import", importBody("secret canary-secret", dry)).want(t, 200))
		if told := got.Files[0].Workflows[0]; told.WorkflowID != "" || !strings.Contains(told.Error, "let an admin import it") {
			t.Errorf("an editor who imports a file with secrets (dry: %v) is told %+v", dry, told)
		}
	}
	w.call(w.tokens[identity.Editor], "POST", route.Prefix+"/import", importBody("d", false)).want(t, 200)
	w.call(w.tokens[identity.Viewer], "POST", route.Prefix+"/import", importBody("d", true)).want(t, 403)
}

// What fails is told of its file: what was kept before it is in the answer, and what comes after it is kept too.
func TestIntake_EachFile(t *testing.T) {
	t.Parallel()
	w := setup(t)
	file := func(name, id, description string) api.ImportFile {
		return api.ImportFile{Name: name, Content: `{"metadata":{"id":"` + id + `","name":"` + name + `","description":"` + description + `"},"nodes":[{"id":"start","description":"d","type":"TRIGGER","subtype":"MANUAL"}]}`}
	}
	request := api.ImportRequest{Files: []api.ImportFile{file("first", "one", "d"), file("again", "one", "secret canary-secret"), {Name: "bad", Content: "["}, file("last", "two", "d")}}
	body, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	got := read[api.ImportReport](t, w.admin("POST", route.Prefix+"/import", string(body)).want(t, 200))
	if len(got.Files) != 4 {
		t.Fatalf("the answer is %+v", got)
	}
	for i, id := range map[int]string{0: "one", 3: "two"} {
		if told := got.Files[i].Workflows[0]; told.WorkflowID != id || told.Error != "" {
			t.Errorf("file %d: %+v", i, told)
		}
	}
	if told := got.Files[1].Workflows[0]; told.WorkflowID != "" || !strings.Contains(told.Error, "one") || len(told.Credentials) != 1 || !told.Credentials[0].Created {
		t.Errorf("a file whose id is taken, after its credential was made: %+v", told)
	}
	if told := got.Files[2]; told.Error == "" || len(told.Workflows) != 0 {
		t.Errorf("a file that cannot be read: %+v", told)
	}
	if list := read[api.Workflows](t, w.admin("GET", route.Prefix+"/workflows", "").want(t, 200)); list.TotalCount != 2 {
		t.Errorf("kept are %+v", list)
	}
}
