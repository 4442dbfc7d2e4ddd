package memory_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tandem/engine"
	"tandem/fault"
	"tandem/memory"
	"tandem/store"
)

func TestMemoryKeyValues_VersionsAndExpiry(t *testing.T) {
	t.Parallel()
	const kind = "KEY_VALUE_STORE"
	r := newMemoryRig(t)
	r.want(kind, "", `{"operation": "set", "key": "a", "value": {"deep": [1, null]}}`, `{"value": {"deep": [1, null]}, "version": 1, "exists": true}`)
	r.want(kind, "", `{"operation": "set", "key": "a", "value": null}`, `{"value": null, "version": 2}`)
	r.want(kind, "", `{"operation": "get", "key": "a"}`, `{"value": null, "exists": true, "version": 2}`)
	r.refused(kind, "", `{"operation": "set", "key": "a", "value": 1, "options": {"if_absent": true}}`, fault.Conflict, `"a"`)
	r.refused(kind, "", `{"operation": "set", "key": "a", "value": 1, "options": {"if_version": 1}}`, fault.Conflict, "version 2")
	r.refused(kind, "", `{"operation": "set", "key": "b", "value": 1, "options": {"if_version": 1}}`, fault.Conflict, "version 0")
	r.want(kind, "", `{"operation": "set", "key": "b", "value": 1, "options": {"if_version": 0}}`, `{"version": 1}`)
	r.want(kind, "", `{"operation": "set", "key": "a", "value": 1, "options": {"if_version": 2}}`, `{"version": 3}`)
	r.want(kind, "", `{"operation": "exists", "key": "a"}`, `{"exists": true, "value": null}`)

	// Numbers keep their digits.
	r.want(kind, "", `{"operation": "increment", "key": "n"}`, `{"value": 1, "version": 1}`)
	r.want(kind, "", `{"operation": "increment", "key": "n", "by": 9007199254740993}`, `{"value": 9007199254740994}`)
	r.want(kind, "", `{"operation": "increment", "key": "n", "by": -0.1}`, `{"value": 9007199254740993.9}`)
	r.want(kind, "", `{"operation": "set", "key": "text", "value": "x"}`, `{}`)
	r.refused(kind, "", `{"operation": "increment", "key": "text"}`, fault.InvalidInput, "not a number")
	r.refused(kind, "", `{"operation": "increment", "key": "n", "by": 1e999999}`, fault.InvalidInput, "too large")

	r.want(kind, `{"key_prefix": "p/"}`, `{"operation": "set", "key": "x/1", "value": 1}`, `{}`)
	r.want(kind, `{"key_prefix": "p/"}`, `{"operation": "keys"}`, `{"keys": ["x/1"]}`)
	r.want(kind, "", `{"operation": "keys"}`, `{"keys": ["a", "b", "n", "p/x/1", "text"]}`)
	r.want(kind, "", `{"operation": "keys", "options": {"pattern": "p*1"}}`, `{"keys": ["p/x/1"]}`)
	r.want(kind, "", `{"operation": "keys", "options": {"pattern": "?"}}`, `{"keys": ["a", "b", "n"]}`)
	r.want(kind, "", `{"operation": "keys", "options": {"pattern": "[ab]"}}`, `{"keys": []}`)
	r.want(kind, `{"key_prefix": "p/"}`, `{"operation": "clear"}`, `{}`)
	r.want(kind, "", `{"operation": "keys"}`, `{"keys": ["a", "b", "n", "text"]}`)
	r.want(kind, "", `{"operation": "delete", "key": "text"}`, `{"exists": true}`)
	r.want(kind, "", `{"operation": "load_context"}`, `{"context": "a = 1\nb = 1\nn = 9007199254740993.9"}`)
	r.want(kind, "", `{"operation": "remember", "user": "u", "assistant": "a"}`, `{"stored": false}`)

	// Expired is absent, also for its version, its room and the conditions.
	r.want(kind, "", `{"operation": "clear"}`, `{}`)
	limited := `{"max_keys": 2, "default_ttl": 60}`
	r.want(kind, limited, `{"operation": "set", "key": "short", "value": 1, "options": {"ttl": 10}}`, `{}`)
	r.want(kind, limited, `{"operation": "set", "key": "usual", "value": 1}`, `{}`)
	r.refused(kind, limited, `{"operation": "set", "key": "third", "value": 1}`, fault.Conflict, "max_keys")
	r.want(kind, limited, `{"operation": "set", "key": "short", "value": 2, "options": {"ttl": 10}}`, `{"version": 2}`) // no new key
	r.now = r.now.Add(10 * time.Second)
	r.want(kind, limited, `{"operation": "get", "key": "short"}`, `{"exists": false, "value": null, "version": 0}`)
	r.want(kind, limited, `{"operation": "keys"}`, `{"keys": ["usual"]}`)
	r.want(kind, limited, `{"operation": "set", "key": "short", "value": 3, "options": {"if_absent": true, "ttl": 0}}`, `{"version": 1}`)
	r.want(kind, limited, `{"operation": "increment", "key": "usual"}`, `{"value": 2}`) // lives on as long as it did
	r.now = r.now.Add(50 * time.Second)
	r.want(kind, limited, `{"operation": "keys"}`, `{"keys": ["short"]}`)
	r.now = r.now.Add(1000 * time.Hour)
	r.want(kind, limited, `{"operation": "keys"}`, `{"keys": ["short"]}`)
}

