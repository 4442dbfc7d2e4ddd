package app

import (
	"cmp"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"tandem/agent"
	"tandem/api"
	"tandem/engine"
	"tandem/identity"
	"tandem/llm"
	"tandem/node"
	"tandem/payload"
	"tandem/store"
	"tandem/workflow"
)

// TestKinds_Examples runs the examples of all kinds: each is valid as it is printed, gives the output that it says, and what it reads and
// what comes out is described. What an example names (a model profile, a credential, an address) is there under this name, each with a
// service of its own that replies as the example says.
func TestKinds_Examples(t *testing.T) {
	t.Parallel()
	b := newExampleBench(t)
	for _, k := range theKinds().List() {
		if k.About.Name == agent.TaskKind {
			continue // agents are made of it, people are not to
		}
		if len(k.About.Examples) == 0 {
			t.Errorf("%s has no example; add one to what the kind says of itself (Examples of node.About)", k.About.Name)
		}
		for i, example := range k.About.Examples {
			t.Run(fmt.Sprintf("%s_%d", k.About.Name, i+1), func(t *testing.T) {
				t.Parallel()
				b.check(t, k, example)
			})
		}
	}
}

// exampleBench is where examples run: one instance with people, channels, tools and a service that replies.
type exampleBench struct {
	*mediaBench
	service *httptest.Server
	mu      sync.Mutex
	runs    int
	replies map[string][]string // what is left to reply, by run
}

