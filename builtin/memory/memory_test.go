package memory_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tandem/engine"
	"tandem/fault"
	"tandem/identity"
	"tandem/memory"
	"tandem/node/nodetest"
	"tandem/store"
)

// taken is an operation of each kind that stores something, and one that shows it.
var taken = map[string][2]string{
	"CONVERSATION_BUFFER":  {`{"operation": "add", "message": "canary one"}`, `{"operation": "get"}`},
	"CONVERSATION_SUMMARY": {`{"operation": "update", "messages": ["canary one"]}`, `{"operation": "load_context"}`},
	"VECTOR_DATABASE":      {`{"operation": "store", "items": [{"content": "canary one"}]}`, `{"operation": "search", "query": "canary one"}`},
	"KEY_VALUE_STORE":      {`{"operation": "increment", "key": "canary"}`, `{"operation": "keys"}`},
	"DOCUMENT_STORE":       {`{"operation": "store", "content": "canary one"}`, `{"operation": "search", "query": "one"}`},
	"ENTITY_MEMORY":        {`{"operation": "extract", "content": "Canary Bird works at Acme Corp."}`, `{"operation": "search", "query": "canary"}`},
	"EPISODIC_MEMORY":      {`{"operation": "store", "actor": "canary", "action": "sang"}`, `{"operation": "query"}`},
	"KNOWLEDGE_BASE":       {`{"operation": "store", "facts": [{"subject": "canary", "predicate": "is", "object": "bird"}]}`, `{"operation": "query", "query": "canary"}`},
	"GRAPH_MEMORY":         {`{"operation": "add", "relationships": [{"source": "canary", "target": "bird"}]}`, `{"operation": "query", "start_node": "bird"}`},
	"WORKING_MEMORY":       {`{"operation": "store", "key": "canary", "value": 1}`, `{"operation": "list"}`},
}

func TestMemory_IsOfOneUserNodeAndWorkspace(t *testing.T) {
	t.Parallel()
	r := newMemoryRig(t)
	for _, kind := range memoryNames() {
		has := func(what string, want bool, change func(), config string) {
			t.Helper()
			workspace, user, workflow, id, execution := r.workspace, r.user, r.workflow, r.node, r.execution
			change()
			out, err := r.do(kind, config, taken[kind][1])
			r.workspace, r.user, r.workflow, r.node, r.execution = workspace, user, workflow, id, execution
			if err != nil {
				t.Fatalf("%s: %s: %v", kind, what, err)
			}
			if got := strings.Contains(strings.ToLower(string(out)), "canary"); got != want {
				t.Errorf("%s: %s: shown is %v, want %v: %s", kind, what, got, want, out)
			}
		}
		r.want(kind, "", taken[kind][0], `{"success": true}`)
		has("its own", true, func() {}, "")
		has("another user", false, func() { r.user = "bob" }, "")
		has("another workspace", false, func() { r.workspace = "other" }, "")
		working := kind == "WORKING_MEMORY"
		has("another node", working, func() { r.node = "mem2" }, "")
		has("another workflow", working, func() { r.workflow = "wf2" }, "")
		has("another execution", !working, func() { r.execution = "exec_2" }, "")
		// A session is shared by the nodes of a user, and by nobody else.
		session := `{"session_id": "s1"}`
		has("a new session", false, func() {}, session)
		r.want(kind, session, taken[kind][0], `{"success": true}`)
		has("the session at another node", true, func() { r.node, r.workflow = "mem3", "wf3" }, session)
		has("the session of another user", false, func() { r.user = "bob" }, session)
		has("the session of another workspace", false, func() { r.workspace = "other" }, session)
	}
	// What the API sees of it.
	page, err := r.stores.Memories.Scopes(t.Context(), r.principal(), store.MemoryScopeQuery{Page: store.Page{Size: 100}})
	if err != nil || page.Total != 20 {
		t.Fatalf("%d scopes, want one of each kind and a session of each: %v", page.Total, err)
	}
	for _, s := range page.Scopes {
		if _, err := r.stores.Memories.Scope(t.Context(), identity.Principal{Workspace: "ws", User: "bob"}, s.ID); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("%s of another user: %v, want not_found", s.Kind, err)
		}
	}
}