func TestMemoryEpisodes_RetainAndQuery(t *testing.T) {
	t.Parallel()
	const kind = "EPISODIC_MEMORY"
	r := newMemoryRig(t)
	put := func(rest, want string) {
		t.Helper()
		r.want(kind, "", `{"operation": "store", "actor": "ann", "action": "deployed", `+rest+`}`, want)
	}
	put(`"object": "web", "outcome": "failed", "importance": 0.9, "timestamp": "2030-01-30T09:00:00Z", "event_type": "deploy", "context": {"why": "disk was full"}`,
		`{"stored": true, "episodes": [{"actor": "ann", "timestamp": "2030-01-30T09:00:00Z"}], "timeline": [{"text": "ann deployed web → failed"}]}`)
	put(`"object": "web", "outcome": "ok", "timestamp": "2030-01-10"`, `{"stored": true}`)
	put(`"object": "trifle", "importance": 0.49`, `{"stored": false, "episodes": []}`)
	put(`"object": "ancient", "timestamp": 1000000000`, `{"stored": false}`)
	r.want(kind, "", `{"operation": "store", "actor": "bob", "action": "revoked", "object": "access"}`, `{"stored": true, "episodes": [{"importance": 0.5}]}`)
	query := func(params string, want ...string) {
		t.Helper()
		out := r.want(kind, "", `{"operation": "query", "query_params": `+params+`}`, `{"success": true}`)
		var list []memory.Episode
		field(t, out, "episodes", &list)
		var got []string
		for _, e := range list {
			got = append(got, strings.Trim(string(e.Object), `"`)+" "+e.Timestamp[:10])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", params, got, want)
		}
	}
	query(`{}`, "access 2030-01-31", "web 2030-01-30", "web 2030-01-10")
	query(`{"actor": "ANN"}`, "web 2030-01-30", "web 2030-01-10")
	query(`{"since": "2030-01-15", "until": "2030-01-30T10:00:00Z"}`, "web 2030-01-30")
	query(`{"query": "disk"}`, "web 2030-01-30")
	query(`{"event_type": "deploy"}`, "web 2030-01-30")
	query(`{"min_importance": 0.8}`, "web 2030-01-30")
	query(`{"outcome": "ok", "object": "web", "action": "deployed"}`, "web 2030-01-10")
	query(`{"limit": 1}`, "access 2030-01-31")
	r.want(kind, "", `{"operation": "query"}`, `{"timeline": [{"text": "ann deployed web → ok"}, {"text": "ann deployed web → failed"}, {"text": "bob revoked access"}]}`)
	// A context is what happened lately, and of older what the question is about.
	lately := "2030-01-30T09:00:00Z ann deployed web → failed\n2030-01-31T09:00:00Z bob revoked access"
	r.want(kind, "", `{"operation": "load_context", "query": "anything?"}`, `{"context": "`+strings.ReplaceAll(lately, "\n", `\n`)+`"}`)
	r.want(kind, "", `{"operation": "load_context", "query": "when was web deployed"}`, `{"context": "`+strings.ReplaceAll("2030-01-10T00:00:00Z ann deployed web → ok\n"+lately, "\n", `\n`)+`"}`)

	r.now = r.now.AddDate(0, 0, 15) // thirty days after the tenth
	query(`{}`, "access 2030-01-31", "web 2030-01-30")
	r.want(kind, `{"retention_period": "2 hours"}`, `{"operation": "remember", "user": "what now?", "assistant": "wait"}`, `{"stored": true}`)
	r.want(kind, "", `{"operation": "load_context"}`, `{"context": "`+r.now.UTC().Format(time.RFC3339)+` user asked what now? → wait"}`)
	r.now = r.now.Add(2 * time.Hour)
	query(`{"actor": "user"}`)
	r.want(kind, "", `{"operation": "delete", "query_params": {"actor": "ann"}}`, `{"deleted": 1}`)
	query(`{}`, "access 2030-01-31")
	// What has expired goes for good.
	gone, err := r.stores.Memories.Purge(t.Context(), r.principal(), r.now.UnixMilli(), 0)
	if err != nil || gone != 2 {
		t.Errorf("purged %d: %v", gone, err)
	}
}

