package server

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"tandem/api"
	"tandem/credential"
	"tandem/fault"
	"tandem/identity"
	"tandem/route"
)

func TestUsers(t *testing.T) {
	t.Parallel()
	w := setup(t)
	made := read[api.User](t, w.admin("POST", route.Prefix+"/users", `{"id":"ann","name":"Ann","email":"ann@example.com","roles":["viewer","viewer"]}`).want(t, 201))
	if made.ID != "ann" || made.Workspace != "a" || !slices.Equal(made.Roles, []string{"viewer"}) || made.CreatedTime == 0 {
		t.Errorf("made %+v", made)
	}
	w.admin("POST", route.Prefix+"/users", `{"id":"ann","name":"Ann","roles":["viewer"]}`).problem(t, 409, fault.Conflict)
	for body, path := range map[string]string{
		`{"id":"me","name":"Ann","roles":["viewer"]}`:                                        "id",
		`{"id":"a/b","name":"Ann","roles":["viewer"]}`:                                       "id",
		`{"id":"bob","name":" ","roles":["viewer"]}`:                                         "name",
		`{"id":"bob","name":"Bob","roles":[]}`:                                               "roles",
		`{"id":"bob","name":"Bob","roles":["king"]}`:                                         "roles",
		`{"id":"bob","name":"Bob","roles":["viewer"],"email":"nonsense"}`:                    "email",
		`{"id":"bob","name":"Bob","roles":["viewer"],"addresses":["slack:U1","role:admin"]}`: "addresses[1]",
	} {
		p := w.admin("POST", route.Prefix+"/users", body).problem(t, 422, fault.InvalidInput)
		if len(p.Errors) != 1 || p.Errors[0].Path != path {
			t.Errorf("%s: %+v", body, p)
		}
	}
	changed := read[api.User](t, w.admin("PUT", route.Prefix+"/users/ann", `{"name":"Anna","roles":["editor"]}`).want(t, 200))
	if changed.Name != "Anna" || changed.Email != "" || changed.CreatedTime != made.CreatedTime {
		t.Errorf("changed %+v", changed)
	}
	w.admin("PUT", route.Prefix+"/users/ann", `{"id":"bob","name":"Anna","roles":["editor"]}`).problem(t, 422, fault.InvalidInput)
	w.admin("PUT", route.Prefix+"/users/bob", `{"name":"Bob","roles":["editor"]}`).problem(t, 404, fault.NotFound)
	if got := read[api.Users](t, w.admin("GET", route.Prefix+"/users", "").want(t, 200)); len(got.Users) != 6 {
		t.Errorf("%d users", len(got.Users))
	}
	w.admin("DELETE", route.Prefix+"/users/ann", "").want(t, 204)
	w.admin("GET", route.Prefix+"/users/ann", "").problem(t, 404, fault.NotFound)
}

// Where a user writes from is kept until it is said otherwise.
func TestUsers_Addresses(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.admin("POST", route.Prefix+"/users", `{"id":"ann","name":"Ann","roles":["viewer"],"addresses":["slack:U1","Knock:@Ann","slack:U1","Ann@Home.org"]}`).want(t, 201)
	want := []string{"slack:U1", "knock:@ann", "mail:ann@home.org"}
	if got := read[api.User](t, w.admin("PUT", route.Prefix+"/users/ann", `{"name":"Anna","roles":["viewer"]}`).want(t, 200)); !slices.Equal(got.Addresses, want) {
		t.Errorf("addresses %v, want %v", got.Addresses, want)
	}
	if got := read[api.User](t, w.admin("PUT", route.Prefix+"/users/ann", `{"name":"Anna","roles":["viewer"],"addresses":[]}`).want(t, 200)); len(got.Addresses) != 0 {
		t.Errorf("addresses %v are left", got.Addresses)
	}
}