// picture is all records of a workspace as text, without what only says when they were written.
func (r *memoryRig) picture() []string {
	r.t.Helper()
	system := identity.System(r.workspace)
	scopes, err := r.stores.Memories.Scopes(r.t.Context(), system, store.MemoryScopeQuery{Page: store.Page{Size: 500}})
	if err != nil {
		r.t.Fatal(err)
	}
	var all []string
	for _, s := range scopes.Scopes {
		page, err := r.stores.Memories.Records(r.t.Context(), system, store.MemoryQuery{Scope: s.ID})
		if err != nil {
			r.t.Fatal(err)
		}
		for _, m := range page.Records {
			all = append(all, fmt.Sprintf("%s %s %s v%d %s", s.Kind, m.Sort, m.ID, m.Version, m.Body))
		}
	}
	slices.Sort(all)
	return all
}

// TestMemory_StoresOnceWhenKilledBeforeTheReply repeats every change as a host does that was killed after the memory had
// stored and before the outcome was recorded.
func TestMemory_StoresOnceWhenKilledBeforeTheReply(t *testing.T) {
	t.Parallel()
	r := newMemoryRig(t)
	changes := map[string][]string{
		"CONVERSATION_BUFFER":  {`{"operation": "remember", "user": "hello", "assistant": "hi"}`, `{"operation": "clear"}`},
		"CONVERSATION_SUMMARY": {`{"operation": "update", "messages": ["a", "b", "c", "d", "e", "f"]}`, `{"operation": "remember", "user": "u", "assistant": "x"}`},
		"VECTOR_DATABASE":      {`{"operation": "remember", "user": "u", "assistant": "x"}`, `{"operation": "update", "items": [{"id": "i", "content": "c"}]}`, `{"operation": "delete", "ids": ["i"]}`},
		"KEY_VALUE_STORE":      {`{"operation": "set", "key": "k", "value": 7, "options": {"if_absent": true}}`, `{"operation": "increment", "key": "k", "by": 2}`, `{"operation": "set", "key": "k", "value": 1, "options": {"if_version": 2}}`, `{"operation": "delete", "key": "k"}`},
		"DOCUMENT_STORE":       {`{"operation": "remember", "user": "u", "assistant": "x"}`, `{"operation": "update", "document_id": "none", "title": "t"}`},
		"ENTITY_MEMORY":        {`{"operation": "remember", "user": "Ada Lovelace works at Acme Corp.", "assistant": "ok"}`},
		"EPISODIC_MEMORY":      {`{"operation": "remember", "user": "u", "assistant": "x"}`},
		"KNOWLEDGE_BASE":       {`{"operation": "remember", "user": "The sky is blue.", "assistant": "x"}`, `{"operation": "store", "content": "The sky is grey."}`},
		"GRAPH_MEMORY":         {`{"operation": "remember", "user": "Ada Lovelace works at Acme Corp.", "assistant": "ok"}`, `{"operation": "delete", "id": "acme corp"}`},
		"WORKING_MEMORY":       {`{"operation": "remember", "user": "u", "assistant": "x"}`, `{"operation": "delete", "key": "last_exchange"}`},
	}
	for _, kind := range memoryNames() {
		for i, input := range append([]string{taken[kind][0]}, changes[kind]...) {
			r.once = fmt.Sprint(kind, i)
			first, err := r.do(kind, "", input)
			if err != nil {
				t.Fatalf("%s %s: %v", kind, input, err)
			}
			before := r.picture()
			r.now = r.now.Add(time.Minute)
			if i == 1 {
				r.restart()
			}
			again, err := r.do(kind, "", input)
			if err != nil {
				t.Fatalf("%s %s again: %v", kind, input, err)
			}
			if after := r.picture(); !slices.Equal(before, after) {
				t.Errorf("%s %s changed the memory twice:\n%s\n%s", kind, input, strings.Join(before, "\n"), strings.Join(after, "\n"))
			}
			if kind == "KEY_VALUE_STORE" && string(first) != string(again) {
				t.Errorf("%s answered %s and then %s", input, first, again)
			}
		}
		// Another activation is another change.
		before := r.picture()
		r.once = kind + "/other"
		r.want(kind, "", `{"operation": "remember", "user": "Grace Hopper works at Navy Corp. The sea is deep.", "assistant": "aye"}`, `{}`)
		if kind != "KEY_VALUE_STORE" && slices.Equal(before, r.picture()) {
			t.Errorf("%s took nothing in the second time", kind)
		}
	}
}

