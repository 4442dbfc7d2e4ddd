package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"mime"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-smtp"
	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/engine"
	"tandem/identity"
	"tandem/templates"
	"tandem/workflow"
)

const templatesDir = "../templates"

// templateRun is one run of a template: what it is started with, what the world answers, and what people do. What the world was asked is
// compared with a file in testdata.
type templateRun struct {
	// name is that of the run, template is what runs.
	name, template string
	// before is a workflow that makes what must be there: rows, documents. It runs first.
	before  string
	trigger string
	inputs  string
	// model are the answers of the model, in order.
	model []string
	// web are the answers of services by "METHOD /service/path".
	web map[string]string
	// people answer questions, in order: "user answer".
	people []string
}

// TestTemplates_Recorded runs every template on the real engine, with services and a model on this machine that speak as the real ones do,
// and compares what they were asked, what people saw and which way it went with what is recorded. The recorded run is then played with the
// template as it is now. "go test ./app -run TestTemplates_Recorded -update" records anew.
func TestTemplates_Recorded(t *testing.T) {
	t.Parallel()
	list, err := templates.List()
	if err != nil {
		t.Fatal(err)
	}
	runs := templateRuns()
	for _, one := range list {
		if !slices.ContainsFunc(runs, func(r templateRun) bool { return r.template == one.Name }) {
			t.Errorf("the template %q is never run", one.Name)
		}
	}
	p := newPlayer(t)
	for _, r := range runs {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			x, w := openSite(t), newTemplateWorld(t, r)
			w.setUp(t, x)
			told, recorded := w.play(t, x)
			golden, kept := filepath.Join(templatesDir, "testdata", r.name+".txt"), filepath.Join(templatesDir, "testdata", r.name+".tandem.json")
			if *updateNodes {
				if err := os.WriteFile(golden, []byte(told), 0o644); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(kept, recorded, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if told != string(want) {
				t.Errorf("it went\n%s\nrecorded is\n%s", told, want)
			}
			p.Check(t, kept, stagedAsRecorded(t, kept, r.template))
		})
	}
}

// templateWorld is all that is outside of a run.
type templateWorld struct {
	run templateRun
	url string

	mu sync.Mutex
	// asked is what services were asked, by service.
	asked map[string][]string
	model int
	tools *toolbox
}

func newTemplateWorld(t *testing.T, r templateRun) *templateWorld {
	t.Helper()
	w := &templateWorld{run: r, asked: map[string][]string{}}
	service := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) { w.serve(t, out, in) }))
	t.Cleanup(service.Close)
	w.url = service.URL
	return w
}

func (w *templateWorld) note(service, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked[service] = append(w.asked[service], w.mask(fmt.Sprintf(format, args...)))
}