// What something was done with, and what came of it, may be more than a text.
func TestMemoryEpisodes_Objects(t *testing.T) {
	t.Parallel()
	const kind = "EPISODIC_MEMORY"
	r := newMemoryRig(t)
	r.want(kind, "", `{"operation": "store", "actor": "ann", "action": "placed", "object": {"order": "A-17", "items": 3}, "outcome": {"status": "paid"}}`,
		`{"stored": true, "episodes": [{"object": {"order": "A-17", "items": 3}, "outcome": {"status": "paid"}}], "timeline": [{"text": "ann placed {\"order\":\"A-17\",\"items\":3} → {\"status\":\"paid\"}"}]}`)
	r.want(kind, "", `{"operation": "query", "query": "A-17"}`, `{"episodes": [{"object": {"order": "A-17"}}]}`)
	r.want(kind, "", `{"operation": "query", "query": "paid"}`, `{"episodes": [{"actor": "ann"}]}`)
}

// A memory that stands alone says what a model would be told of what it has found or kept.
func TestMemory_ContextAlone(t *testing.T) {
	t.Parallel()
	r := newMemoryRig(t)
	for _, c := range []struct{ kind, config, input, want string }{
		{"CONVERSATION_BUFFER", "", `{"operation": "add", "message": "hello"}`, "user: hello"},
		{"CONVERSATION_BUFFER", "", `{"operation": "get"}`, "user: hello"},
		{"CONVERSATION_BUFFER", "", `{"operation": "clear"}`, ""},
		{"CONVERSATION_SUMMARY", "", `{"operation": "update", "messages": ["hello"]}`, "user: hello"},
		{"VECTOR_DATABASE", "", `{"operation": "store", "items": [{"id": "a", "content": "red apples"}]}`, "- red apples"},
		{"VECTOR_DATABASE", "", `{"operation": "search", "query": "red apples"}`, "- red apples"},
		{"KEY_VALUE_STORE", "", `{"operation": "set", "key": "k", "value": 7}`, "k = 7"},
		{"KEY_VALUE_STORE", "", `{"operation": "get", "key": "k"}`, "k = 7"},
		{"KEY_VALUE_STORE", "", `{"operation": "keys"}`, "k"},
		{"DOCUMENT_STORE", "", `{"operation": "store", "title": "T", "content": "green pears"}`, "[T]\ngreen pears"},
		{"DOCUMENT_STORE", "", `{"operation": "search", "query": "pears"}`, "[T]\ngreen pears"},
		{"ENTITY_MEMORY", "", `{"operation": "extract", "content": "Ada Lovelace works at Acme Corp."}`, "Ada Lovelace (person); works_at Acme Corp\nAcme Corp (organization)"},
		{"ENTITY_MEMORY", "", `{"operation": "get", "name": "acme corp"}`, "Acme Corp (organization)"},
		{"EPISODIC_MEMORY", "", `{"operation": "store", "actor": "ann", "action": "left"}`, "2030-01-31T09:00:00Z ann left"},
		{"EPISODIC_MEMORY", "", `{"operation": "query"}`, "2030-01-31T09:00:00Z ann left"},
		{"KNOWLEDGE_BASE", "", `{"operation": "store", "content": "The order needs a signature."}`, "- order needs signature (0.90)"},
		{"KNOWLEDGE_BASE", `{"confidence_threshold": 0.95}`, `{"operation": "query", "query": "signature"}`, ""},
		{"GRAPH_MEMORY", "", `{"operation": "add_and_query", "relationships": [{"source": "a", "target": "b"}], "start_node": "a"}`, "a -related_to- b (1.00)"},
		{"WORKING_MEMORY", "", `{"operation": "store", "key": "k", "value": 7}`, "k = 7"},
		{"WORKING_MEMORY", "", `{"operation": "get", "key": "k"}`, "k = 7"},
		{"WORKING_MEMORY", `{"max_context_chars": 2}`, `{"operation": "list"}`, ""},
	} {
		r.want(c.kind, c.config, c.input, `{"context": `+strconv.Quote(c.want)+`}`)
	}
}