func TestMemory_ManyAtOnceLoseNothing(t *testing.T) {
	t.Parallel()
	r := newMemoryRig(t)
	m := r.stores.Memories
	k, _ := r.registry.Get("MEMORY.KEY_VALUE_STORE")
	b, _ := r.registry.Get("MEMORY.CONVERSATION_BUFFER")
	const n = 12
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			call := nodetest.NewCall(t, "", `{"operation": "increment", "key": "n"}`)
			call.Workspace, call.ActivationID = "ws", engine.ActivationID(fmt.Sprint("k", i))
			if _, err := k.Run(t.Context(), call); err != nil {
				t.Error(err)
			}
			call = nodetest.NewCall(t, `{"max_messages": 1000}`, fmt.Sprintf(`{"operation": "add", "message": "m%d"}`, i))
			call.Workspace, call.ActivationID = "ws", engine.ActivationID(fmt.Sprint("b", i))
			if _, err := b.Run(t.Context(), call); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	r.workflow, r.node = "wf_1", "n"
	r.want("KEY_VALUE_STORE", "", `{"operation": "get", "key": "n"}`, fmt.Sprintf(`{"value": %d, "version": %d}`, n, n))
	r.want("CONVERSATION_BUFFER", `{"max_messages": 1000}`, `{"operation": "get"}`, fmt.Sprintf(`{"total_messages": %d}`, n))
	if _, err := m.Purge(t.Context(), identity.System(""), r.now.UnixMilli(), 0); err != nil {
		t.Error(err)
	}
}