// serve is every service that is reached over HTTP; the first part of the path says which.
func (w *templateWorld) serve(t *testing.T, out http.ResponseWriter, in *http.Request) {
	body, err := io.ReadAll(in.Body)
	if err != nil {
		t.Error(err)
	}
	name, path, _ := strings.Cut(strings.TrimPrefix(in.URL.Path, "/"), "/")
	wrote := func(kind, text string) {
		out.Header().Set("Content-Type", kind)
		if _, err := io.WriteString(out, text); err != nil {
			t.Error(err)
		}
	}
	switch name {
	case "model":
		w.complete(t, wrote, in, body)
	case "slack":
		form, err := http.NewRequest(in.Method, "http://slack", bytes.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		form.Header = in.Header
		if in.Header.Get("Authorization") != "Bearer xoxb-of-the-tests" || form.ParseForm() != nil {
			wrote("application/json", `{"ok":false,"error":"invalid_auth"}`)
			return
		}
		w.note("slack", "%s %s: %s", path, form.PostForm.Get("channel"), form.PostForm.Get("text"))
		wrote("application/json", `{"ok":true,"channel":"C1","ts":"1700000000.000100","message":{"text":`+quotedJSON(form.PostForm.Get("text"))+`}}`)
	default:
		w.note(name, "%s %s %s", in.Method, strings.TrimPrefix(in.URL.RequestURI(), "/"+name), body)
		answer, ok := w.run.web[in.Method+" "+in.URL.Path]
		if !ok {
			http.Error(out, `{"message":"Not Found"}`, http.StatusNotFound)
			return
		}
		kind := "application/json"
		if strings.HasPrefix(answer, "<") {
			kind = "text/html"
		}
		wrote(kind, answer)
	}
}

// complete is the chat API that most models are reached by.
func (w *templateWorld) complete(t *testing.T, wrote func(kind, text string), in *http.Request, body []byte) {
	q := gjson.ParseBytes(body)
	if in.URL.Path != "/model/v1/chat/completions" || in.Header.Get("Authorization") != "Bearer sk-of-the-tests" {
		t.Errorf("the model was asked %s by %q", in.URL.Path, in.Header.Get("Authorization"))
	}
	for _, m := range q.Get("messages").Array() {
		w.note("model", "%s: %s", m.Get("role").Str, m.Get("content").Str)
	}
	w.mu.Lock()
	n := w.model
	w.model++
	w.mu.Unlock()
	if n >= len(w.run.model) {
		t.Errorf("the model is asked %d times: %s", n+1, body)
		return
	}
	const usage = `"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}`
	said := quotedJSON(w.run.model[n])
	if !q.Get("stream").Bool() {
		wrote("application/json", `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":`+said+`},"finish_reason":"stop"}],`+usage+`}`)
		return
	}
	const head = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[`
	wrote("text/event-stream", head+`{"index":0,"delta":{"role":"assistant","content":`+said+`}}]}`+"\n\n"+head+`{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\n"+head+`],`+usage+"}\n\ndata: [DONE]\n\n")
}

func quotedJSON(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		return `""` // texts can be written
	}
	return string(raw)
}

// setUp gives the workspace what the template needs.
func (w *templateWorld) setUp(t *testing.T, x *site) {
	t.Helper()
	one, _, err := templates.Read(w.run.template)
	if err != nil {
		t.Fatal(err)
	}
	port := 0
	for _, n := range one.Needs {
		name := n.Name
		switch n.Sort + n.Type {
		case "credentialslack_bot":
			x.keep(t, name, n.Type, `{"token":"xoxb-of-the-tests","base_url":"`+w.url+`/slack"}`)
		case "credentialgithub_token":
			x.keep(t, name, n.Type, `{"token":"ghp-of-the-tests","base_url":"`+w.url+`/github"}`)
		case "credentialhttp_auth":
			x.keep(t, name, n.Type, `{"scheme":"bearer","token":"of-the-tests-0123456789"}`)
		case "credentialwebhook_secret":
			x.keep(t, name, n.Type, `{"secret":"5b0f63a1c9d24e7786f2"}`)
		case "credentialimap":
			x.keep(t, name, n.Type, `{"host":"127.0.0.1","port":1,"security":"none","username":"u","password":"p"}`)
		case "credentialsmtp":
			if port == 0 {
				port = w.postOffice(t)
			}
			x.keep(t, name, n.Type, fmt.Sprintf(`{"host":"127.0.0.1","port":%d,"security":"none"}`, port))
		case "credentialsql":
			x.keep(t, name, n.Type, `{"driver":"sqlite","dsn":"`+w.run.name+`.db"}`)
		case "profile":
			key := x.keepCredential(t, "model-key", "openai", "sk-of-the-tests")
			x.putProfile(t, name, `{"provider":"openai","model":"m","base_url":"`+w.url+`/model/v1","credential_id":"`+key+`"}`)
		case "server":
			w.tools = forecastTools(t, nil)
			if err := x.stores.MCPServers.Put(t.Context(), identity.System("default"), w.tools.server(t, name).WithDefaults()); err != nil {
				t.Fatal(err)
			}
			want[api.MCPTools](t, x.call(t, "operator", "POST", "/mcp/servers/"+name+"/activate", nil), http.StatusOK)
		default:
			t.Fatalf("nothing stands for %+v", n)
		}
	}
	if w.run.before != "" {
		saved := x.save(t, w.staged(w.run.before))
		x.reaches(t, x.execute(t, saved.Workflow.ID, api.ExecuteRequest{}), engine.StatusSuccess)
	}
}

