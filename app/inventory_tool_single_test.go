package app

import "maps"

// singleTools are the kinds that give a model one tool each.
func singleTools() map[string]map[string]proof {
	return map[string]map[string]proof{
		"TOOL.WORKFLOW_TOOL": workflowToolProofs(), "TOOL.DATABASE_TOOL": databaseToolProofs(), "TOOL.MEMORY_TOOL": memoryToolProofs(),
	}
}

// singleTool completes what a kind with one tool has with what all of them have: base are the configurations it must have, args and others
// arguments that work.
func singleTool(base, args, others string, own map[string]proof) map[string]proof {
	run := base + `, "function_args": ` + args
	all := map[string]proof{
		"tool_name":     {with: base, one: `"a"`, other: `"b"`, scene: "attached"},
		"description":   {with: base, one: `"a"`, other: `"b"`, scene: "attached"},
		"tool_prefix":   {with: base, one: `"a_"`, other: `"b_"`, scene: "attached"},
		"approval":      {with: run, one: `"never"`, other: `"always"`},
		"function_args": {with: base, one: args, other: others},
		"context":       {with: run, one: `"a"`, other: `{"b": 1}`},
		"call_id":       {with: run, one: `"a"`, other: `"b"`},
	}
	maps.Copy(all, own)
	return all
}

// workflowToolFlows are two workflows that the proofs of TOOL.WORKFLOW_TOOL call.
func workflowToolFlows() []string {
	flow := func(id, says string) string {
		return `{metadata: {id: ` + id + `, name: ` + id + `, description: d}, nodes: [{id: a, name: a, description: d, type: ACTION, subtype: DATA_FORMATTING, configurations: {format_type: template, template: "` + says + ` {{name}}"}},` +
			` {id: b, name: b, description: d, type: CALL, subtype: EMPTY}], connections: [{from_node: a, to_node: b}]}`
	}
	return []string{flow("tool_one", "one"), flow("tool_two", "two")}
}

func workflowToolProofs() map[string]proof {
	const base, args = `"workflow_id": "tool_one", "revision": "latest"`, `, "function_args": {"name": "Ann"}`
	return singleTool(base, `{"name": "Ann"}`, `{"name": "Bob"}`, map[string]proof{
		"workflow_id":   {with: `"revision": "latest", "output_nodes": ["a"]` + args, one: `"tool_one"`, other: `"tool_two"`},
		"revision":      {with: `"workflow_id": "tool_two", "output_nodes": ["a"]` + args, one: `1`, other: `2`},
		"output_nodes":  {with: base + args, one: `["a"]`, other: `["b"]`},
		"function_args": {with: base + `, "output_nodes": ["a"]`, one: `{"name": "Ann"}`, other: `{"name": "Bob"}`},
	})
}

func databaseToolProofs() map[string]proof {
	const base = `"credential_id": "$SQL", "query": "select n from (select 1 as n union select 2 union select 3) where n >= :n", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}`
	all := singleTool(base, `{"n": 1}`, `{"n": 2}`, map[string]proof{
		"query":      {with: `"credential_id": "$SQL", "function_args": {"n": 1}`, one: `"select :n as a"`, other: `"select :n as b"`},
		"parameters": {with: `"credential_id": "$SQL", "query": "select :n as a", "function_args": {"n": 1}`, one: `{"type": "object"}`, other: `{"type": "object", "required": ["x"]}`},
		"max_rows":   {with: base + `, "function_args": {"n": 1}`, one: `1`, other: `2`},
	})
	made := []string{nodeOf("ACTION.DATABASE_OPERATION", `{"credential_id": "$SQL", "operation": "transaction", "statements": ["create table if not exists made (n int)"]}`)}
	for name, p := range all { // order does not matter: each by itself
		if p.scene == "" {
			p.before = made
			all[name] = p
		}
	}
	return all
}

func memoryToolProofs() map[string]proof {
	store := nodeOf("MEMORY.VECTOR_DATABASE", `{"session_id": "$KEY", "operation": "store"}`) + `, input_params: {items: [{id: a, content: red apples}, {id: b, content: red apples too}]}`
	keep := nodeOf("MEMORY.DOCUMENT_STORE", `{"session_id": "$KEY", "operation": "store"}`) + `, input_params: {document_id: d, content: red apples}`
	const args = `, "function_args": {"query": "red apples"}`
	both := []string{store, keep}
	return singleTool(`"session_id": "$KEY"`, `{"query": "red apples"}`, `{}`, map[string]proof{
		"memory":               {before: both, with: `"session_id": "$KEY"` + args, one: `"vector"`, other: `"documents"`},
		"session_id":           {before: both, with: args[2:], one: `"$KEY"`, other: `"$KEYother"`},
		"collection_name":      {before: both, with: `"session_id": "$KEY", "memory": "documents"` + args, one: `"documents"`, other: `"others"`},
		"embedding_profile":    {with: `"session_id": "$KEY"` + args, other: `"$P"`},
		"similarity_threshold": {before: both, with: `"session_id": "$KEY"` + args, one: `0.1`, other: `1`},
		"max_results":          {before: both, with: `"session_id": "$KEY"` + args, one: `1`, other: `5`},
	})
}