// A threshold that suits an embedding model finds nothing when only words are compared; the run says why.
func TestMemoryVectors_ThresholdOfAModel(t *testing.T) {
	t.Parallel()
	const kind = "VECTOR_DATABASE"
	r := newMemoryRig(t)
	r.want(kind, "", `{"operation": "store", "items": [{"id": "a", "content": "API authentication can be configured using JWT tokens"}]}`, `{"stored": true}`)
	const asks = `{"operation": "search", "query": "How do I configure authentication in the API?"}`
	r.want(kind, "", asks, `{"total_results": 1}`)
	if len(r.warnings) != 0 {
		t.Errorf("warned of %q", r.warnings)
	}
	r.want(kind, `{"similarity_threshold": 0.75}`, asks, `{"total_results": 0}`)
	if len(r.warnings) != 1 || !strings.Contains(r.warnings[0], "similarity_threshold") {
		t.Errorf("warned of %q", r.warnings)
	}
}

func TestMemoryGraph_NearestThenStrongest(t *testing.T) {
	t.Parallel()
	const kind = "GRAPH_MEMORY"
	r := newMemoryRig(t)
	r.want(kind, "", `{"operation": "add", "nodes": [{"id": "a", "label": "Alpha", "type": "topic", "properties": {"x": 1}}, "b"], "relationships": [
		{"source": "a", "target": "b", "weight": 0.5}, {"source": "a", "target": "c", "weight": 0.9, "type": "part_of"}, {"source": "b", "target": "d", "weight": 1},
		{"source": "c", "target": "d", "weight": 0.8}, {"source": "d", "target": "e"}, {"source": "a", "target": "weak", "weight": 0.29}, {"source": "b", "target": "b", "weight": 1}]}`, `{"stored": true}`)
	r.want(kind, "", `{"operation": "query", "start_node": "a"}`, `{"connected_nodes": [
		{"node_id": "c", "distance": 1, "connection_strength": 0.9}, {"node_id": "b", "distance": 1, "connection_strength": 0.5}, {"node_id": "d", "distance": 2, "connection_strength": 0.72}],
		"paths": [{"nodes": ["a", "c"], "relationships": ["part_of"], "strength": 0.9}, {"nodes": ["a", "b"]}, {"nodes": ["a", "c", "d"], "strength": 0.72}],
		"relationship_summary": "a -part_of- c (0.90)\na -related_to- b (0.50)\na -part_of- c -related_to- d (0.72)"}`)
	reach := func(input string, want ...string) {
		t.Helper()
		out := r.want(kind, "", input, `{}`)
		var list []memory.Connected
		field(t, out, "connected_nodes", &list)
		var got []string
		for _, c := range list {
			got = append(got, c.NodeID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: reached %q, want %q", input, got, want)
		}
	}
	reach(`{"operation": "query", "start_node": "a", "filters": {"depth": 1, "min_strength": 0.6}}`, "c")
	reach(`{"operation": "query", "start_node": "a", "filters": {"relationship_types": ["part_of"]}}`, "c")
	reach(`{"operation": "query", "start_node": "e", "filters": {"direction": "out"}}`)
	reach(`{"operation": "query", "start_node": "e", "filters": {"direction": "in"}}`, "d", "b", "c")
	reach(`{"operation": "query", "start_node": "b", "filters": {"node_types": ["topic"]}}`, "a")
	r.want(kind, "", `{"operation": "path", "from": "a", "to": "e"}`, `{"paths": [{"nodes": ["a", "c", "d", "e"], "strength": 0.72}]}`)
	r.want(kind, "", `{"operation": "path", "from": "e", "to": "a", "filters": {"direction": "out"}}`, `{"paths": []}`)
	r.want(kind, "", `{"operation": "path", "from": "a", "to": "a"}`, `{"paths": [{"nodes": ["a"], "relationships": [], "strength": 1}]}`)
	r.want(kind, "", `{"operation": "add_and_query", "start_node": "e", "relationships": [{"source": "e", "target": "f"}]}`, `{"connected_nodes": [{"node_id": "d"}, {"node_id": "f"}, {"node_id": "b"}, {"node_id": "c"}]}`)
	// What is added again replaces its weight, and keeps what is not said.
	r.want(kind, "", `{"operation": "add", "nodes": [{"id": "a"}], "relationships": [{"source": "a", "target": "b", "weight": 1}]}`, `{}`)
	r.want(kind, "", `{"operation": "query", "start_node": "b", "filters": {"depth": 1, "node_types": ["topic"]}}`, `{"connected_nodes": [{"node_id": "a", "label": "Alpha", "connection_strength": 1}]}`)
	r.want(kind, "", `{"operation": "load_context", "query": "what about alpha?"}`, `{"context": "a -related_to- b (1.00)\na -part_of- c (0.90)\na -related_to- b -related_to- d (1.00)"}`)
	r.want(kind, "", `{"operation": "delete", "relationships": [{"source": "d", "target": "e"}]}`, `{"deleted": 1}`)
	r.want(kind, "", `{"operation": "delete", "nodes": ["b"]}`, `{"deleted": 4}`) // it and three edges
	r.want(kind, "", `{"operation": "path", "from": "a", "to": "e"}`, `{"paths": []}`)
	reach(`{"operation": "query", "start_node": "a", "filters": {"depth": 10}}`, "c", "d")

	// A circle ends, and no more than a thousand are told.
	var edges []string
	for i := range 1500 {
		edges = append(edges, fmt.Sprintf(`{"source": "hub", "target": "n%04d", "weight": %g}, {"source": "n%04d", "target": "n%04d"}`, i, 0.3+float64(i%7)/10, i, (i+1)%1500))
	}
	r.want(kind, "", `{"operation": "add", "relationships": [`+strings.Join(edges, ",")+`]}`, `{}`)
	out := r.want(kind, "", `{"operation": "query", "start_node": "hub", "filters": {"depth": 5}}`, `{}`)
	var list []memory.Connected
	field(t, out, "connected_nodes", &list)
	if len(list) != 1000 || list[0].ConnectionStrength != 0.9 {
		t.Errorf("%d nodes were reached, beginning with %+v", len(list), list[0])
	}
	r.want(kind, "", `{"operation": "path", "from": "hub", "to": "n0000"}`, `{"paths": [{"nodes": ["hub", "n0000"]}]}`)
}

func TestMemoryWorking_EvictsAndExpires(t *testing.T) {
	t.Parallel()
	const kind = "WORKING_MEMORY"
	r := newMemoryRig(t)
	put := func(policy, key string, importance float64) {
		t.Helper()
		r.now = r.now.Add(time.Second)
		r.want(kind, `{"capacity_limit": 3, "namespace": "`+policy+`", "eviction_policy": "`+policy+`"}`, fmt.Sprintf(`{"operation": "store", "key": %q, "value": %q, "importance": %v, "tags": ["t", %q]}`, key, key, importance, key), `{"stored": true, "operation_result": {"stored": true}}`)
	}
	for policy, want := range map[string]string{
		"importance": `{"current_state": {"b": "b", "c": "c", "d": "d"}}`, // a is the least important
		"fifo":       `{"current_state": {"b": "b", "c": "c", "d": "d"}}`,
		"lru":        `{"current_state": {"a": "a", "c": "c", "d": "d"}}`, // b was not asked for
	} {
		config := `{"capacity_limit": 3, "namespace": "` + policy + `", "eviction_policy": "` + policy + `"}`
		put(policy, "a", 0.1)
		put(policy, "b", 0.9)
		put(policy, "c", 0.5)
		r.now = r.now.Add(time.Second)
		r.want(kind, config, `{"operation": "retrieve", "key": "a"}`, `{"operation": "get", "operation_result": "a"}`)
		put(policy, "d", 0.2)
		r.want(kind, config, `{"operation": "list"}`, want)
		r.want(kind, config, `{"operation": "list", "tags": ["t", "d"]}`, `{"operation_result": [{"key": "d", "value": "d", "importance": 0.2, "tags": ["t", "d"]}], "recent_items": [{"key": "d"}, {"key": "c"}, {}], "memory_stats": {"items": 3, "capacity": 3}}`)
		put(policy, "d", 0.3) // known: nothing has to go
		r.want(kind, config, `{"operation": "list"}`, `{"memory_stats": {"items": 3, "evicted": 0}}`)
	}
	r.want(kind, "", `{"operation": "store", "key": "k", "value": {"a": [1]}, "ttl_override": 5}`, `{}`)
	r.want(kind, "", `{"operation": "load_context"}`, `{"context": "k = {\"a\":[1]}"}`)
	r.now = r.now.Add(5 * time.Second)
	r.want(kind, "", `{"operation": "get", "key": "k"}`, `{"operation_result": null, "current_state": {}}`)
}

// TestMemoryWorking_ChildrenAndForksStartWithACopy uses the summaries of executions as a host writes them.
func TestMemoryWorking_ChildrenAndForksStartWithACopy(t *testing.T) {
	t.Parallel()
	const kind = "WORKING_MEMORY"
	r := newMemoryRig(t)
	begin := func(id, parent, fork string) {
		t.Helper()
		a := &store.Append{Execution: id, Time: 1, Body: []byte("{}"), Create: &store.Execution{ID: id, Status: engine.StatusRunning, Priority: 3, User: "ada", Parent: parent, ForkedFrom: fork}}
		if err := r.stores.Journal.Append(t.Context(), r.principal(), a); err != nil {
			t.Fatal(err)
		}
	}
	at := func(execution, input, want string) {
		t.Helper()
		r.execution = execution
		r.want(kind, "", input, want)
	}
	begin("parent", "", "")
	at("parent", `{"operation": "store", "key": "k", "value": 1, "importance": 0.8}`, `{}`)
	begin("child", "parent", "")
	begin("fork", "", "parent")
	begin("grandchild", "between", "")
	begin("between", "child", "") // never uses its own
	begin("stranger", "", "")
	at("child", `{"operation": "get", "key": "k"}`, `{"operation_result": 1, "recent_items": [{"importance": 0.8}]}`)
	at("child", `{"operation": "store", "key": "k", "value": 2}`, `{}`)
	at("parent", `{"operation": "get", "key": "k"}`, `{"operation_result": 1}`)
	at("parent", `{"operation": "store", "key": "later", "value": 1}`, `{}`)
	at("child", `{"operation": "list"}`, `{"current_state": {"k": 2}, "memory_stats": {"items": 1}}`)
	at("fork", `{"operation": "list"}`, `{"current_state": {"k": 1}}`)
	at("fork", `{"operation": "clear"}`, `{"current_state": {}}`)
	at("fork", `{"operation": "list"}`, `{"memory_stats": {"items": 0}}`) // not copied again
	at("parent", `{"operation": "list"}`, `{"current_state": {"k": 1, "later": 1}}`)
	at("grandchild", `{"operation": "get", "key": "k"}`, `{"operation_result": 2}`)
	at("stranger", `{"operation": "list"}`, `{"current_state": {}}`)
	r.user = "bob"
	at("parent", `{"operation": "list"}`, `{"current_state": {}}`)
}
