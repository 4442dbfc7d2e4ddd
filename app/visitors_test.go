package app

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/identity"
	"tandem/route"
	"tandem/server"
)

// visitor is a browser that visits the pages of triggers, with cookies of its own and nothing else.
type visitor struct {
	x    *site
	http *http.Client
	// header is sent with everything.
	header map[string]string
}

func (x *site) visitor(t testing.TB) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &visitor{x: x, http: &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, header: map[string]string{}}
}

func (v *visitor) base() string { return strings.TrimSuffix(v.x.url, "/api/v1") }

func (v *visitor) ask(t testing.TB, method, path, kind string, body io.Reader) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, v.base()+path, body)
	if err != nil {
		t.Fatal(err)
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	for name, value := range v.header {
		r.Header.Set(name, value)
	}
	w, err := v.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	raw, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{w.StatusCode, w.Header, raw}
}

func (v *visitor) get(t testing.TB, path string) answer {
	t.Helper()
	return v.ask(t, http.MethodGet, path, "", nil)
}

func (v *visitor) post(t testing.TB, path string, values url.Values) answer {
	t.Helper()
	return v.ask(t, http.MethodPost, path, "application/x-www-form-urlencoded", strings.NewReader(values.Encode()))
}

var formID = regexp.MustCompile(`name="form_id" value="([^"]+)"`) // read-only

// ticket looks at a form and returns its one-time id.
func (v *visitor) ticket(t testing.TB, path string) string {
	t.Helper()
	a := v.get(t, path)
	found := formID.FindSubmatch(a.body)
	if a.status != http.StatusOK || found == nil {
		t.Fatalf("%s: %d %s", path, a.status, a.body)
	}
	return string(found[1])
}

// send looks at a form and sends it, with values by the names of its controls.
func (v *visitor) send(t testing.TB, path string, values url.Values) answer {
	t.Helper()
	values = maps.Clone(values)
	if values == nil {
		values = url.Values{}
	}
	values.Set("form_id", v.ticket(t, path))
	return v.post(t, path, values)
}

func says(t testing.TB, a answer, status int, parts ...string) {
	t.Helper()
	if a.status != status {
		t.Errorf("status %d, want %d: %s", a.status, status, a.body)
	}
	for _, part := range parts {
		if !strings.Contains(string(a.body), part) {
			t.Errorf("it does not say %q: %s", part, a.body)
		}
	}
}

// visitFlow is a workflow that a page starts, with nodes and connections behind it.
func visitFlow(id, kind, config string, more ...string) string {
	nodes, connections := "", "connections: []\n"
	if len(more) > 0 {
		nodes, connections = more[0], "connections:\n"+more[1]
	}
	return "metadata: {id: " + id + ", name: " + id + ", description: d}\nnodes:\n  - {id: page, name: page, description: d, type: TRIGGER, subtype: " + kind + ", configurations: " + config + "}\n" + nodes + connections
}

// oneField is a form with a name.
const oneField = `form_schema: {type: object, required: [name], properties: {name: {type: string, title: Name}}}`

// payloads are what has started executions of a workflow, the oldest first.
func (x *site) payloads(t testing.TB, workflow string) (list []gjson.Result) {
	t.Helper()
	page := want[api.Deliveries](t, x.call(t, "operator", "GET", "/deliveries?decision=started&page_size=100&workflow_id="+workflow, nil), http.StatusOK)
	for _, d := range slices.Backward(page.Deliveries) {
		list = append(list, gjson.ParseBytes(want[api.Delivery](t, x.call(t, "operator", "GET", "/deliveries/"+d.ID, nil), http.StatusOK).Payload))
	}
	return list
}