func TestUsers_LastAdmin(t *testing.T) {
	t.Parallel()
	w := setup(t)
	const me = route.Prefix + "/users/admin-user"
	w.admin("DELETE", me, "").problem(t, 409, fault.Conflict)
	w.admin("PUT", me, `{"name":"x","roles":["editor"]}`).problem(t, 409, fault.Conflict)
	w.admin("PUT", me, `{"name":"x","roles":["admin"],"disabled":true}`).problem(t, 409, fault.Conflict)
	w.admin("PUT", me, `{"name":"x","roles":["admin","viewer"]}`).want(t, 200)
	w.admin("POST", route.Prefix+"/users", `{"id":"second","name":"x","roles":["admin"]}`).want(t, 201)
	w.admin("DELETE", me, "").want(t, 204)
	w.admin("GET", route.Prefix+"/users/me", "").problem(t, 401, fault.Unauthorized)
}

func TestTokens(t *testing.T) {
	t.Parallel()
	w := setup(t)
	viewer := w.tokens[identity.Viewer]
	made := read[api.NewToken](t, w.call(viewer, "POST", route.Prefix+"/users/me/tokens", `{"name":"laptop"}`).want(t, 201))
	if made.Token.UserID != "viewer-user" || !strings.HasPrefix(made.Secret, "tdm_") || made.Token.ExpiresTime != 0 {
		t.Errorf("made %+v", made)
	}
	w.call(made.Secret, "GET", route.Prefix+"/users/me", "").want(t, 200)
	listed := w.call(viewer, "GET", route.Prefix+"/users/viewer-user/tokens", "").want(t, 200)
	if got := read[api.Tokens](t, listed); len(got.Tokens) != 2 || strings.Contains(listed.body, made.Secret) {
		t.Errorf("listed %s", listed.body)
	}
	// Those of others are for admins.
	const others = route.Prefix + "/users/admin-user/tokens"
	w.call(viewer, "GET", others, "").problem(t, 403, fault.Forbidden)
	w.call(viewer, "POST", others, `{"name":"x"}`).problem(t, 403, fault.Forbidden)
	w.call(viewer, "DELETE", others+"/tok_aadmin-user", "").problem(t, 403, fault.Forbidden)
	w.call(viewer, "DELETE", route.Prefix+"/users/me/tokens/tok_aadmin-user", "").problem(t, 404, fault.NotFound)
	w.admin("GET", route.Prefix+"/users/nobody/tokens", "").problem(t, 404, fault.NotFound)
	w.admin("POST", route.Prefix+"/users/viewer-user/tokens", `{"name":""}`).problem(t, 422, fault.InvalidInput)
	w.admin("POST", route.Prefix+"/users/viewer-user/tokens", `{"name":"x","expires_in":99999999999}`).problem(t, 422, fault.InvalidInput)
	// A token that ends makes none that lasts longer.
	brief := read[api.NewToken](t, w.call(viewer, "POST", route.Prefix+"/users/me/tokens", `{"name":"brief","expires_in":600}`).want(t, 201))
	if p := w.call(brief.Secret, "POST", route.Prefix+"/users/me/tokens", `{"name":"x","expires_in":601}`).problem(t, 422, fault.InvalidInput); len(p.Errors) != 1 || p.Errors[0].Path != "expires_in" {
		t.Errorf("a token that lasts longer: %+v", p)
	}
	if of := read[api.NewToken](t, w.call(brief.Secret, "POST", route.Prefix+"/users/me/tokens", `{"name":"x"}`).want(t, 201)); of.Token.ExpiresTime != brief.Token.ExpiresTime {
		t.Errorf("it ends at %d, and the one that it was made with at %d", of.Token.ExpiresTime, brief.Token.ExpiresTime)
	}
	w.admin("DELETE", route.Prefix+"/users/viewer-user/tokens/"+made.Token.ID, "").want(t, 204)
	w.call(made.Secret, "GET", route.Prefix+"/users/me", "").problem(t, 401, fault.Unauthorized)
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	w := setup(t)
	const canary = "xoxb-canary-7731"
	var said strings.Builder
	admin := func(method, path, body string) answer {
		got := w.admin(method, path, body)
		said.WriteString(got.body)
		return got
	}
	made := read[api.Credential](t, admin("POST", route.Prefix+"/credentials", `{"name":"slack","type":"slack_bot","data":{"token":"`+canary+`"}}`).want(t, 201))
	if made.Name != "slack" || made.CreatedBy != "admin-user" || made.CreatedTime == 0 {
		t.Errorf("made %+v", made)
	}
	opened := func() string {
		t.Helper()
		c, err := w.stores.Credentials.Get(t.Context(), identity.System("a"), made.ID)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(c.Sealed), canary) {
			t.Error("the stored form can be read")
		}
		data, err := w.ring.Open(c.Sealed, credential.Context("a", c.ID, c.Type))
		if err != nil {
			t.Fatal(err)
		}
		var v struct {
			Token string `json:"token"`
		}
		if err := json.Unmarshal(data, &v); err != nil {
			t.Fatal(err)
		}
		return v.Token
	}
	if opened() != canary {
		t.Error("another secret was kept")
	}
	admin("PUT", route.Prefix+"/credentials/"+made.ID, `{"name":"renamed","type":"slack_bot"}`).want(t, 200)
	if opened() != canary {
		t.Error("a change without data changed the data")
	}
	admin("PUT", route.Prefix+"/credentials/"+made.ID, `{"name":"renamed","type":"slack_bot","data":{"token":"`+canary+`2"}}`).want(t, 200)
	if opened() != canary+"2" {
		t.Error("a change with data did not change it")
	}
	p := admin("PUT", route.Prefix+"/credentials/"+made.ID, `{"name":"renamed","type":"telegram_bot"}`).problem(t, 422, fault.InvalidInput)
	if len(p.Errors) != 1 || p.Errors[0].Path != "data" {
		t.Errorf("errors %+v", p.Errors)
	}
	p = admin("POST", route.Prefix+"/credentials", `{"name":"bad","type":"slack_bot","data":{"tokn":"`+canary+`"}}`).problem(t, 422, fault.Invalid)
	if len(p.Errors) != 2 || p.Errors[0].Path != "data.token" || p.Errors[1].Path != "data.tokn" {
		t.Errorf("errors %+v", p.Errors)
	}
	admin("POST", route.Prefix+"/credentials", `{"name":"bad","type":"slak_bot","data":{"token":"`+canary+`"}}`).problem(t, 422, fault.Invalid)
	admin("POST", route.Prefix+"/credentials", `{"name":"bad","type":"slack_bot"}`).problem(t, 422, fault.Invalid)
	admin("POST", route.Prefix+"/credentials", `{"name":"bad","type":"slack_bot","data":"`+canary+`"}`).problem(t, 422, fault.Invalid)
	admin("POST", route.Prefix+"/credentials", `{"name":{"`+canary+`":1},"type":"slack_bot","data":{}}`).problem(t, 422, fault.InvalidInput)
	admin("POST", route.Prefix+"/credentials", `{"name":"x","type":"slack_bot","data":{"token":"`+canary+`"`).problem(t, 400, fault.InvalidInput)
	admin("POST", route.Prefix+"/credentials", `{"name":"renamed","type":"slack_bot","data":{"token":"`+canary+`"}}`).problem(t, 409, fault.Conflict)
	listed := w.call(w.tokens[identity.Editor], "GET", route.Prefix+"/credentials", "").want(t, 200)
	said.WriteString(listed.body)
	if got := read[api.Credentials](t, listed); len(got.Credentials) != 1 || got.Credentials[0].Name != "renamed" {
		t.Errorf("listed %s", listed.body)
	}
	types := read[api.CredentialTypes](t, w.call(w.tokens[identity.Editor], "GET", route.Prefix+"/credential-types", "").want(t, 200))
	if len(types.Types) != len(testCredentials()) || types.Types[0].Title.Zh == "" || len(types.Types[0].Fields) == 0 {
		t.Errorf("%d types, the first %+v", len(types.Types), types.Types[0])
	}
	admin("DELETE", route.Prefix+"/credentials/"+made.ID, "").want(t, 204)
	admin("GET", route.Prefix+"/credentials/"+made.ID, "").problem(t, 404, fault.NotFound)
	if strings.Contains(said.String(), canary) {
		t.Errorf("an answer holds the secret: %s", said.String())
	}
}

