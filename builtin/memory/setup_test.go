package memory_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	family "tandem/builtin/memory"
	"tandem/builtin/models"
	"tandem/engine"
	"tandem/fault"
	"tandem/identity"
	"tandem/llm"
	"tandem/memory"
	"tandem/node"
	"tandem/node/nodetest"
	"tandem/store"
	"tandem/store/sqlite"
	"tandem/store/sqlite/sqlitetest"
)

// memoryRig is an installation with memories in a database of its own.
type memoryRig struct {
	t        testing.TB
	dir      string
	db       *sqlite.DB
	stores   store.Stores
	registry *node.Registry

	// Whose call the next one is.
	workspace, user, workflow, node, execution string
	now                                        time.Time
	calls                                      int
	// once is the activation of the next call; empty: a new one.
	once string

	mu       sync.Mutex
	model    func(memory.Prompt) (string, error)
	embed    func(texts []string) ([][]float32, error)
	prompts  []memory.Prompt
	warnings []string
}

func newMemoryRig(t testing.TB) *memoryRig {
	t.Helper()
	r := &memoryRig{t: t, dir: sqlitetest.Dir(t), workspace: "ws", user: "ada", workflow: "wf", node: "mem", execution: "exec_1", now: nodetest.Start()}
	r.openDB()
	t.Cleanup(func() {
		if err := r.db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return r
}

func (r *memoryRig) openDB() {
	r.t.Helper()
	db, err := sqlite.Open(context.Background(), sqlite.Options{Dir: r.dir})
	if err != nil {
		r.t.Fatal(err)
	}
	r.db, r.stores = db, db.Stores()
	r.registry = &node.Registry{}
	r.registry.Register(family.Kinds(family.Deps{Memories: memory.New(memory.Options{
		Records: r.stores.Memories, Executions: r.stores.Executions, Local: llm.HashEmbed,
	}), Models: &models.Models{
		Profile: func(_ context.Context, _, id string) (llm.Profile, error) {
			return llm.Profile{ID: id, Provider: "fake", Model: "m", EmbeddingModel: "e"}, nil
		},
		Providers: map[string]llm.Factory{"fake": func(llm.Settings) (llm.Provider, error) { return memoryModel{r}, nil }},
		Executor:  llm.NewExecutor(llm.Options{}),
	}})...)
}

// memoryModel is the model that the memories of a rig ask.
type memoryModel struct{ r *memoryRig }

// Complete answers what the test says.
func (m memoryModel) Complete(_ context.Context, q llm.Request, _ func(llm.Delta)) (llm.Completion, error) {
	m.r.mu.Lock()
	defer m.r.mu.Unlock()
	p := memory.Prompt{System: q.Messages[0].Content, User: q.Messages[1].Content, JSON: q.JSON}
	m.r.prompts = append(m.r.prompts, p)
	if m.r.model == nil {
		return llm.Completion{}, fault.New(fault.RemoteRejected, "the model is not there")
	}
	text, err := m.r.model(p)
	if err != nil {
		return llm.Completion{}, fault.New(fault.RemoteRejected, err.Error())
	}
	return llm.Completion{Message: llm.Message{Role: llm.Assistant, Content: text}, Finish: llm.FinishStop}, nil
}

// Embed answers what the test says.
func (m memoryModel) Embed(_ context.Context, _ string, texts []string) ([][]float32, llm.Usage, error) {
	list, err := m.r.embed(texts)
	return list, llm.Usage{InputTokens: int64(len(texts))}, err
}

// restart closes the database and opens it again, as after a crash.
func (r *memoryRig) restart() {
	r.t.Helper()
	if err := r.db.Close(); err != nil {
		r.t.Fatal(err)
	}
	r.openDB()
}

func (r *memoryRig) principal() identity.Principal {
	return identity.Principal{Workspace: r.workspace, User: r.user}
}

// do runs a memory node and returns its result.
func (r *memoryRig) do(kind, config, input string) (json.RawMessage, error) {
	r.t.Helper()
	k, ok := r.registry.Get("MEMORY." + kind)
	if !ok {
		r.t.Fatalf("there is no kind %q", kind)
	}
	call := nodetest.NewCall(r.t, config, input)
	r.calls++
	activation := r.once
	if activation == "" {
		activation = fmt.Sprint("a", r.calls)
	}
	call.Workspace, call.UserID, call.WorkflowID, call.NodeID, call.ExecutionID = r.workspace, r.user, r.workflow, r.node, r.execution
	call.ActivationID, call.Now = engine.ActivationID(activation), r.now
	call.Used, call.Detail = func(node.Usage) {}, func(map[string]any) {}
	call.Log = func(_ node.Level, message string, _ map[string]any) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.warnings = append(r.warnings, message)
	}
	out, err := k.Run(context.Background(), call)
	if err != nil {
		return nil, err
	}
	return out.(node.Done)["result"], nil
}

// want runs a memory node and compares the fields that are wanted.
func (r *memoryRig) want(kind, config, input, want string) json.RawMessage {
	r.t.Helper()
	out, err := r.do(kind, config, input)
	if err != nil {
		r.t.Fatalf("%s %s: %v", kind, input, err)
	}
	for _, d := range nodetest.Differences("result", nodetest.Value(r.t, want), nodetest.Value(r.t, string(out))) {
		r.t.Errorf("%s %s: %s\n%s", kind, input, d, out)
	}
	return out
}

// refused runs a memory node that must fail.
func (r *memoryRig) refused(kind, config, input string, code fault.Code, part string) {
	r.t.Helper()
	_, err := r.do(kind, config, input)
	if fault.CodeOf(err) != code || !strings.Contains(fmt.Sprint(err), part) {
		r.t.Errorf("%s %s: got error %v, want %s with %q", kind, input, err, code, part)
	}
}

// field reads one field of a result into v.
func field(t testing.TB, result json.RawMessage, name string, v any) {
	t.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal(result, &all); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(all[name], v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// memoryNames are the ten, without their family.
func memoryNames() []string {
	return []string{
		"CONVERSATION_BUFFER", "CONVERSATION_SUMMARY", "VECTOR_DATABASE", "KEY_VALUE_STORE", "DOCUMENT_STORE", "ENTITY_MEMORY",
		"EPISODIC_MEMORY", "KNOWLEDGE_BASE", "GRAPH_MEMORY", "WORKING_MEMORY",
	}
}