// templateService is the address of a service in a template.
var templateService = regexp.MustCompile(`https://([a-z]+)\.example\.com`)

// staged is a definition with the services of this run, unstaged the reverse for what is told.
func (w *templateWorld) staged(text string) string {
	return templateService.ReplaceAllString(text, w.url+"/$1")
}

func (w *templateWorld) unstaged(text string) string {
	return regexp.MustCompile(regexp.QuoteMeta(w.url)+`/([a-z]+)`).ReplaceAllString(text, "https://$1.example.com")
}

// play runs the template to its end, and tells how it went and what is recorded of it.
func (w *templateWorld) play(t *testing.T, x *site) (told string, recorded []byte) {
	t.Helper()
	_, text, err := templates.Read(w.run.template)
	if err != nil {
		t.Fatal(err)
	}
	saved := x.save(t, w.staged(string(text)))
	for _, p := range saved.Problems {
		t.Errorf("saving it warns: %s: %s", p.Path, p.Message)
	}
	id := x.execute(t, saved.Workflow.ID, api.ExecuteRequest{TriggerNode: w.run.trigger, Inputs: json.RawMessage(strings.ReplaceAll(w.run.inputs, "$URL", w.url))})
	var people []string
	for _, one := range w.run.people {
		user, answer, _ := strings.Cut(one, " ")
		q := x.opens(t, id, 1)[0]
		people = append(people, w.mask(fmt.Sprintf("%s: %s\n%s\n%s: %s", q.NodeID, q.Title, gjson.GetBytes(q.RequestData, "@ugly"), user, answer)))
		want[api.Interaction](t, x.respond(t, user, q.ID, answer), http.StatusOK)
	}
	x.reaches(t, id, engine.StatusSuccess)
	if w.model != len(w.run.model) {
		t.Errorf("the model was asked %d times, not %d", w.model, len(w.run.model))
	}
	if w.tools != nil {
		w.asked["tools"] = w.tools.made()
	}
	var b strings.Builder
	for _, service := range slices.Sorted(maps.Keys(w.asked)) {
		fmt.Fprintf(&b, "== %s\n%s\n", service, strings.Join(w.asked[service], "\n"))
	}
	fmt.Fprintf(&b, "== people\n%s\n== nodes\n", strings.Join(people, "\n"))
	nodes := x.read(t, id).NodeExecutions
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		fmt.Fprintf(&b, "%s %s %s\n", name, nodes[name].Status, strings.Join(slices.Sorted(maps.Keys(nodes[name].OutputData)), " "))
	}
	f, report, err := x.Record(t.Context(), identity.System("default"), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range report.Differences {
		t.Errorf("at once: %s", d)
	}
	if recorded, err = f.Encode(); err != nil {
		t.Fatal(err)
	}
	return b.String(), recorded
}

// stagedAsRecorded is a file with the template as it is now and the addresses of services that a recorded run has.
func stagedAsRecorded(t *testing.T, recorded, template string) string {
	t.Helper()
	run, err := os.ReadFile(recorded)
	if err != nil {
		t.Fatal(err)
	}
	_, text, err := templates.Read(template)
	if err != nil {
		t.Fatal(err)
	}
	w := templateWorld{url: regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(string(run))}
	file := filepath.Join(t.TempDir(), "template.yaml")
	if err := os.WriteFile(file, []byte(w.staged(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// volatile are the parts of what is said that are different each time.
var volatile = []struct {
	is *regexp.Regexp
	as string
}{
	{regexp.MustCompile(`20\d\d-\d\d-\d\dT[0-9:.]+Z`), "TIME"},
	{regexp.MustCompile(`<!-- tandem [^ ]+ -->`), "<!-- tandem MARK -->"},
}

func (w *templateWorld) mask(text string) string {
	text = w.unstaged(text)
	for _, v := range volatile {
		text = v.is.ReplaceAllString(text, v.as)
	}
	return text
}

// postOffice takes mail without a login, as relays inside of a network do.
func (w *templateWorld) postOffice(t *testing.T) int {
	t.Helper()
	office := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &templatePost{world: w, t: t}, nil }))
	office.Domain, office.ErrorLog = "mx.example.com", log.New(io.Discard, "", 0)
	return serveMail(t, office.Serve, office.Close)
}

// templatePost is one connection to it.
type templatePost struct {
	world *templateWorld
	t     *testing.T
	to    []string
}

func (s *templatePost) Mail(string, *smtp.MailOptions) error { return nil }
func (s *templatePost) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.to = append(s.to, to)
	return nil
}
func (s *templatePost) Reset()        { s.to = nil }
func (s *templatePost) Logout() error { return nil }