func TestTemplates(t *testing.T) {
	t.Parallel()
	w := setup(t)
	const list = route.Prefix + "/node-templates"
	made := read[api.NodeTemplate](t, w.admin("POST", list, `{"id":"t1","kind":"call.empty","name":"T","known_params":{"pass_through":true},"override_input":{"type":"object","properties":{"n":{"type":"integer"}}}}`).want(t, 201))
	if made.ID != "t1" || made.Kind != "CALL.EMPTY" || string(made.KnownParams) != `{"pass_through":true}` || made.CreatedTime == 0 {
		t.Errorf("made %+v", made)
	}
	w.admin("POST", list, `{"id":"t1","kind":"CALL.EMPTY","name":"T"}`).problem(t, 409, fault.Conflict)
	if got := read[api.NodeTemplate](t, w.admin("POST", list, `{"kind":"CALL.EMPTY","name":"T"}`).want(t, 201)); !strings.HasPrefix(got.ID, "tpl_") {
		t.Errorf("id %q", got.ID)
	}
	for body, want := range map[string][2]string{
		`{"kind":"CALL.EMTY","name":"T"}`:                                                    {"kind", `did you mean "CALL.EMPTY"?`},
		`{"kind":"CALL.EMPTY","name":"T","known_params":[1]}`:                                {"known_params", "must be an object"},
		`{"kind":"CALL.EMPTY","name":"T","known_params":{"other":1}}`:                        {"known_params.other", "is not a field"},
		`{"kind":"CALL.EMPTY","name":"T","known_params":{"template_id":"x"}}`:                {"known_params.template_id", "build on another"},
		`{"kind":"CALL.EMPTY","name":"T","override_input":{"type":"strin"}}`:                 {"override_input", "is not a JSON Schema: at '/type'"},
		`{"kind":"CALL.EMPTY","name":"T","override_output":7}`:                               {"override_output", "must be an object"},
		`{"kind":"CALL.EMPTY","name":"T","override_output":{"$ref":"http://evil.example/"}}`: {"override_output", "outside of the schema"},
		`{"kind":"CALL.EMPTY","name":"T","override_output":{"$ref":"file:///etc/passwd"}}`:   {"override_output", "outside of the schema"},
		`{"id":"..","kind":"CALL.EMPTY","name":"T"}`:                                         {"id", "cannot be an id"},
		`{"kind":"CALL.EMPTY","name":""}`:                                                    {"name", "needs a name"},
	} {
		p := w.admin("POST", list, body).problem(t, 422, fault.InvalidInput)
		if len(p.Errors) != 1 || p.Errors[0].Path != want[0] || !strings.Contains(p.Errors[0].Message, want[1]) {
			t.Errorf("%s: %+v", body, p.Errors)
		}
	}
	changed := read[api.NodeTemplate](t, w.admin("PUT", list+"/t1", `{"kind":"CALL.EMPTY","name":"U"}`).want(t, 200))
	if changed.Name != "U" || changed.KnownParams != nil || changed.CreatedTime != made.CreatedTime {
		t.Errorf("changed %+v", changed)
	}
	w.admin("PUT", list+"/t1", `{"id":"t2","kind":"CALL.EMPTY","name":"U"}`).problem(t, 422, fault.InvalidInput)
	if got := read[api.NodeTemplates](t, w.call(w.tokens[identity.Viewer], "GET", list, "").want(t, 200)); len(got.NodeTemplates) != 2 {
		t.Errorf("listed %+v", got)
	}
	w.admin("DELETE", list+"/t1", "").want(t, 204)
	w.admin("DELETE", list+"/t1", "").problem(t, 404, fault.NotFound)
}