func TestVisitors_Pages(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.deploys(t, "shop", visitFlow("shop", "FORM", `{path: /order, title: Order <b>here</b>, description: "What you like", `+oneField+`}`,
		"  - {id: talk, name: talk, description: d, type: TRIGGER, subtype: CHAT, configurations: {path: /help, title: Help, description: Ask us, greeting: Hello there}}\n", "  []\n"))
	v := x.visitor(t)
	says(t, v.get(t, "/forms/shop/order"), http.StatusOK, "Order &lt;b&gt;here&lt;/b&gt;", "What you like", `<label for="q0">Name`)
	says(t, v.get(t, "/forms/shop/order/"), http.StatusOK)
	says(t, v.get(t, "/chat/shop/help"), http.StatusOK, "Help", "Ask us", "Hello there")
	for _, path := range []string{"/forms/shop", "/forms/shop/help", "/chat/shop/order", "/forms/none/order", "/forms/other:shop/order", "/forms/default:shop/order", "/forms/shop/order/more"} {
		if a := v.get(t, path); a.status != http.StatusNotFound && a.status != http.StatusBadRequest {
			t.Errorf("%s: %d", path, a.status)
		}
	}
	list := want[api.Triggers](t, x.call(t, "viewer", "GET", "/workflows/shop/triggers", nil), http.StatusOK)
	same(t, strings.TrimPrefix(list.Triggers[0].Address, v.base()), "/forms/shop/order")
	same(t, strings.TrimPrefix(list.Triggers[1].Address, v.base()), "/chat/shop/help")

	// Two pages at one address are refused, and a page that is taken away is gone.
	x.saves(t, "shop", visitFlow("shop", "FORM", `{`+oneField+`}`, "  - {id: two, name: two, description: d, type: TRIGGER, subtype: FORM, configurations: {"+oneField+"}}\n", "  []\n"))
	if f := refused(t, x.call(t, "editor", "POST", "/workflows/shop/deploy", nil), http.StatusConflict, "conflict"); !strings.Contains(f.Detail, `"/" is taken by the trigger "page"`) {
		t.Error(f.Detail)
	}
	want[api.WorkflowMetadata](t, x.call(t, "editor", "POST", "/workflows/shop/undeploy", nil), http.StatusOK)
	says(t, v.get(t, "/forms/shop/order"), http.StatusNotFound, "There is no such page")
	v.header["Accept-Language"] = "zh-CN"
	says(t, v.get(t, "/forms/shop/order"), http.StatusNotFound, "没有这个页面")
}

func TestVisitors_Refused(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	for config, part := range map[string]string{
		`{path: a, ` + oneField + `}`: "path", `{path: "/{x}", ` + oneField + `}`: "braces", `{access: password, ` + oneField + `}`: "credential_id", `{allowed_origins: ["example.com"], ` + oneField + `}`: "allowed_origins[0]",
		`{allowed_origins: ["https://*.example.com"], ` + oneField + `}`: "allowed_origins[0]", `{form_schema: {type: object}}`: "properties", `{title: t}`: "form_schema", `{form_schema: {type: 7}}`: "form_schema",
		`{redirect_url: "javascript:alert(1)", ` + oneField + `}`: "redirect_url", `{form_schema: {properties: {f: {type: string, format: file}}}}`: "type: object", `{visitor_limit: 0, ` + oneField + `}`: "visitor_limit",
	} { // order does not matter: each is for itself
		a := x.call(t, "editor", "POST", "/workflows", visitFlow("wrong", "FORM", config))
		if a.status < 400 || a.status >= 500 || !strings.Contains(string(a.body), part) {
			t.Errorf("%s: %d %s", config, a.status, a.body)
		}
	}
}

// everyInput is a form with each kind of field.
const everyInput = `{type: object, required: [name, size], properties: {
  name: {type: string, title: Name, maxLength: 10}, age: {type: integer, title: Age, minimum: 18}, vegan: {type: boolean, title: Vegan}, size: {type: string, title: Size, enum: [S, M]},
  topics: {type: array, title: Topics, items: {enum: [go, sql]}}, day: {type: string, format: date, title: Day}, mail: {type: string, format: email, title: Mail}}}`