func (s *templatePost) Data(r io.Reader) error {
	m, err := mail.ReadMessage(r)
	if err != nil {
		return err
	}
	text, err := plainPart(m)
	if err != nil {
		return err
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	if err != nil {
		return err
	}
	kind, _, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	s.world.note("mail", "from %s to %s: %s (%s)\n%s", m.Header.Get("From"), strings.Join(s.to, ", "), subject, kind, strings.TrimSpace(text))
	return err
}

// TestTemplates_Needs: what a template says that it needs is what its definition names, and a template is valid without warnings.
func TestTemplates_Needs(t *testing.T) {
	t.Parallel()
	list, err := templates.List()
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 12 {
		t.Errorf("there are %d templates", len(list))
	}
	files, err := filepath.Glob(filepath.Join(templatesDir, "*.yaml"))
	if err != nil || len(files) != len(list) {
		t.Errorf("%d templates have %d files, %v", len(list), len(files), err)
	}
	for _, one := range list {
		if one.Title.En == "" || one.Title.Zh == "" || one.Description.En == "" || one.Description.Zh == "" {
			t.Errorf("%s is not told in both languages", one.Name)
		}
		_, text, err := templates.Read(one.Name)
		if err != nil {
			t.Fatal(err)
		}
		source, problems := workflow.Parse(text, workflow.Options{Kinds: sharedKinds()})
		for _, p := range problems {
			t.Errorf("%s: %s: %s", one.Name, p.Path, p.Message)
		}
		if source == nil {
			continue
		}
		named, said := map[string]bool{}, map[string]bool{}
		for _, n := range source.Definition.Nodes {
			for field, sort := range map[string]string{"credential_id": "credential", "imap_credential_id": "credential", "profile_id": "profile", "server_id": "server"} {
				if name := gjson.GetBytes(n.Configurations, field).Str; name != "" {
					named[sort+" "+name] = true
				}
			}
		}
		for _, n := range one.Needs {
			said[n.Sort+" "+n.Name] = true
			if (n.Type == "") == (n.Sort == "credential") {
				t.Errorf("%s: the type of %+v", one.Name, n)
			}
			if head, _, _ := strings.Cut(string(text), "metadata:"); !strings.Contains(head, `"`+n.Name+`"`) || !strings.Contains(head, n.Type) {
				t.Errorf("%s: its first lines do not name %+v", one.Name, n)
			}
		}
		if !maps.Equal(named, said) {
			t.Errorf("%s names %v, and says that it needs %v", one.Name, named, said)
		}
	}
	if _, _, err := templates.Read("none"); err == nil || !strings.Contains(err.Error(), `"issue_triage"`) {
		t.Errorf("a template that does not exist: %v", err)
	}
}

// TestTemplates_API: the templates are listed and read by everybody who may read, and what is read can be saved.
func TestTemplates_API(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	list := want[api.WorkflowTemplates](t, x.call(t, "viewer", "GET", "/workflow-templates", nil), http.StatusOK).Templates
	if len(list) != 12 || list[0].Definition != "" {
		t.Fatalf("listed are %+v", list)
	}
	for _, one := range list {
		got := want[api.WorkflowTemplate](t, x.call(t, "viewer", "GET", "/workflow-templates/"+one.Name, nil), http.StatusOK)
		if got.Title != one.Title || !strings.HasPrefix(got.Definition, "#") {
			t.Errorf("%s reads as %+v", one.Name, got)
		}
		if saved := x.save(t, got.Definition); saved.Workflow.Name != one.Name {
			t.Errorf("%s is saved as %+v", one.Name, saved.Workflow)
		}
	}
	refused(t, x.call(t, "viewer", "GET", "/workflow-templates/none", nil), http.StatusNotFound, "not_found")
}