func TestNodeKinds(t *testing.T) {
	t.Parallel()
	w := setup(t)
	all := read[api.NodeKinds](t, w.admin("GET", route.Prefix+"/node-kinds", "").want(t, 200))
	if len(all.NodeKinds) != 2 {
		t.Fatalf("kinds %+v", all)
	}
	k := read[api.NodeKind](t, w.admin("GET", route.Prefix+"/node-kinds/CALL.EMPTY", "").want(t, 200))
	if k.Type != "CALL" || k.Subtype != "EMPTY" || k.Title.Zh != "空" || k.Title.En != "Empty" || k.Effect != "pure" || k.Timeout != 420 || k.MaxRetries != 3 || !slices.Equal(k.OutputKeys, []string{"result"}) || !json.Valid(k.ConfigSchema) {
		t.Errorf("kind %+v", k)
	}
	p := w.admin("GET", route.Prefix+"/node-kinds/CALL.EMTPY", "").problem(t, 404, fault.NotFound)
	if !strings.Contains(p.Detail, `"CALL.EMPTY"`) {
		t.Errorf("detail %q", p.Detail)
	}
}

// An id of another workspace is as unknown as one that never existed, for reading and for writing.
func TestWorkspaces_Apart(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := read[api.Credential](t, w.admin("POST", route.Prefix+"/credentials", `{"name":"c","type":"slack_bot","data":{"token":"x-secret"}}`).want(t, 201))
	w.admin("POST", route.Prefix+"/node-templates", `{"id":"t","kind":"CALL.EMPTY","name":"T"}`).want(t, 201)
	if p := w.admin("POST", route.Prefix+"/node-templates", `{"id":"s","kind":"CALL.TASK","name":"S","known_params":{"headers":{"Authorization":"Bearer 8WkzPqLr3mNvT6yB"}}}`).problem(t, 422, fault.InvalidInput); !slices.ContainsFunc(p.Errors, func(f api.FaultField) bool {
		return f.Path == "known_params.headers.Authorization" && f.Code == "inline_secret"
	}) {
		t.Errorf("a secret in a template: %+v", p.Errors)
	}
	w.admin("POST", route.Prefix+"/workflows", `{"metadata":{"id":"w","name":"w","description":"d"},"nodes":[{"id":"start","name":"s","description":"d","type":"TRIGGER","subtype":"MANUAL"}],"connections":[]}`).want(t, 201)
	for path, body := range map[string]string{
		"/credentials/" + c.ID:       `{"name":"mine","type":"slack_bot","data":{"token":"y-secret"}}`,
		"/users/viewer-user":         `{"name":"mine","roles":["admin"]}`,
		"/users/viewer-user/tokens":  "",
		"/node-templates/t":          "",
		"/workflows/w":               "",
		"/workflows/w/revisions":     "",
		"/users/me/tokens/tok_aboss": "DELETE",
	} {
		if body != "DELETE" {
			w.call(w.other, "GET", route.Prefix+path, "").problem(t, 404, fault.NotFound)
		}
		if body != "" && body != "DELETE" {
			w.call(w.other, "PUT", route.Prefix+path, body).problem(t, 404, fault.NotFound)
		}
		if !strings.HasSuffix(path, "/tokens") && !strings.HasSuffix(path, "/revisions") {
			w.call(w.other, "DELETE", route.Prefix+path, "").problem(t, 404, fault.NotFound)
		}
	}
	w.call(w.other, "POST", route.Prefix+"/users/viewer-user/tokens", `{"name":"x"}`).problem(t, 404, fault.NotFound)
	w.call(w.other, "POST", route.Prefix+"/workflows/w/execute", `{}`).problem(t, 404, fault.NotFound)
	for path, empty := range map[string]string{"/credentials": `{"credentials":[]}`, "/node-templates": `{"node_templates":[]}`} {
		if got := w.call(w.other, "GET", route.Prefix+path, "").want(t, http.StatusOK); strings.TrimSpace(got.body) != empty {
			t.Errorf("%s: %s", path, got.body)
		}
	}
	// The same id in the other workspace is another record.
	w.call(w.other, "PUT", route.Prefix+"/node-templates/t", `{"kind":"CALL.EMPTY","name":"theirs"}`).want(t, 200)
	if got := read[api.NodeTemplate](t, w.admin("GET", route.Prefix+"/node-templates/t", "").want(t, 200)); got.Name != "T" {
		t.Errorf("template %+v", got)
	}
	w.admin("GET", route.Prefix+"/credentials/"+c.ID, "").want(t, 200)
}