func newExampleBench(t *testing.T) *exampleBench {
	scripts, err := ParseScripts("bash", "")
	if err != nil {
		t.Fatal(err)
	}
	b := &exampleBench{replies: map[string][]string{}}
	b.mediaBench = newMediaBench(t, func(o *Options) {
		o.Scripts = scripts
		dir := filepath.Join(o.Dir, "files", "default", "reports")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "june.txt"), []byte("Sales: 1200\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	b.service = httptest.NewServer(http.HandlerFunc(b.serve))
	t.Cleanup(b.service.Close)
	b.save(t, `{metadata: {id: greeting, name: greeting, description: d}, nodes: [{id: hello, name: hello, description: d, type: ACTION, subtype: DATA_FORMATTING, configurations: {format_type: template, template: "Hello {{name}}"}}], connections: []}`)
	b.tools(t)
	return b
}

// tools starts the tool server "weather", a process of its own.
func (b *exampleBench) tools(t *testing.T) {
	t.Helper()
	box := newToolbox(t, func(toolCall, <-chan struct{}) toolReply { return toolReply{Text: `{"degrees":21}`} },
		toolDefinition{Name: "forecast", Description: "Tells the weather of a city.", Schema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}}}`), ReadOnly: true})
	if err := b.stores.MCPServers.Put(t.Context(), identity.System("default"), box.server(t, "weather").WithDefaults()); err != nil {
		t.Fatal(err)
	}
	if a := b.call(t, "operator", "POST", "/mcp/servers/weather/activate", api.MCPActivate{}); a.status >= 300 {
		t.Fatalf("answer %d %s", a.status, a.body)
	}
}

// serve replies to every call that is made in the name of a run, by the protocol of the address that is called.
func (b *exampleBench) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header()["Date"] = nil // it would differ from run to run
	key, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if strings.Contains(path, "embed") {
		b.embed(w, body)
		return
	}
	b.mu.Lock()
	reply, left := "", b.replies[key]
	if len(left) > 0 {
		reply = left[0]
	}
	if len(left) > 1 {
		b.replies[key] = left[1:] // the last one is said again
	}
	b.mu.Unlock()
	switch {
	case strings.HasPrefix(path, "model/"):
		sayAs(w, strings.TrimPrefix(path, "model/"), body, "replies "+reply, "")
	case json.Valid([]byte(reply)):
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, reply)
	default:
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprint(w, reply)
	}
}

// exampleAddress is the service of examples.
const exampleAddress = "https://api.example.com"

// names turn what stands in examples into what stands for it in a run, and back.
func (b *exampleBench) names(t *testing.T, k node.Kind, example node.Example, key string) (there, back *strings.Replacer) {
	t.Helper()
	at := b.service.URL + "/" + key
	to, from := []string{exampleAddress, at, `"api.example.com"`, `"127.0.0.1"`}, []string{at, exampleAddress}
	named := func(name, id string) {
		to, from = append(to, `"`+name+`"`, `"`+id+`"`), append(from, `"`+id+`"`, `"`+name+`"`)
	}
	if strings.Contains(example.Config, `"writer"`) {
		named("writer", "writer-"+key)
		p := llm.Profile{ID: "writer-" + key, Provider: "openai", Model: "m", EmbeddingModel: "e", BaseURL: at + "/model"}
		if provider := b.parts.Providers[strings.Join(k.About.Needs.Credential, "")]; !provider.Turns.IsZero() {
			p.Provider = provider.Name
		}
		if k.About.Name == "AI_AGENT.MCP_AGENT" {
			p = newMind(t, nil, func(d decided) any {
				if d.name == "summary" {
					return example.Replies[0]
				}
				return nil
			}).profile(p.ID)
		}
		b.saveProfile(t, p)
	}
	credentials := map[string]objectStoreCredential{
		"api_token":  {"http_auth", map[string]any{"scheme": "bearer", "token": "t", "allowed_hosts": []string{"127.0.0.1"}}},
		"orders_db":  {"sql", map[string]any{"driver": "sqlite", "dsn": key + ".db"}},
		"web_search": {"search", map[string]any{"provider": "searxng", "base_url": at}},

		"invoice_mailbox": {"imap", map[string]any{"host": "127.0.0.1", "username": "u", "password": "p"}},
		"github_acme":     {"github_token", map[string]any{"webhook_secret": "8WkzPqLr3mNvT6yB", "token": "canary-token", "base_url": at}},
		"jira_acme":       {"jira", map[string]any{"token": "canary-token", "email": "a@example.com", "base_url": at}},
		"trello_acme":     {"trello", map[string]any{"key": "canary-key", "token": "canary-token", "base_url": at}},
		"aws_acme":        {"aws_keys", map[string]any{"access_key_id": "AKIDEXAMPLE", "secret_access_key": "canary-token", "region": "eu-west-1", "base_url": at}},
		"azure_acme":      {"azure", map[string]any{"function_key": "canary-token", "base_url": at}},
		"gcp_acme":        {"gcp_service_account", map[string]any{"key": robotKey(), "token_uri": at + "/token", "base_url": at}},
		"airtable_acme":   {"airtable", map[string]any{"token": "canary-token", "base_url": at}},
		"team_calendar":   {"caldav", map[string]any{"url": at + "/", "username": "u", "password": "canary-password"}},
		"orders_service":  {"service", map[string]any{"base_url": at, "endpoints": []any{map[string]any{"name": "getOrder", "path": "/orders/{id}"}}}},
		"notion_acme":     {"notion", map[string]any{"token": "canary-token", "base_url": at}},
		"google_acme":     {"google_oauth", map[string]any{"token": "canary-token", "base_url": at}},
		"microsoft_acme":  {"microsoft_oauth", map[string]any{"token": "canary-token", "base_url": at}},
		"gitlab_acme":     {"gitlab_token", map[string]any{"token": "canary-token", "base_url": at}},
	}
	for name, c := range credentials { // order does not matter: each stands for itself
		if strings.Contains(example.Config, `"`+name+`"`) {
			named(name, want[api.Credential](t, b.call(t, "admin", "POST", "/credentials", map[string]any{"name": name + key, "type": c.kind, "data": c.data}), http.StatusCreated).ID)
		}
	}
	for name, stands := range map[string]string{"$SMTP": "team_mailbox", "$IMAP": "team_inbox", "$HOOK": "partner_secret", "$BOT_S": "slack_bot", "$BOT_D": "discord_bot", "$BOT_T": "telegram_bot", "$BOT_M": "teams_bot"} { // order does not matter either
		named(stands, b.stand[slices.Index(b.stand, name)+1])
	}
	return strings.NewReplacer(to...), strings.NewReplacer(from...)
}

// check runs an example and compares.
func (b *exampleBench) check(t *testing.T, k node.Kind, example node.Example) {
	t.Helper()
	if example.Shows.Words("en") == "" || example.Shows.Words("zh") == "" {
		t.Errorf("it does not say in both languages what it shows")
	}
	b.valid(t, k, example)
	b.mu.Lock()
	b.runs++
	key := fmt.Sprintf("example%dx", b.runs)
	b.replies[key] = example.Replies
	b.mu.Unlock()
	names, back := b.names(t, k, example, key)
	if strings.Contains(example.Config, `"orders_db"`) {
		b.prepare(t, key, names.Replace(`type: ACTION, subtype: DATABASE_OPERATION, configurations: {"credential_id": "orders_db", "operation": "transaction", "statements": ["create table orders (id integer primary key, customer text, total real)", "insert into orders values (1, 'Ann', 120), (2, 'Bob', 80)"]}`))
	}
	b.save(t, names.Replace(exampleFlow(k, example, key)))
	id := b.execute(t, key, api.ExecuteRequest{Inputs: json.RawMessage(given(k, example))})
	b.rests(t, key, id, false)
	if strings.HasPrefix(k.About.Name, "HUMAN_IN_THE_LOOP.") {
		b.answers(t, k, example, id)
	}
	e := b.read(t, id)
	if e.Status != string(engine.StatusSuccess) {
		t.Fatalf("the execution is %s: %+v; %+v", e.Status, e.Error, e.NodeExecutions["n"].Error)
	}
	got, err := payload.Encode(e.NodeExecutions["n"].OutputData)
	if err != nil {
		t.Fatal(err)
	}
	text := back.Replace(string(got))
	wanted := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(example.Output), &wanted); err != nil {
		t.Fatal(err)
	}
	for name, payload := range wanted { // order does not matter: none is the same as one that is the same as another
		if same, ok := strings.CutPrefix(gjson.ParseBytes(payload).Str, node.SameAs); ok {
			wanted[name] = wanted[same]
		}
	}
	whole, err := payload.Encode(wanted)
	if err != nil {
		t.Fatal(err)
	}
	if problem := unequal("output", gjson.ParseBytes(whole), gjson.Parse(text)); problem != "" {
		t.Errorf("%s\nit gives %s", problem, text)
	}
	b.described(t, k, example, gjson.Parse(text))
}

// given is what the execution is started with: the input of a trigger, else nothing.
func given(k node.Kind, example node.Example) string {
	if example.Input == "" || !strings.HasPrefix(k.About.Name, "TRIGGER.") {
		return "{}"
	}
	return example.Input
}

// valid says that nothing is wrong with the node as it is printed.
func (b *exampleBench) valid(t *testing.T, k node.Kind, example node.Example) {
	t.Helper()
	for name, text := range map[string]string{"configurations": example.Config, "input": cmp.Or(example.Input, "{}"), "output": example.Output} { // order does not matter: each is a problem of its own
		if name != "configurations" && text == "" {
			continue
		}
		if !json.Valid([]byte(text)) {
			t.Fatalf("its %s are not JSON: %s", name, text)
		}
	}
	known, _ := Kinds().Kind(k.About.Name)
	typ, subtype, _ := strings.Cut(k.About.Name, ".")
	if _, problems := known.Plan(&workflow.Node{ID: "n", Name: "n", Type: typ, Subtype: subtype, Configurations: json.RawMessage(example.Config)}); len(problems) > 0 {
		t.Errorf("it is not valid: %+v", problems)
	}
}

// exampleFlow is a workflow around an example. What a kind runs as its body hands on what it is given.
func exampleFlow(k node.Kind, example node.Example, key string) string {
	n := "  - {id: n, name: n, description: d, " + nodeOf(k.About.Name, example.Config)
	head := "metadata: {id: " + key + ", name: n, description: d}\nnodes:\n"
	if strings.HasPrefix(k.About.Name, "TRIGGER.") {
		return head + n + "}\nconnections: []\n"
	}
	const pass = "type: CALL, subtype: EMPTY, configurations: {pass_through: true}"
	nodes, lines := "  - {id: start, name: start, description: d, type: CALL, subtype: EMPTY}\n"+n, ""
	if len(example.Also) == 0 {
		if example.Input != "" {
			nodes += ", input_params: " + example.Input
		}
		lines = "  - {from_node: start, to_node: n}\n"
	}
	nodes += "}\n"
	for i, payload := range append([]string{example.Input}, example.Also...) {
		if len(example.Also) == 0 {
			break
		}
		id := []string{"first", "second", "third"}[i]
		nodes += "  - {id: " + id + ", name: " + id + ", description: d, " + pass + ", input_params: " + payload + "}\n"
		lines += "  - {from_node: start, to_node: " + id + "}\n  - {from_node: " + id + ", to_node: n}\n"
	}
	if body := k.About.Body; body != nil && !strings.Contains(example.Config, `"split_mode": "predicate"`) {
		nodes += "  - {id: body, name: body, description: d, " + pass + "}\n"
		lines += "  - {from_node: n, to_node: body, output_key: " + body.Entry + "}\n"
	}
	return head + nodes + "connections:\n" + lines
}

// prepare runs a node before an example.
func (b *exampleBench) prepare(t *testing.T, key, node string) {
	t.Helper()
	b.save(t, "metadata: {id: before_"+key+", name: n, description: d}\nnodes:\n  - {id: n, name: n, description: d, "+node+"}\nconnections: []\n")
	if e := b.read(t, b.execute(t, "before_"+key, api.ExecuteRequest{WaitSeconds: 60})); e.Status != string(engine.StatusSuccess) {
		t.Fatalf("what comes before the example is %s: %+v", e.Status, e.Error)
	}
}

// answers lets the person who is asked answer: in words, by the medium of the kind, or with the data of a form.
func (b *exampleBench) answers(t *testing.T, k node.Kind, example node.Example, execution string) {
	t.Helper()
	list := b.pending(t, execution)
	if len(list) != 1 || len(example.Replies) != 1 {
		t.Fatalf("%d questions are open and there are %d replies: %+v", len(list), len(example.Replies), b.read(t, execution).Error)
	}
	q := list[0]
	b.settled(t, q)
	if reply := example.Replies[0]; strings.HasPrefix(reply, "{") {
		if a := b.respond(t, "operator", q.ID, reply); a.status != http.StatusOK {
			t.Fatalf("the answer is refused: %d %s", a.status, a.body)
		}
	} else {
		said := mediumOf(k.About.Name).person
		said.Account = store.Account{Workspace: "default", Channel: q.ChannelType, Credential: b.interaction(t, q.ID).Credential}
		said.Interaction, said.Verified, said.Text, said.Dedup = q.ID, true, reply, q.ID
		if got, err := b.desk.Receive(t.Context(), said); err != nil || !got.Ended {
			t.Fatalf("the answer is not taken: %+v, %v", got, err)
		}
	}
	b.ended(t, execution)
}

// described says that everything that an example is given and gives is told in both languages.
func (b *exampleBench) described(t *testing.T, k node.Kind, example node.Example, output gjson.Result) {
	t.Helper()
	told := func(what string, list []node.Value, value gjson.Result) {
		value.ForEach(func(name, _ gjson.Result) bool {
			if value.IsObject() && !slices.ContainsFunc(list, func(v node.Value) bool { return v.Name == name.Str || v.Name == "*" }) {
				t.Errorf("%s has the field %q, and nothing says what it means", what, name.Str)
			}
			return true
		})
	}
	for _, input := range append([]string{example.Input}, example.Also...) {
		told("the input", k.About.Inputs, gjson.Parse(input))
	}
	output.ForEach(func(key, payload gjson.Result) bool {
		i := slices.IndexFunc(k.About.Keys, func(one node.Key) bool { return one.Name == key.Str })
		if i < 0 {
			i = slices.IndexFunc(k.About.Keys, func(one node.Key) bool { return one.Name == node.AnyKey })
		}
		if i < 0 {
			t.Errorf("nothing says what comes out under %q", key.Str)
			return true
		}
		told("the payload of "+key.Str, k.About.Keys[i].Fields, payload)
		return true
	})
}

// unequal tells the first difference between what is expected and what there is; "…" is anything.
func unequal(at string, want, got gjson.Result) string {
	switch {
	case want.Str == "…":
		return ""
	case want.IsObject() && got.IsObject():
		w, g := want.Map(), got.Map()
		for _, name := range slices.Sorted(maps.Keys(w)) {
			if _, ok := g[name]; !ok {
				return fmt.Sprintf("%s has no %q", at, name)
			}
			if problem := unequal(at+"."+name, w[name], g[name]); problem != "" {
				return problem
			}
		}
		for _, name := range slices.Sorted(maps.Keys(g)) {
			if _, ok := w[name]; !ok {
				return fmt.Sprintf("%s has %q as well", at, name)
			}
		}
		return ""
	case want.IsArray() && got.IsArray():
		w, g := want.Array(), got.Array()
		if len(w) != len(g) {
			return fmt.Sprintf("%s has %d items, want %d", at, len(g), len(w))
		}
		for i := range w {
			if problem := unequal(fmt.Sprintf("%s[%d]", at, i), w[i], g[i]); problem != "" {
				return problem
			}
		}
		return ""
	case want.Type == got.Type && want.String() == got.String():
		return ""
	}
	return fmt.Sprintf("%s is %s, want %s", at, got.Raw, want.Raw)
}

// robotKey is the key of a service account, made once. read-only
var robotKey = sync.OnceValue(func() map[string]string {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	return map[string]string{"client_email": "robot@p.iam.gserviceaccount.com", "project_id": "acme-shop", "private_key_id": "k", "private_key": string(pem.EncodeToMemory(block))}
})
