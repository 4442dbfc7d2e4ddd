package server

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tandem/agent"
	"tandem/api"
	"tandem/credential"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/host/local"
	"tandem/human"
	"tandem/identity"
	"tandem/importer"
	"tandem/mcp"
	"tandem/metrics"
	"tandem/node"
	"tandem/revisions"
	"tandem/route"
	"tandem/store"
	"tandem/store/sqlite"
	"tandem/store/sqlite/sqlitetest"
	"tandem/text"
	"tandem/trigger"
	"tandem/workflow"
)

func TestMain(m *testing.M) {
	// A world is some megabytes of schemas, and there are hundreds: with room for some of them less is spent on collecting them.
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(1 << 30)
	os.Exit(m.Run())
}

// byHand is the source of the trigger that people start.
type byHand struct{}

func (byHand) Kind() string                                    { return "TRIGGER.MANUAL" }
func (byHand) Register(context.Context, trigger.Trigger) error { return nil }

// fewKinds is a catalogue of three kinds, enough to run something.
type fewKinds struct{}

func (fewKinds) Names() []string { return []string{"CALL.EMPTY", "CALL.TASK", "TRIGGER.MANUAL"} }

func (fewKinds) Alias(typ, subtype string) (string, bool) {
	name := strings.ToUpper(typ + "." + subtype)
	_, ok := fewKinds{}.Kind(name)
	return name, ok
}

func (fewKinds) Kind(name string) (workflow.Kind, bool) {
	if !slices.Contains(fewKinds{}.Names(), name) {
		return workflow.Kind{}, false
	}
	return workflow.Kind{Name: name, Plan: func(n *workflow.Node) (workflow.Plan, []workflow.Problem) {
		plan := workflow.Plan{Keys: []string{"result"}, KeyAliases: map[string]string{}, Effect: workflow.Pure, MaxRetries: 3, TimeoutMS: 420_000, OnError: workflow.OnErrorFail, OnUnknown: workflow.OnUnknownAsk}
		var config map[string]json.RawMessage
		if err := json.Unmarshal(n.Configurations, &config); len(n.Configurations) > 0 && err != nil {
			return plan, []workflow.Problem{{Severity: workflow.SeverityError, Code: "invalid_config", Path: "configurations", Message: "must be an object"}}
		}
		for field := range config {
			if field != "pass_through" && field != "template_id" && name != "CALL.TASK" {
				return plan, []workflow.Problem{{Severity: workflow.SeverityError, Code: "unknown_field", Path: "configurations." + field, Message: "is not a field"}}
			}
		}
		return plan, nil
	}}, true
}

// testKinds are those kinds as they run. A task answers with its question.
// testCredentials are types of credentials for tests: those of tool servers, of a chat and of the model that profiles name.
func testCredentials() credential.Types {
	bot := func(name string) credential.Type {
		return credential.Type{Name: name, Label: text.Beside("Bot", "机器人"), Fields: []credential.Field{credential.Token()}}
	}
	return credential.NewTypes(append(mcp.Credentials(), bot("slack_bot"), bot("telegram_bot"), bot("gitlab_token"))...)
}

func testKinds() []node.Kind {
	pass := func(name string) node.Kind {
		info := node.About{Name: name, Title: text.Beside("Empty", "空"), Description: text.Beside("Hands its input on", "无")}
		return node.Define(info, func(_ context.Context, _ *node.Call, _ struct {
			Pass bool `json:"pass_through"`
		}, in json.RawMessage) (json.RawMessage, error) {
			if name == "CALL.EMPTY" && gjson.GetBytes(in, "break").Bool() {
				panic("broken as it was told to")
			}
			return in, nil
		})
	}
	task := node.Define(node.About{Name: "CALL.TASK", Inner: true, Title: text.Beside("Task", "任务"), Description: text.Beside("Answers", "回答")},
		func(_ context.Context, _ *node.Call, _ agent.Spec, in struct {
			Question string `json:"question"`
		}) (map[string]string, error) {
			return map[string]string{"answer": "so " + in.Question}, nil
		})
	return []node.Kind{pass("CALL.EMPTY"), pass("TRIGGER.MANUAL"), task}
}

// world is a server on a store of its own, with one user per role in workspace "a" and an admin in workspace "b".
type world struct {
	codes  sync.Map // that were sent to addresses
	t      testing.TB
	server *Server
	http   *httptest.Server
	stores store.Stores
	desk   *human.Desk
	ring   *credential.Keyring
	// tokens are the secrets by role; other is that of the admin of workspace "b".
	tokens map[identity.Role]string
	other  string
	// clock is added to the time that the server sees.
	mu    sync.Mutex
	clock time.Duration
	ready error
	// fetched counts how often a revision was read from the store.
	fetched atomic.Int32
	// appended, when it is set, hears of rows that are on disk and not yet published.
	appended func([]*store.Append)
}

