package memory

import "strings"

// fields are what each operation reads of its input, besides the name of the operation. What an input has beside them is
// somebody else's, whatever it looks like.
func fields() map[string]string {
	return map[string]string{
		"CONVERSATION_BUFFER.add":          "message role metadata",
		"CONVERSATION_BUFFER.get":          "recent_count role",
		"CONVERSATION_BUFFER.clear":        "",
		"CONVERSATION_SUMMARY.update":      "messages",
		"CONVERSATION_SUMMARY.get":         "",
		"CONVERSATION_SUMMARY.clear":       "",
		"VECTOR_DATABASE.search":           "query filters",
		"VECTOR_DATABASE.store":            "items replaces",
		"VECTOR_DATABASE.update":           "items",
		"VECTOR_DATABASE.delete":           "ids filters",
		"VECTOR_DATABASE.reindex":          "",
		"KEY_VALUE_STORE.get":              "key",
		"KEY_VALUE_STORE.delete":           "key",
		"KEY_VALUE_STORE.exists":           "key",
		"KEY_VALUE_STORE.set":              "key value options",
		"KEY_VALUE_STORE.keys":             "options",
		"KEY_VALUE_STORE.increment":        "key by options",
		"KEY_VALUE_STORE.clear":            "",
		"DOCUMENT_STORE.search":            "query filters",
		"DOCUMENT_STORE.store":             "content file document_id title description tags metadata",
		"DOCUMENT_STORE.update":            "content file document_id title description tags metadata",
		"DOCUMENT_STORE.delete":            "document_id",
		"DOCUMENT_STORE.get":               "document_id",
		"ENTITY_MEMORY.extract":            "content",
		"ENTITY_MEMORY.get":                "name",
		"ENTITY_MEMORY.search":             "query",
		"ENTITY_MEMORY.merge":              "ids",
		"ENTITY_MEMORY.delete":             "id",
		"EPISODIC_MEMORY.store":            "actor action object context outcome importance timestamp event_type",
		"EPISODIC_MEMORY.query":            "query query_params",
		"EPISODIC_MEMORY.delete":           "id ids query_params",
		"KNOWLEDGE_BASE.store":             "facts content domain",
		"KNOWLEDGE_BASE.extract_and_store": "facts content domain",
		"KNOWLEDGE_BASE.query":             "query domain",
		"KNOWLEDGE_BASE.update":            "id subject predicate object confidence domain",
		"KNOWLEDGE_BASE.delete":            "id",
		"GRAPH_MEMORY.add":                 "nodes relationships",
		"GRAPH_MEMORY.query":               "start_node filters",
		"GRAPH_MEMORY.add_and_query":       "nodes relationships start_node filters",
		"GRAPH_MEMORY.path":                "from to filters",
		"GRAPH_MEMORY.delete":              "nodes relationships id",
		"WORKING_MEMORY.store":             "key value importance tags ttl_override",
		"WORKING_MEMORY.get":               "key",
		"WORKING_MEMORY.retrieve":          "key",
		"WORKING_MEMORY.list":              "tags",
		"WORKING_MEMORY.delete":            "key",
		"WORKING_MEMORY.clear":             "",
	}
}

// Fields are what an operation of a kind of memory reads of its input; false: it has no such operation.
func Fields(kind, operation string) ([]string, bool) {
	switch operation {
	case LoadContext:
		return []string{"operation", "query"}, true
	case Remember:
		return []string{"operation", "user", "assistant"}, true
	}
	list, ok := fields()[kind+"."+operation]
	return append([]string{"operation"}, strings.Fields(list)...), ok
}

// Operation is what a node does: what its configurations say, or its input. The node that it is attached to asks it with its
// input, whatever it does on its own.
func Operation(config, input string) string { return operation(config, input, "") }