func TestVisitors_Form(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.deploys(t, "all", visitFlow("all", "FORM", `{title: All, form_schema: `+everyInput+`}`))
	v := x.visitor(t)
	wrong := v.send(t, "/forms/all", url.Values{"q0": {"<script>alert(1)</script>"}, "q1": {"seven"}, "q5": {"soon"}, "q6": {"nobody"}})
	says(t, wrong, http.StatusUnprocessableEntity, "Name: ", "Age: ", "Size: ", "Day: ", "Mail: ", `value="&lt;script&gt;alert(1)&lt;/script&gt;"`)
	same(t, x.executionsOf(t, "all"), 0)

	id := v.ticket(t, "/forms/all")
	good := url.Values{"form_id": {id}, "q0": {"Zoë 王"}, "q1": {"30"}, "q2": {"false"}, "q3": {"M"}, "q4": {"go", "sql"}, "q5": {"2027-03-31"}, "q6": {"z@example.org"}}
	says(t, v.post(t, "/forms/all", good), http.StatusOK, "Thank you", "It was received.")
	got := x.payloads(t, "all")
	same(t, len(got), 1)
	same(t, got[0].Get("fields").Raw, `{"age":30,"day":"2027-03-31","mail":"z@example.org","name":"Zoë 王","size":"M","topics":["go","sql"],"vegan":false}`)
	same(t, fmt.Sprint(got[0].Get("language"), " ", got[0].Get("client_ip"), " ", got[0].Get("timestamp").Exists(), got[0].Get("user_id").Exists()), "en 127.0.0.1 true false")

	// What the page does not have is refused by its name, not lost.
	odd := url.Values{"form_id": {v.ticket(t, "/forms/all")}, "q0": {"Ada"}, "q1": {"30"}, "q3": {"M"}, "q99": {"x"}, "name": {"Bob"}}
	says(t, v.post(t, "/forms/all", odd), http.StatusUnprocessableEntity, "name, q99", `value="Ada"`)
	same(t, x.executionsOf(t, "all"), 1)

	// The same form a second time is the first one; with something else in it, nothing.
	says(t, v.post(t, "/forms/all", good), http.StatusOK, "Thank you")
	good.Set("q0", "Another")
	says(t, v.post(t, "/forms/all", good), http.StatusConflict, "This form was sent already")
	good.Del("form_id")
	says(t, v.post(t, "/forms/all", good), http.StatusConflict, "The page was open for too long", `value="Another"`)
	good.Set("form_id", id[:len(id)-2]+"xx")
	says(t, v.post(t, "/forms/all", good), http.StatusConflict, "The page was open for too long")
	same(t, x.executionsOf(t, "all"), 1)

	// The id of one form is not the id of another.
	x.deploys(t, "else", visitFlow("else", "FORM", `{`+oneField+`}`))
	says(t, v.post(t, "/forms/else", url.Values{"form_id": {v.ticket(t, "/forms/all")}, "q0": {"x"}}), http.StatusConflict)
	same(t, x.executionsOf(t, "else"), 0)
	says(t, v.ask(t, http.MethodPost, "/forms/all", "text/plain", strings.NewReader("x")), http.StatusUnprocessableEntity, "The form could not be read")
	a := v.ask(t, http.MethodDelete, "/forms/all", "", nil)
	same(t, a.status, http.StatusMethodNotAllowed)
}