// countedWorkflows counts how often a revision is read.
type countedWorkflows struct {
	store.Workflows
	fetched *atomic.Int32
}

func (c countedWorkflows) Revision(ctx context.Context, p identity.Principal, id string, number int64) (store.Revision, error) {
	c.fetched.Add(1)
	return c.Workflows.Revision(ctx, p, id, number)
}

func (c countedWorkflows) RevisionByHash(ctx context.Context, p identity.Principal, id, hash string) (store.Revision, error) {
	c.fetched.Add(1)
	return c.Workflows.RevisionByHash(ctx, p, id, hash)
}

// toldJournal tells of what was appended to it.
type toldJournal struct {
	store.Journal
	w *world
}

// Append implements [store.Journal].
func (j toldJournal) Append(ctx context.Context, p identity.Principal, rows ...*store.Append) error {
	if err := j.Journal.Append(ctx, p, rows...); err != nil {
		return err
	}
	j.w.mu.Lock()
	appended := j.w.appended
	j.w.mu.Unlock()
	if appended != nil {
		appended(rows)
	}
	return nil
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.clock)
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock += d
}

func setup(t testing.TB, change ...func(*Options)) *world {
	t.Helper()
	dir := sqlitetest.Dir(t)
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, stores: db.Stores(), tokens: map[identity.Role]string{}}
	w.stores.Workflows = countedWorkflows{w.stores.Workflows, &w.fetched}
	hub, registry := host.NewHub(), &node.Registry{}
	registry.Register(testKinds()...)
	ready := revisions.New(revisions.Options{Workflows: w.stores.Workflows, Templates: w.stores.Templates, Blobs: w.stores.Blobs, Kinds: fewKinds{}, Registry: registry, ForFolds: local.Revision})
	numbers := metrics.New()
	driver, err := local.New(t.Context(), local.Options{
		Journal: toldJournal{w.stores.Journal, w}, Inbox: w.stores.Inbox, Timers: w.stores.Timers, Executions: w.stores.Executions, Blobs: w.stores.Blobs, Logs: w.stores.Logs,
		Revision: func(ctx context.Context, p identity.Principal, id, hash string) (*node.Revision, error) {
			r, err := ready.Pinned(ctx, p, id, hash)
			if err != nil {
				return nil, err
			}
			return r.Revision, nil
		},
		Child: func(ctx context.Context, p identity.Principal, id, revision string) (host.StartRequest, error) {
			r, _, err := ready.Request(ctx, p, id, revision)
			return r, err
		},
		Workers:   2,
		Reopening: func(ref store.Ref) func() { return hub.Changing(host.Ref(ref)) },
		Recorded: func(ref store.Ref, graph *workflow.Graph, row host.Row, _ []engine.Command) {
			hub.Publish(host.Ref(ref), row)
			numbers.Recorded(row, graph)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	if w.ring, err = credential.CreateKeyFile(root); err != nil {
		t.Fatal(err)
	}
	w.desk = human.New(human.Options{Interactions: w.stores.Interactions, Users: w.stores.Users, Contacts: w.stores.Contacts, PublicURL: "https://tandem.test", Channels: []human.Channel{knocker{&w.codes}}})
	w.desk.Start()
	triggers := trigger.New(trigger.Options{
		Triggers: w.stores.Triggers, Blobs: w.stores.Blobs, Executions: w.stores.Executions, Sources: []trigger.Source{byHand{}},
		Credentials: func(string) credential.Opener { return nil },
		Revision: func(ctx context.Context, p identity.Principal, id string, revision int64) (trigger.Revision, error) {
			r, _, err := ready.Request(ctx, p, id, "latest")
			return trigger.Revision{Number: r.Revision, Hash: r.RevisionHash, Nodes: []trigger.Node{{ID: r.Trigger, Kind: "TRIGGER.MANUAL"}}}, err
		},
	})
	o := Options{
		Triggers: triggers,
		Desk:     w.desk,
		Stores:   w.stores, Host: driver, Source: local.NewSource(w.stores.Journal, w.stores.Blobs), Hub: hub, Kinds: fewKinds{}, Registry: registry, Revisions: ready,
		Check: func(data []byte) (*workflow.Definition, []workflow.Problem) {
			source, problems := workflow.Parse(data, workflow.Options{Kinds: fewKinds{}})
			if source == nil {
				return nil, problems
			}
			return source.Definition, source.Validate(workflow.Rules{Kinds: fewKinds{}})
		},
		Import:  importAsItIs,
		Keyring: w.ring, CredentialTypes: testCredentials(), Models: noModels{}, Tools: newFewTools(w.stores.MCPServers), Version: "dev", Metrics: numbers, Now: w.now, Log: slog.New(slog.DiscardHandler),
		Ready: func() error {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.ready
		},
	}
	for _, c := range change {
		c(&o)
	}
	if w.server, err = New(o); err != nil {
		t.Fatal(err)
	}
	w.http = httptest.NewServer(w.server.Handler())
	t.Cleanup(func() {
		w.server.Close()
		w.http.Close()
		w.desk.Close()
		driver.Close()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		if err := root.Close(); err != nil {
			t.Error(err)
		}
		w.server, w.http.Config.Handler = nil, nil // what stands in here is kept until all tests have ended
	})
	for _, role := range identity.Roles() {
		w.tokens[role] = w.join("a", string(role)+"-user", role)
	}
	w.other = w.join("b", "boss", identity.Admin)
	return w
}

// join makes a user with a token, and the workspace if it has to.
func (w *world) join(workspace, user string, roles ...identity.Role) string {
	w.t.Helper()
	ctx, p := w.t.Context(), identity.System(workspace)
	if _, err := w.stores.Workspaces.Get(ctx, p, workspace); err != nil {
		if err := w.stores.Workspaces.Create(ctx, identity.System(""), identity.Workspace{ID: workspace, Name: workspace}); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := w.stores.Users.Create(ctx, p, identity.User{Workspace: workspace, ID: user, Name: user, Roles: roles}); err != nil {
		w.t.Fatal(err)
	}
	secret := identity.NewSecret()
	if err := w.stores.Tokens.Create(ctx, p, identity.Token{Workspace: workspace, ID: "tok_" + workspace + user, User: user, Name: "test"}, identity.HashSecret(secret)); err != nil {
		w.t.Fatal(err)
	}
	return secret
}

// answer is what the server said.
type answer struct {
	status int
	header http.Header
	body   string
}

// call makes a request with a token; none when it is empty.
func (w *world) call(token, method, path, body string) answer {
	w.t.Helper()
	return w.ask(token, method, path, strings.NewReader(body), nil)
}

func (w *world) ask(token, method, path string, body io.Reader, change func(*http.Request)) answer {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.http.URL+path, body)
	if err != nil {
		w.t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if change != nil {
		change(r)
	}
	res, err := w.http.Client().Do(r)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
	return answer{res.StatusCode, res.Header, string(text)}
}

// admin calls as the admin of workspace "a".
func (w *world) admin(method, path, body string) answer {
	w.t.Helper()
	return w.call(w.tokens[identity.Admin], method, path, body)
}

// want checks the status.
func (a answer) want(t testing.TB, status int) answer {
	t.Helper()
	if a.status != status {
		t.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	return a
}

// problem checks that it is a problem document of a status with a code, and returns it.
func (a answer) problem(t testing.TB, status int, code fault.Code) api.Fault {
	t.Helper()
	a.want(t, status)
	if got := a.header.Get("Content-Type"); got != route.ProblemType {
		t.Fatalf("content type %q of %s", got, a.body)
	}
	p := read[api.Fault](t, a)
	if p.Status != status || p.Code != string(code) || p.Title == "" || p.Detail == "" {
		t.Fatalf("problem %s, want status %d and code %q", a.body, status, code)
	}
	return p
}

func read[T any](t testing.TB, a answer) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(a.body), &v); err != nil {
		t.Fatalf("%v in %s", err, a.body)
	}
	return v
}

// repository is a file of the repository.
func repository(name ...string) string { return filepath.Join(append([]string{".."}, name...)...) }

// importAsItIs takes a definition for a file of another system. What its description says is a secret that stood in the file.
func importAsItIs(_ string, content []byte, _ string) (*importer.Imported, error) {
	source, problems := workflow.Parse(content, workflow.Options{Kinds: fewKinds{}})
	if source == nil {
		return nil, problems[0]
	}
	w := importer.Workflow{Definition: source.Definition, Report: api.ImportedWorkflow{Name: source.Definition.Metadata.Name, Nodes: []api.ImportedNode{}, Valid: true}}
	if token, ok := strings.CutPrefix(source.Definition.Metadata.Description, "secret "); ok {
		source.Definition.Metadata.Description = "d"
		w.Secrets = []importer.Secret{{Name: "moved", Type: "slack_bot", Data: json.RawMessage(`{"token":"` + token + `"}`)}}
		w.Report.Credentials = []api.ImportedCredential{{Name: "moved", Type: "slack_bot", Created: true}}
	}
	return &importer.Imported{System: "test", Workflows: []importer.Workflow{w}}, nil
}
