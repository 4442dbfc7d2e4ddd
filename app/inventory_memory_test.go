package app

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"tandem/api"
)

// TestInventory_Memories: see inventory_test.go.
func TestInventory_Memories(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t)
	w.putTemplates(t, "MEMORY.KEY_VALUE_STORE", `{"key_prefix": ""}`, `{"key_prefix": "x:"}`)
	// memory completes what a kind of memory has with what all have: its operation, one input that fills it and one that asks it.
	memory := func(fill, ask, other string, model proof, own map[string]proof) map[string]proof {
		all := map[string]proof{
			"session_id":        {chain: []string{fill}, input: ask, one: `"$KEY"`, other: `"$KEYother"`},
			"max_context_chars": {chain: []string{fill}, input: ask, one: `1`, other: `500`},
			"operation":         {chain: []string{fill}, input: strings.Replace(ask, `"operation"`, `"was"`, 1), one: ask[strings.Index(ask, ": ")+2 : strings.Index(ask, ",")], other: other},
			"llm_profile":       model,
		}
		maps.Copy(all, own)
		return all
	}
	modelless := proof{other: `"p"`, told: "asks no model"}
	const seldom = `"retention_period": "100 years"`
	const (
		set, get = `{"operation": "set", "key": "k", "value": 1}`, `{"operation": "get", "key": "k"}`
		fact     = `{"operation": "store", "content": "The order needs a signature."}`
		learns   = "MEMORY.KNOWLEDGE_BASE"
	)
	fieldInventory{
		family: "MEMORY", sample: "MEMORY.KEY_VALUE_STORE",
		kinds: map[string]map[string]proof{
			"MEMORY.CONVERSATION_BUFFER": memory(`{"operation": "remember", "user": "Ada is 7.", "assistant": "Yes."}`, `{"operation": "get", "x": 1}`, `"clear"`,
				proof{with: `"max_messages": 2`, chain: []string{`{"operation": "remember", "user": "a", "assistant": "b"}`}, input: `{"operation": "add", "message": "c"}`, other: `"$P"`},
				map[string]proof{
					"max_messages":    {chain: []string{`{"operation": "remember", "user": "a", "assistant": "b"}`}, input: `{"operation": "add", "message": "c"}`, one: `2`, other: `50`},
					"auto_summarize":  {with: `"max_messages": 2`, chain: []string{`{"operation": "remember", "user": "a", "assistant": "b"}`}, input: `{"operation": "add", "message": "c"}`, one: `true`, other: `false`},
					"summarize_count": {with: `"max_messages": 4`, chain: []string{`{"operation": "remember", "user": "a", "assistant": "b"}`}, input: `{"operation": "remember", "user": "c", "assistant": "d"}`, one: `1`, other: `2`},
				}),
			"MEMORY.CONVERSATION_SUMMARY": memory(`{"operation": "update", "messages": ["Ada is 7.", "Bob is 8."]}`, `{"operation": "get", "x": 1}`, `"clear"`,
				proof{with: `"update_every": 1`, input: `{"operation": "update", "messages": ["Ada is 7."]}`, other: `"$P"`},
				map[string]proof{
					"max_summary_chars": {with: `"update_every": 1`, input: `{"operation": "update", "messages": ["Ada is 7 years old."]}`, one: `8`, other: `100`},
					"update_every":      {input: `{"operation": "update", "messages": ["Ada is 7."]}`, one: `1`, other: `5`},
				}),
			"MEMORY.VECTOR_DATABASE": memory(`{"operation": "store", "items": [{"id": "a", "content": "red apples"}, {"id": "b", "content": "red apples too"}]}`, `{"operation": "search", "query": "red apples"}`, `"reindex"`, modelless,
				map[string]proof{
					"embedding_profile":    {input: `{"operation": "store", "items": ["red apples"]}`, other: `"$P"`},
					"auto_capture_from_ai": {input: `{"operation": "remember", "user": "a", "assistant": "b"}`, one: `true`, other: `false`},
					"similarity_threshold": {chain: []string{`{"operation": "store", "items": [{"id": "a", "content": "red apples"}]}`}, input: `{"operation": "search", "query": "green apples"}`, one: `0.1`, other: `1`},
					"max_results":          {chain: []string{`{"operation": "store", "items": [{"id": "a", "content": "red apples"}, {"id": "b", "content": "red apples too"}]}`}, input: `{"operation": "search", "query": "red apples"}`, one: `1`, other: `5`},
				}),
			"MEMORY.KEY_VALUE_STORE": memory(`{"operation": "set", "key": "k", "value": "a long value"}`, `{"operation": "get", "key": "k"}`, `"exists"`, modelless,
				map[string]proof{
					"default_ttl": {input: `{"operation": "set", "key": "k", "value": 1}`, one: `600`, other: `900`, scene: "stored"},
					"key_prefix":  {chain: []string{`{"operation": "set", "key": "k", "value": 1}`}, input: `{"operation": "get", "key": "k"}`, other: `"x:"`},
					"max_keys":    {chain: []string{`{"operation": "set", "key": "k", "value": 1}`}, input: `{"operation": "set", "key": "l", "value": 1}`, one: `1`, other: `5`},
				}),
			"MEMORY.DOCUMENT_STORE": memory(`{"operation": "store", "document_id": "a", "title": "apples", "content": "red and round", "tags": ["fruit"]}`, `{"operation": "get", "document_id": "a"}`, `"delete"`, modelless,
				map[string]proof{
					"collection_name":      {chain: []string{`{"operation": "store", "document_id": "a", "content": "red"}`}, input: `{"operation": "get", "document_id": "a"}`, one: `"documents"`, other: `"others"`},
					"search_fields":        {chain: []string{`{"operation": "store", "document_id": "a", "title": "apples", "content": "red"}`}, input: `{"operation": "search", "query": "apples"}`, one: `["title"]`, other: `["content"]`},
					"max_results":          {chain: []string{`{"operation": "store", "document_id": "a", "content": "red"}`, `{"operation": "store", "document_id": "b", "content": "red"}`}, input: `{"operation": "search", "query": "red"}`, one: `1`, other: `5`},
					"relevance_scoring":    {chain: []string{`{"operation": "store", "document_id": "a", "content": "red red apples"}`}, input: `{"operation": "search", "query": "red"}`, one: `"bm25"`, other: `"tf_idf"`},
					"auto_capture_from_ai": {input: `{"operation": "remember", "user": "a", "assistant": "b"}`, one: `true`, other: `false`},
				}),
			"MEMORY.ENTITY_MEMORY": memory(`{"operation": "extract", "content": "Ada Lovelace works at Acme Corp."}`, `{"operation": "get", "name": "Ada Lovelace", "content": "Bob Dylan works at Acme Corp."}`, `"extract"`,
				proof{input: `{"operation": "extract", "content": "Ada Lovelace works at Acme Corp."}`, other: `"$P"`},
				map[string]proof{
					"entity_types":         {input: `{"operation": "extract", "content": "Ada Lovelace works at Acme Corp."}`, one: `["person"]`, other: `["company"]`},
					"confidence_threshold": {input: `{"operation": "extract", "content": "Ada Lovelace works at Acme Corp."}`, one: `0.5`, other: `0.9`},
				}),
			"MEMORY.EPISODIC_MEMORY": memory(`{"operation": "store", "actor": "ann", "action": "left"}`, `{"operation": "query", "actor": "bob", "action": "came"}`, `"store"`, modelless,
				map[string]proof{
					"importance_threshold":    {input: `{"operation": "store", "actor": "ann", "action": "left"}`, one: `0.1`, other: `0.9`},
					"retention_period":        {input: `{"operation": "store", "actor": "ann", "action": "left", "timestamp": "2020-01-01"}`, one: `"1 day"`, other: `"100 years"`},
					"temporal_context_window": {with: seldom, chain: []string{`{"operation": "store", "actor": "ann", "action": "left", "timestamp": "2020-01-01"}`}, input: `{"operation": "load_context"}`, one: `"7 days"`, other: `"100 years"`},
				}),
			"MEMORY.KNOWLEDGE_BASE": memory(`{"operation": "store", "content": "The order needs a signature."}`, `{"operation": "query", "query": "signature", "content": "The sky is blue."}`, `"store"`,
				proof{input: `{"operation": "store", "content": "The order needs a signature."}`, other: `"$P"`},
				map[string]proof{
					"confidence_threshold": {chain: []string{`{"operation": "store", "content": "The order needs a signature."}`}, input: `{"operation": "query", "query": "signature"}`, one: `0.5`, other: `1`},
					"knowledge_domains":    {input: `{"operation": "store", "facts": [{"subject": "a", "predicate": "is", "object": "b", "domain": "x"}]}`, one: `["x"]`, other: `["y"]`},
				}),
			"MEMORY.GRAPH_MEMORY": memory(`{"operation": "add", "relationships": [{"source": "a", "target": "b"}, {"source": "b", "target": "c", "weight": 0.5}]}`, `{"operation": "query", "start_node": "a", "from": "a", "to": "c"}`, `"path"`,
				proof{input: `{"operation": "remember", "user": "Ada Lovelace works at Acme Corp."}`, other: `"$P"`},
				map[string]proof{
					"node_types":                      {input: `{"operation": "add", "nodes": [{"id": "a", "type": "x"}]}`, one: `["x"]`, other: `["y"]`},
					"relationship_types":              {input: `{"operation": "add", "relationships": [{"source": "a", "target": "b", "type": "x"}]}`, one: `["x"]`, other: `["y"]`},
					"traversal_depth":                 {chain: []string{`{"operation": "add", "relationships": [{"source": "a", "target": "b"}, {"source": "b", "target": "c"}]}`}, input: `{"operation": "query", "start_node": "a"}`, one: `1`, other: `2`},
					"relationship_strength_threshold": {chain: []string{`{"operation": "add", "relationships": [{"source": "a", "target": "b", "weight": 0.5}]}`}, input: `{"operation": "query", "start_node": "a"}`, one: `0.1`, other: `0.9`},
				}),
			"MEMORY.WORKING_MEMORY": memory(`{"operation": "store", "key": "k", "value": "a long value"}`, `{"operation": "get", "key": "k"}`, `"delete"`, modelless,
				map[string]proof{
					"capacity_limit":  {chain: []string{`{"operation": "store", "key": "a", "value": 1}`}, input: `{"operation": "store", "key": "b", "value": 1}`, one: `1`, other: `5`},
					"eviction_policy": {with: `"capacity_limit": 2`, chain: []string{`{"operation": "store", "key": "a", "value": 1, "importance": 0.9}`, `{"operation": "store", "key": "b", "value": 1, "importance": 0.1}`}, input: `{"operation": "store", "key": "c", "value": 1}`, one: `"importance"`, other: `"fifo"`},
					"ttl_seconds":     {input: `{"operation": "store", "key": "k", "value": 1}`, one: `600`, other: `900`, scene: "stored"},
					"namespace":       {chain: []string{`{"operation": "store", "key": "a", "value": 1}`}, input: `{"operation": "get", "key": "a"}`, other: `"x"`},
				}),
		},
		shared: map[string]proof{
			"timeout":         {kind: learns, with: `"llm_profile": "$P", "max_retries": 0`, input: fact, one: `1`, other: `2`, scene: "slow"},
			"max_retries":     {kind: "MEMORY.VECTOR_DATABASE", with: `"embedding_profile": "$P"`, input: `{"operation": "store", "items": ["red apples"]}`, one: `0`, other: `1`, scene: "flaky"},
			"template_id":     {input: get, one: `"one"`, other: `"two"`, chain: []string{set}},
			"to_user":         {kind: "MEMORY.CONVERSATION_SUMMARY", with: `"update_every": 1`, input: `{"operation": "update", "messages": ["Ada is 7."]}`, one: `false`, other: `true`},
			"credit_cost":     {input: get, one: `1`, other: `2`},
			"default_output":  {with: `"on_error": "default_output"`, input: `{"operation": "get"}`, one: `{"a": 1}`, other: `{"a": 2}`},
			"on_error":        {input: `{"operation": "get"}`, one: `"fail"`, other: `"continue"`},
			"on_unknown":      {other: `"fail"`, told: "does nothing here"},
			"enabled":         {input: `{"operation": "get", "key": "k"}`, one: `true`, other: `false`},
			"credential_id":   {other: `"c"`, told: "opens no credential"},
			"enable_filling":  {with: `"template_id": "fill"`, input: get, one: `false`, other: `true`},
			"filling_profile": {with: `"template_id": "fill", "enable_filling": true`, input: get, one: `"$P"`, other: `"$Q"`},
		},
		bench: func(t *testing.T, kind, config string, p proof) string {
			r := benchRun{provider: "openai", params: true}
			session := func(config string) string {
				if strings.Contains(config, "session_id") {
					return config
				}
				return strings.Replace(strings.Replace(config, "{", `{"session_id": "$KEY", `, 1), ", }", "}", 1)
			}
			for _, input := range p.chain {
				r.before = append(r.before, nodeOf(kind, session("{"+p.with+"}"))+", input_params: "+input)
			}
			if p.scene == "stored" {
				r.rest = func(key, _ string) string { return w.storedIn(t, key) }
			}
			return w.run(t, kind, session(config), p, r)
		},
	}.check(t)
}

// storedIn is what is kept in the memories of a session, and for how long.
func (w *workbench) storedIn(t *testing.T, session string) string {
	t.Helper()
	var b strings.Builder
	for _, m := range want[api.Memories](t, w.call(t, "operator", "GET", "/memory?session_id="+session, nil), http.StatusOK).Memories {
		for _, r := range want[api.MemoryRecords](t, w.call(t, "operator", "GET", "/memory/"+m.ID+"/records", nil), http.StatusOK).Records {
			fmt.Fprintln(&b, "stored", r.Sort, r.ID, (r.ExpiresTime-r.CreatedTime+5000)/10_000*10) // what is written a little later is the same
		}
	}
	return b.String()
}