func TestMemory_Refuses(t *testing.T) {
	t.Parallel()
	r := newMemoryRig(t)
	large, err := json.Marshal(strings.Repeat("x", 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range memoryNames() {
		r.refused(kind, "", `{}`, fault.ParameterMissing, "operation")
		r.refused(kind, "", `{"operation": "lod_context"}`, fault.InvalidInput, "load_context")
		r.refused(kind, `{"operation": "nothing"}`, `{}`, fault.InvalidConfig, "operation")
		r.refused(kind, `{"max_context_char": 1}`, `{}`, fault.InvalidConfig, "max_context_chars")
		r.refused(kind, "", `{"operation": "remember"}`, fault.ParameterMissing, "user")
		// Where older files kept it does not matter.
		r.want(kind, `{"database_url": "x", "storage_backend": "redis", "connection_config": {}, "table_name": "t"}`, `{"operation": "load_context", "query": "q"}`, `{"success": true, "context": ""}`)
	}
	for _, c := range []struct {
		kind, input string
		code        fault.Code
		part        string
	}{
		{"CONVERSATION_BUFFER", `{"operation": "add"}`, fault.ParameterMissing, `"message"`},
		{"CONVERSATION_BUFFER", `{"operation": "add", "message": "x", "role": "king"}`, fault.InvalidInput, "king"},
		{"CONVERSATION_BUFFER", `{"operation": "add", "message": 5}`, fault.InvalidInput, `"message" must be a text`},
		{"CONVERSATION_BUFFER", `{"operation": "load_context", "query": 5}`, fault.InvalidInput, `"query" must be a text`},
		{"CONVERSATION_BUFFER", `{"operation": "add", "message": ` + string(large) + `}`, fault.TooLarge, "message"},
		{"CONVERSATION_SUMMARY", `{"operation": "update"}`, fault.ParameterMissing, `"messages"`},
		{"VECTOR_DATABASE", `{"operation": "search"}`, fault.ParameterMissing, `"query"`},
		{"VECTOR_DATABASE", `{"operation": "store"}`, fault.ParameterMissing, `"items"`},
		{"VECTOR_DATABASE", `{"operation": "store", "items": [{"id": "a"}]}`, fault.InvalidInput, "items[0]"},
		{"VECTOR_DATABASE", `{"operation": "store", "items": [` + string(large) + `]}`, fault.TooLarge, "items[0]"},
		{"VECTOR_DATABASE", `{"operation": "delete"}`, fault.ParameterMissing, `"ids"`},
		{"VECTOR_DATABASE", `{"operation": "search", "query": "x", "filters": {"a": {"like": 1}}}`, fault.InvalidInput, "like"},
		{"VECTOR_DATABASE", `{"operation": "search", "query": "x", "filters": [1]}`, fault.InvalidInput, "filters"},
		{"KEY_VALUE_STORE", `{"operation": "get"}`, fault.ParameterMissing, `"key"`},
		{"KEY_VALUE_STORE", `{"operation": "set", "key": "k"}`, fault.ParameterMissing, `"value"`},
		{"KEY_VALUE_STORE", `{"operation": "set", "key": "k", "value": ` + string(large) + `}`, fault.TooLarge, "value"},
		{"KEY_VALUE_STORE", `{"operation": "set", "key": "` + strings.Repeat("k", 2000) + `", "value": 1}`, fault.TooLarge, "key"},
		{"KEY_VALUE_STORE", `{"operation": "set", "key": "k", "value": 1, "options": {"ttl": -1}}`, fault.InvalidInput, "ttl"},
		{"KEY_VALUE_STORE", `{"operation": "set", "key": "k", "value": 1, "options": {"tll": 60}}`, fault.InvalidInput, `"tll"; did you mean "ttl"?`},
		{"KEY_VALUE_STORE", `{"operation": "set", "key": "k", "value": 1, "options": {"if_missing": true}}`, fault.InvalidInput, "if_absent"},
		{"DOCUMENT_STORE", `{"operation": "store"}`, fault.ParameterMissing, `"content"`},
		{"DOCUMENT_STORE", `{"operation": "store", "content": ` + string(large) + `}`, fault.TooLarge, "content"},
		{"DOCUMENT_STORE", `{"operation": "get"}`, fault.ParameterMissing, `"document_id"`},
		{"DOCUMENT_STORE", `{"operation": "search"}`, fault.ParameterMissing, `"query"`},
		{"DOCUMENT_STORE", `{"operation": "store", "file": 5}`, fault.InvalidInput, "file"},
		{"ENTITY_MEMORY", `{"operation": "extract"}`, fault.ParameterMissing, `"content"`},
		{"ENTITY_MEMORY", `{"operation": "merge", "ids": ["a"]}`, fault.InvalidInput, `"ids"`},
		{"EPISODIC_MEMORY", `{"operation": "store", "action": "x"}`, fault.ParameterMissing, `"actor"`},
		{"EPISODIC_MEMORY", `{"operation": "store", "actor": "a", "action": "x", "importance": 2}`, fault.InvalidInput, "importance"},
		{"EPISODIC_MEMORY", `{"operation": "store", "actor": "a", "action": "x", "timestamp": "soon"}`, fault.InvalidInput, "soon"},
		{"EPISODIC_MEMORY", `{"operation": "delete"}`, fault.ParameterMissing, `"id"`},
		{"KNOWLEDGE_BASE", `{"operation": "store"}`, fault.ParameterMissing, `"facts"`},
		{"KNOWLEDGE_BASE", `{"operation": "store", "facts": [{"subject": "a"}]}`, fault.InvalidInput, "facts[0]"},
		{"KNOWLEDGE_BASE", `{"operation": "store", "facts": [{"subject": "a", "predicate": "is", "object": "b", "domain": "gossip"}]}`, fault.InvalidInput, "gossip"},
		{"KNOWLEDGE_BASE", `{"operation": "store", "facts": [{"subject": "a", "predicate": "is", "object": "b", "confidence": 3}]}`, fault.InvalidInput, "confidence"},
		{"GRAPH_MEMORY", `{"operation": "add"}`, fault.ParameterMissing, `"nodes"`},
		{"GRAPH_MEMORY", `{"operation": "add", "nodes": [{"id": "a", "type": "planet"}]}`, fault.InvalidInput, "planet"},
		{"GRAPH_MEMORY", `{"operation": "add", "relationships": [{"source": "a", "target": "b", "weight": 0}]}`, fault.InvalidInput, "weight"},
		{"GRAPH_MEMORY", `{"operation": "add", "relationships": [{"source": "a", "target": "b", "type": "loves"}]}`, fault.InvalidInput, "loves"},
		{"GRAPH_MEMORY", `{"operation": "query", "start_node": "a", "filters": {"direction": "up"}}`, fault.InvalidInput, "direction"},
		{"GRAPH_MEMORY", `{"operation": "path", "from": "a"}`, fault.ParameterMissing, `"to"`},
		{"WORKING_MEMORY", `{"operation": "store", "key": "a"}`, fault.ParameterMissing, `"value"`},
		{"WORKING_MEMORY", `{"operation": "store", "key": "a", "value": ` + string(large) + `}`, fault.TooLarge, "value"},
	} {
		r.refused(c.kind, "", c.input, c.code, c.part)
	}
	r.refused("EPISODIC_MEMORY", `{"retention_period": "soon"}`, `{"operation": "query"}`, fault.InvalidConfig, "retention_period")
	r.refused("DOCUMENT_STORE", `{"search_fields": ["colour"]}`, `{"operation": "search", "query": "q"}`, fault.InvalidConfig, "colour")
	if got := r.picture(); len(got) != 0 {
		t.Errorf("something was stored: %q", got)
	}
}

// TestMemory_MissingIsEmpty asks memories that have nothing.
func TestMemory_MissingIsEmpty(t *testing.T) {
	t.Parallel()
	r := newMemoryRig(t)
	for kind, cases := range map[string][][2]string{
		"CONVERSATION_BUFFER":  {{`{"operation": "get"}`, `{"messages": [], "total_messages": 0, "summary": "", "buffer_full": false}`}, {`{"operation": "clear"}`, `{"total_messages": 0}`}},
		"CONVERSATION_SUMMARY": {{`{"operation": "get"}`, `{"summary": "", "covered_messages": 0, "updated_at": 0}`}},
		"VECTOR_DATABASE":      {{`{"operation": "search", "query": "x"}`, `{"results": [], "scores": [], "total_results": 0}`}, {`{"operation": "delete", "ids": ["x"]}`, `{"total_results": 0}`}, {`{"operation": "reindex"}`, `{"total_results": 0}`}},
		"KEY_VALUE_STORE":      {{`{"operation": "get", "key": "x"}`, `{"value": null, "exists": false, "version": 0}`}, {`{"operation": "delete", "key": "x"}`, `{"exists": false}`}, {`{"operation": "keys"}`, `{"keys": []}`}, {`{"operation": "clear"}`, `{}`}},
		"DOCUMENT_STORE":       {{`{"operation": "search", "query": "x"}`, `{"documents": [], "total_count": 0, "relevance_scores": []}`}, {`{"operation": "get", "document_id": "x"}`, `{"documents": []}`}, {`{"operation": "update", "document_id": "x", "title": "t"}`, `{"documents": [], "stored": false}`}, {`{"operation": "delete", "document_id": "x"}`, `{"total_count": 0}`}},
		"ENTITY_MEMORY":        {{`{"operation": "get", "name": "x"}`, `{"entities": [], "relationships": [], "entity_summary": ""}`}, {`{"operation": "search", "query": "x"}`, `{"entities": []}`}, {`{"operation": "merge", "ids": ["a", "b"]}`, `{"entities": []}`}, {`{"operation": "delete", "id": "a"}`, `{"entities": []}`}},
		"EPISODIC_MEMORY":      {{`{"operation": "query"}`, `{"episodes": [], "timeline": [], "context_summary": ""}`}, {`{"operation": "delete", "id": "x"}`, `{"episodes": []}`}},
		"KNOWLEDGE_BASE":       {{`{"operation": "query", "query": "x"}`, `{"facts": [], "knowledge_summary": "", "related_concepts": []}`}, {`{"operation": "update", "id": "x", "object": "y"}`, `{"facts": []}`}, {`{"operation": "delete", "id": "x"}`, `{"facts": []}`}},
		"GRAPH_MEMORY":         {{`{"operation": "query", "start_node": "x"}`, `{"paths": [], "connected_nodes": [], "relationship_summary": ""}`}, {`{"operation": "path", "from": "x", "to": "y"}`, `{"paths": []}`}, {`{"operation": "delete", "id": "x"}`, `{"paths": []}`}},
		"WORKING_MEMORY":       {{`{"operation": "get", "key": "x"}`, `{"current_state": {}, "recent_items": [], "operation_result": null, "memory_stats": {"items": 0, "capacity": 100, "evicted": 0}}`}, {`{"operation": "delete", "key": "x"}`, `{"operation_result": {"deleted": false}}`}, {`{"operation": "clear"}`, `{}`}},
	} {
		for _, c := range cases {
			r.want(kind, "", c[0], c[1])
		}
	}
	if got := r.picture(); len(got) != 0 {
		t.Errorf("asking has stored something: %q", got)
	}
}

// TestMemory_LeavesOthersFieldsAlone hands every operation an input in which the fields of all others have a value that
// they could not read.
func TestMemory_LeavesOthersFieldsAlone(t *testing.T) {
	t.Parallel()
	r := newMemoryRig(t)
	for _, kind := range memoryNames() {
		k, _ := r.registry.Get("MEMORY." + kind)
		var schema struct {
			Properties map[string]json.RawMessage `json:"properties"`
		}
		if err := json.Unmarshal(k.InputSchema.JSON(), &schema); err != nil || len(schema.Properties) < 5 {
			t.Fatalf("%s: input schema %s: %v", kind, k.InputSchema.JSON(), err)
		}
		for _, own := range taken[kind] {
			var input, given map[string]any
			if err := errors.Join(json.Unmarshal([]byte(own), &input), json.Unmarshal([]byte(own), &given)); err != nil {
				t.Fatal(err)
			}
			for name := range schema.Properties {
				if _, set := input[name]; !set {
					input[name] = []any{[]any{1}}
				}
			}
			// Those of its own are read all the same.
			names, ok := memory.Fields(kind, input["operation"].(string))
			if !ok {
				t.Fatalf("%s: the operation of %s has no fields", kind, own)
			}
			for _, name := range names {
				if _, ok := given[name]; !ok {
					delete(input, name)
				}
			}
			r.want(kind, "", nodetest.Text(input), `{"success": true}`)
		}
		var config struct {
			Properties struct {
				Operation struct {
					Enum []string `json:"enum"`
				} `json:"operation"`
			} `json:"properties"`
		}
		if err := json.Unmarshal(k.ConfigSchema.JSON(), &config); err != nil {
			t.Fatal(err)
		}
		for _, op := range config.Properties.Operation.Enum {
			names, ok := memory.Fields(kind, op)
			if !ok {
				t.Errorf("%s: the fields of %q are not listed", kind, op)
			}
			for _, name := range names {
				if _, ok := schema.Properties[name]; !ok {
					t.Errorf("%s: %q lists %q, which no input has", kind, op, name)
				}
			}
		}
	}
}

// TestMemory_ContextIsBounded fills every memory and asks for less than it has.
func TestMemory_ContextIsBounded(t *testing.T) {
	t.Parallel()
	r := newMemoryRig(t)
	for _, kind := range memoryNames() {
		for range 3 {
			r.want(kind, "", taken[kind][0], `{"success": true}`)
			r.want(kind, "", `{"operation": "remember", "user": "Canary Bird works at Acme Corp. The canary is a bird. 金丝雀是一种鸟。", "assistant": "`+strings.Repeat("canary sings 唱歌 ", 40)+`"}`, `{"success": true}`)
		}
		for _, limit := range []int{1, 10, 100, 400} {
			out := r.want(kind, fmt.Sprintf(`{"max_context_chars": %d}`, limit), `{"operation": "load_context", "query": "canary bird 金丝雀"}`, `{"operation": "load_context"}`)
			var text string
			field(t, out, "context", &text)
			if n := len([]rune(text)); n > limit {
				t.Errorf("%s: the context has %d characters, more than %d", kind, n, limit)
			}
			if limit == 400 && text == "" {
				t.Errorf("%s tells nothing of a canary", kind)
			}
		}
	}
}