// upload makes the body of a form with a file.
func upload(t testing.TB, values map[string]string, field, name string, content []byte) (kind string, body io.Reader) {
	t.Helper()
	var out bytes.Buffer
	w := multipart.NewWriter(&out)
	for key, value := range values {
		if err := w.WriteField(key, value); err != nil {
			t.Fatal(err)
		}
	}
	part, err := w.CreateFormFile(field, name)
	if err == nil {
		_, err = part.Write(content)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return w.FormDataContentType(), &out
}

func TestVisitors_FormFiles(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.deploys(t, "files", visitFlow("files", "FORM", `{max_file_mb: 1, form_schema: {type: object, required: [doc], properties: {doc: {type: object, format: file, title: Document}, note: {type: string, maxLength: 3}}}}`))
	v := x.visitor(t)
	send := func(note, name string, content []byte) answer {
		kind, body := upload(t, map[string]string{"form_id": v.ticket(t, "/forms/files"), "q1": note}, "q0", name, content)
		return v.ask(t, http.MethodPost, "/forms/files", kind, body)
	}
	blobs := func() int { return blobCount(t, x.dir) }
	before := blobs()
	says(t, send("", "big.bin", make([]byte, 1<<20+1)), http.StatusUnprocessableEntity, "The file has more than 1 MiB.")
	says(t, send("too long", "a.txt", []byte("hello")), http.StatusUnprocessableEntity)
	says(t, send("", "a.bin", make([]byte, 13<<20)), http.StatusRequestEntityTooLarge, "This is too large")
	says(t, v.send(t, "/forms/files", nil), http.StatusUnprocessableEntity, "Document: ")
	same(t, blobs(), before) // what was refused is not kept
	says(t, send("ok", "../../etc/passwd", bytes.Repeat([]byte("hello "), 1000)), http.StatusOK, "Thank you")
	file := x.payloads(t, "files")[0].Get("fields.doc")
	same(t, fmt.Sprint(file.Get("name"), " ", file.Get("size"), " ", file.Get("content_type")), "passwd 6000 application/octet-stream")
	content, _, err := x.stores.Blobs.Get(t.Context(), identity.System("default"), file.Get("blob").Str)
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	if raw, err := io.ReadAll(content); err != nil || !bytes.HasPrefix(raw, []byte("hello hello")) {
		t.Errorf("%.20q %v", raw, err)
	}
}

// blobCount counts the files of large values.
func blobCount(t testing.TB, dir string) (n int) {
	t.Helper()
	var walk func(string)
	walk = func(at string) {
		entries, err := os.ReadDir(at)
		if err != nil {
			return
		}
		for _, e := range entries {
			if e.IsDir() {
				walk(at + "/" + e.Name())
			} else {
				n++
			}
		}
	}
	walk(dir + "/blobs")
	return n
}

func TestVisitors_FormReplies(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	template := func(text string) (string, string) {
		return `  - {id: out, name: out, description: d, type: ACTION, subtype: DATA_FORMATTING, configurations: {format_type: template, template: "` + text + `"}}` + "\n", "  - {from_node: page, to_node: out}\n"
	}
	v, name := x.visitor(t), url.Values{"q0": {"Ada"}}
	node, link := template("Hi {{page.outputs.fields.name}} <i>")
	x.deploys(t, "sync", visitFlow("sync", "FORM", `{response_mode: sync, thank_you: "Many thanks", `+oneField+`}`, node, link))
	says(t, v.send(t, "/forms/sync", name), http.StatusOK, "Thank you", "Many thanks", "Hi Ada &lt;i&gt;")

	x.deploys(t, "thanks", visitFlow("thanks", "FORM", `{thank_you: "See you & me", `+oneField+`}`))
	says(t, v.send(t, "/forms/thanks", name), http.StatusOK, "Thank you", "See you &amp; me")

	x.deploys(t, "away", visitFlow("away", "FORM", `{redirect_url: "https://www.example.com/done?x=1", `+oneField+`}`))
	a := v.send(t, "/forms/away", name)
	same(t, fmt.Sprint(a.status, a.header.Get("Location")), "303https://www.example.com/done?x=1")
	if policy := v.get(t, "/forms/away").header.Get("Content-Security-Policy"); !strings.Contains(policy, "form-action 'self' https://www.example.com;") {
		t.Error(policy)
	}

	x.deploys(t, "answered", visitFlow("answered", "FORM", `{response_mode: node, `+oneField+`}`,
		"  - {id: out, name: out, description: d, type: FLOW, subtype: RESPOND, configurations: {status_code: 201, body: \"own words\"}}\n", "  - {from_node: page, to_node: out}\n"))
	if a := v.send(t, "/forms/answered", name); a.status != http.StatusCreated || !strings.Contains(string(a.body), "own words") || !strings.HasPrefix(a.header.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("%d %v %s", a.status, a.header, a.body)
	}

	// What takes longer than the visitor waits, or asks a person, goes on; what fails says so and not why.
	x.deploys(t, "slow", visitFlow("slow", "FORM", `{response_mode: sync, response_timeout_seconds: 1, `+oneField+`}`,
		"  - {id: out, name: out, description: d, type: FLOW, subtype: DELAY, configurations: {duration_seconds: 600}}\n", "  - {from_node: page, to_node: out}\n"))
	says(t, v.send(t, "/forms/slow", name), http.StatusOK, "It was received.")
	_, link = template("{{page.outputs.fields.nothing.there}}")
	x.deploys(t, "fails", visitFlow("fails", "FORM", `{response_mode: sync, `+oneField+`}`,
		"  - {id: out, name: out, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {url: \"http://127.0.0.1:1/secret-place\", max_retries: 0}}\n", link))
	failed := v.send(t, "/forms/fails", name)
	says(t, failed, http.StatusInternalServerError, "This did not work", "The people who run this can see why")
	if strings.Contains(string(failed.body), "secret-place") {
		t.Errorf("it tells why: %s", failed.body)
	}
}

func TestVisitors_Access(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	const secret = "canary-Zq8Lw2Vt9Rk4Xp7Nd3"
	x.keep(t, "door", "webhook_secret", `{"secret":"`+secret+`"}`)
	for _, kind := range []string{"FORM", "CHAT"} { // both have the same doors
		base, schema := "/forms/", oneField
		if kind == "CHAT" {
			base, schema = "/chat/", "greeting: inside"
		}
		id := strings.ToLower(kind)
		x.deploys(t, "pass"+id, visitFlow("pass"+id, kind, `{title: Closed, description: inside, access: password, credential_id: door, `+schema+`}`))
		v := x.visitor(t)
		closed := v.get(t, base+"pass"+id)
		says(t, closed, http.StatusUnauthorized, `type="password"`)
		if strings.Contains(string(closed.body), "inside") {
			t.Errorf("it shows what is inside: %s", closed.body)
		}
		says(t, v.post(t, base+"pass"+id+"?do=enter", url.Values{"password": {"wrong"}}), http.StatusUnauthorized, "The password is wrong.")
		says(t, v.post(t, base+"pass"+id, url.Values{"q0": {"x"}, "form_id": {"x"}}), http.StatusUnauthorized)
		says(t, v.get(t, base+"pass"+id+"?view=messages"), http.StatusUnauthorized)
		a := v.post(t, base+"pass"+id+"?do=enter", url.Values{"password": {secret}})
		same(t, a.status, http.StatusSeeOther)
		says(t, v.get(t, base+"pass"+id), http.StatusOK, "inside")
		for _, c := range a.header.Values("Set-Cookie") {
			if strings.Contains(c, secret) || !strings.Contains(c, "HttpOnly") || !strings.Contains(c, "SameSite=Lax") || !strings.Contains(c, "Path="+base+"pass"+id) {
				t.Errorf("cookie %s", c)
			}
		}
		// What a page of another site sends is refused.
		v.header["Sec-Fetch-Site"] = "cross-site"
		says(t, v.post(t, base+"pass"+id, url.Values{"q0": {"x"}}), http.StatusForbidden)

		x.deploys(t, "users"+id, visitFlow("users"+id, kind, `{title: Ours, access: users, roles: [operator, editor], `+schema+`}`))
		v = x.visitor(t)
		a = v.get(t, base+"users"+id)
		same(t, fmt.Sprint(a.status, a.header.Get("Location")), "303/login?next="+url.QueryEscape(base+"users"+id))
		for user, status := range map[string]int{"operator": 200, "editor": 200, "admin": 200, "viewer": 403, "approver": 403, "stranger": 404} { // order does not matter: each is another visitor
			in := x.visitor(t)
			b := in.post(t, "/login", url.Values{"token": {x.tokens[user]}, "next": {base + "users" + id}})
			same(t, fmt.Sprint(b.status, b.header.Get("Location")), "303"+base+"users"+id)
			if got := in.get(t, base+"users"+id); got.status != status {
				t.Errorf("%s %s: %d, want %d", kind, user, got.status, status)
			}
		}
	}
	in := x.visitor(t)
	in.post(t, "/login", url.Values{"token": {x.tokens["operator"]}})
	says(t, in.send(t, "/forms/usersform", url.Values{"q0": {"me"}}), http.StatusOK)
	same(t, x.payloads(t, "usersform")[0].Get("user_id").Str, "operator")
	// The id of a form that somebody else was shown is of no use.
	other := x.visitor(t)
	other.post(t, "/login", url.Values{"token": {x.tokens["editor"]}})
	says(t, other.post(t, "/forms/usersform", url.Values{"q0": {"me"}, "form_id": {in.ticket(t, "/forms/usersform")}}), http.StatusConflict)
	// Nor is it where two know the same password.
	var known [2]*visitor
	for n := range known {
		known[n] = x.visitor(t)
		known[n].post(t, "/forms/passform?do=enter", url.Values{"password": {secret}})
	}
	lent := url.Values{"q0": {"me"}, "form_id": {known[0].ticket(t, "/forms/passform")}}
	known[1].get(t, "/forms/passform")
	says(t, known[1].post(t, "/forms/passform", lent), http.StatusConflict)
	says(t, known[0].post(t, "/forms/passform", lent), http.StatusOK)
	for _, next := range []string{"https://evil.example/forms/", "//evil.example/forms/x", `/\evil.example`, "/api/v1/users", "/forms/../api/v1/users", "javascript:alert(1)"} {
		if a := in.post(t, "/login", url.Values{"token": {x.tokens["operator"]}, "next": {next}}); a.header.Get("Location") != "/" {
			t.Errorf("%q leads to %q", next, a.header.Get("Location"))
		}
	}
}

func TestVisitors_Embedding(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	for id, config := range map[string]string{"open": `allowed_origins: ["https://www.example.com", "http://localhost:3000"], `, "closed": ""} { // order does not matter: each is for itself
		x.deploys(t, id, visitFlow(id, "FORM", `{`+config+oneField+`}`, "  - {id: talk, name: talk, description: d, type: TRIGGER, subtype: CHAT, configurations: {"+strings.TrimSuffix(config, ", ")+"}}\n", "  []\n"))
		for _, path := range []string{"/forms/", "/chat/"} {
			a := x.visitor(t).get(t, path+id)
			policy, frames := a.header.Get("Content-Security-Policy"), a.header.Get("X-Frame-Options")
			if strings.Contains(policy, "unsafe") || !strings.HasPrefix(policy, "default-src 'none'; ") || strings.Contains(policy, "script-src") != (path == "/chat/") {
				t.Error(policy)
			}
			switch id {
			case "open":
				if !strings.Contains(policy, "frame-ancestors https://www.example.com http://localhost:3000") || frames != "" {
					t.Errorf("%s %q", policy, frames)
				}
			default:
				if !strings.Contains(policy, "frame-ancestors 'none'") || frames != "DENY" {
					t.Errorf("%s %q", policy, frames)
				}
			}
		}
	}
}

func TestVisitors_Limits(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := &now
	x := openSite(t, func(o *server.Options) { o.Now = func() time.Time { return *clock } })
	x.deploys(t, "few", visitFlow("few", "FORM", `{visitor_limit: 2, visitor_limit_seconds: 100, `+oneField+`}`))
	x.deploys(t, "fewer", visitFlow("fewer", "CHAT", `{visitor_limit: 2, visitor_limit_seconds: 100}`))
	form := x.visitor(t)
	for n := range 2 {
		says(t, form.send(t, "/forms/few", url.Values{"q0": {fmt.Sprint(n)}}), http.StatusOK)
		now = now.Add(30 * time.Second)
	}
	a := form.send(t, "/forms/few", url.Values{"q0": {"more"}})
	says(t, a, http.StatusTooManyRequests, "Please wait a moment")
	same(t, a.header.Get("Retry-After"), "40") // the window slides: the first was 60 seconds ago
	says(t, form.send(t, "/forms/few", url.Values{"q0": {""}}), http.StatusUnprocessableEntity)
	now = now.Add(40 * time.Second)
	says(t, form.send(t, "/forms/few", url.Values{"q0": {"more"}}), http.StatusOK)
	same(t, x.executionsOf(t, "few"), 3)

	// Each visitor of a chat has a limit, and all of an address have five times as much.
	sent := 0
	for range 6 {
		v := x.visitor(t)
		v.get(t, "/chat/fewer")
		for n := range 3 {
			a := v.says(t, "/chat/fewer", fmt.Sprint("m", n), "hello")
			if a.status == http.StatusAccepted {
				sent++
			} else if a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") == "" {
				t.Errorf("%d %s", a.status, a.body)
			}
		}
	}
	same(t, sent, 10)
	same(t, x.executionsOf(t, "fewer"), 10)
}

// Who guesses the password of a page from an address locks out nobody who comes from there with a token, and the other way round.
func TestVisitors_GuessesApart(t *testing.T) {
	t.Parallel()
	token := func(x *site, secret string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, x.url+"/users/me", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+secret)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		return answer.StatusCode
	}
	open := func() (*site, *visitor) {
		x := openSite(t)
		x.keep(t, "door", "webhook_secret", `{"secret":"canary-Zq8Lw2Vt9Rk4Xp7Nd3"}`)
		x.deploys(t, "shut", visitFlow("shut", "FORM", `{access: password, credential_id: door, `+oneField+`}`))
		return x, x.visitor(t)
	}
	enter := func(v *visitor, password string) int {
		return v.post(t, "/forms/shut?do=enter", url.Values{"password": {password}}).status
	}
	x, v := open()
	for n := range route.WrongSecrets + 1 {
		enter(v, fmt.Sprint("wrong ", n))
	}
	same(t, enter(v, "canary-Zq8Lw2Vt9Rk4Xp7Nd3"), http.StatusTooManyRequests)
	same(t, token(x, x.tokens["viewer"]), http.StatusOK) // it was not shown before
	same(t, token(x, "wrong"), http.StatusUnauthorized)

	x, v = open()
	for n := range route.WrongSecrets + 1 {
		token(x, fmt.Sprint("wrong-", n))
	}
	same(t, token(x, x.tokens["viewer"]), http.StatusTooManyRequests)
	same(t, enter(v, "canary-Zq8Lw2Vt9Rk4Xp7Nd3"), http.StatusSeeOther)
}
