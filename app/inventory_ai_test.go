package app

import (
	"maps"
	"testing"
)

// TestInventory_Agents: see inventory_test.go.
func TestInventory_Agents(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t)
	w.putTemplates(t, "AI_AGENT.OPENAI_CHATGPT", `{"system_prompt": "one"}`, `{"system_prompt": "two"}`)
	const base = `"profile_id": "$P", "stream": false, "max_retries": 0`
	const asks = base + `, "user_prompt": "Say hi."`
	const files = "  - {id: files, name: files, description: d, type: TOOL, subtype: FILE_PROCESSOR}\n"
	const calls = `  - {id: files, name: files, description: d, type: TOOL, subtype: HTTP_CLIENT, configurations: {allowed_domains: ["127.0.0.1"]}}` + "\n"

	completion := func(block string) map[string]proof {
		return map[string]proof{
			block + ".temperature":       {with: asks, one: `0.1`, other: `0.4`},
			block + ".max_tokens":        {with: asks, one: `100`, other: `200`},
			block + ".top_p":             {with: asks, one: `0.1`, other: `0.4`},
			block + ".top_k":             {with: asks, other: `4`},
			block + ".stop":              {with: asks, one: `"END"`, other: `["END", "STOP"]`},
			block + ".frequency_penalty": {with: asks, other: `0.4`},
			block + ".presence_penalty":  {with: asks, other: `0.4`},
			block + ".reasoning_effort":  {with: asks, other: `"low"`},
		}
	}
	schema := func(word string) string {
		return `{"type": "object", "properties": {"word": {"type": "string", "description": "` + word + `"}}}`
	}
	turn := map[string]proof{
		"model":                       {with: asks, one: `"m1"`, other: `"m2"`},
		"profile_id":                  {with: `"user_prompt": "Say hi.", "stream": false`, one: `"$P"`, other: `"$Q"`},
		"system_prompt":               {with: asks, one: `"Be kind."`, other: `"Be brief."`},
		"user_prompt":                 {with: base, one: `"Say hi."`, other: `"Say ho."`},
		"prompt":                      {with: base, one: `"Say hi."`, other: `"Say ho."`},
		"temperature":                 {with: asks, one: `0.1`, other: `0.4`},
		"max_tokens":                  {with: asks, one: `100`, other: `200`},
		"top_p":                       {with: asks, one: `0.1`, other: `0.4`},
		"response_format":             {with: asks, one: `"text"`, other: `"json"`},
		"output_schema":               {with: asks, one: schema("one"), other: schema("other")},
		"max_tool_iterations":         {with: asks, one: `0`, other: `5`, scene: "tool"},
		"parallel_tool_calls":         {with: asks, one: `true`, other: `false`, scene: "pair"},
		"tool_approval":               {with: asks, one: `"never"`, other: `"always"`, scene: "tool"},
		"history_size":                {with: asks, one: `0`, other: `3`, scene: "history $P"},
		"stream":                      {with: `"profile_id": "$P", "user_prompt": "Say hi."`, one: `false`, other: `true`, scene: "watched"},
		"first_token_timeout_seconds": {with: asks + `, "llm_timeout_seconds": 2`, one: `1`, scene: "slow"},
		"llm_timeout_seconds":         {with: asks, one: `1`, other: `2`, scene: "slow"},
		"fallback_profiles":           {with: asks, one: `[]`, other: `["$Q"]`, scene: "refuses"},

		"generation_config":                    {with: asks, one: `{"temperature": 0.1}`, other: `{"temperature": 0.4}`},
		"generation_config.response_mime_type": {with: asks, one: `"text/plain"`, other: `"application/json"`},
		"generation_config.response_schema":    {with: asks, one: schema("one"), other: schema("other")},
		"output_processing":                    {with: asks, one: `{"parse_json": false}`, other: `{"parse_json": true}`},
		"output_processing.format":             {with: asks, one: `"text"`, other: `"json"`},
		"output_processing.parse_json":         {with: asks, one: `false`, other: `true`},
		"output_processing.output_schema":      {with: asks, one: schema("one"), other: schema("other")},
	}
	maps.Copy(turn, completion("generation_config"))
	kind := func(own map[string]proof) map[string]proof {
		all := maps.Clone(turn)
		maps.Copy(all, own)
		return all
	}
	llmOwn := map[string]proof{
		"messages":   {with: base, one: `[{"role": "user", "content": "one"}]`, other: `[{"role": "user", "content": "other"}]`},
		"tools":      {with: asks, one: `[]`, other: `[{"name": "look", "parameters": {"type": "object"}}]`},
		"parameters": {with: asks, one: `{"temperature": 0.1}`, other: `{"temperature": 0.4}`},
	}
	maps.Copy(llmOwn, completion("parameters"))
	const task = `"llm_profile": "$P", "question": "Q"`
	fieldInventory{
		family: "AI_AGENT", sample: "AI_AGENT.OPENAI_CHATGPT",
		kinds: map[string]map[string]proof{
			"AI_AGENT.OPENAI_CHATGPT": kind(map[string]proof{
				"frequency_penalty": {with: asks, one: `0.1`, other: `0.4`},
				"presence_penalty":  {with: asks, one: `0.1`, other: `0.4`},
				"reasoning_effort":  {with: asks, one: `"low"`, other: `"high"`},
			}),
			"AI_AGENT.ANTHROPIC_CLAUDE": kind(map[string]proof{
				"top_k":                  {with: asks, one: `1`, other: `4`},
				"thinking_budget_tokens": {with: asks, one: `1024`, other: `2048`},
				"thinking_mode":          {with: asks, one: `false`, other: `"on"`},
			}),
			"AI_AGENT.GOOGLE_GEMINI": kind(map[string]proof{
				"top_k":           {with: asks, one: `1`, other: `4`},
				"safety_settings": {with: asks, one: `{"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}`, other: `{"HARM_CATEGORY_HARASSMENT": "BLOCK_ONLY_HIGH"}`},
			}),
			"AI_AGENT.LLM": kind(llmOwn),
			"AI_AGENT.MCP_AGENT": {
				"agent_id":        {with: `"question": "Q"`, one: `"a"`, other: `"b"`},
				"llm_profile":     {with: `"question": "Q"`, one: `"$P"`, other: `"$Q"`},
				"mcp_servers":     {with: task, one: `["a"]`, other: `["b"]`},
				"auto_execute":    {with: task, one: `false`, other: `true`},
				"policy":          {with: task, one: `{"auto_approve": []}`, other: `{"auto_approve": ["low", "medium", "high"]}`},
				"limits":          {with: task, one: `{"json_tries": 1}`, other: `{"json_tries": 2}`},
				"language":        {with: task, one: `"en"`, other: `"zh"`},
				"question":        {with: `"llm_profile": "$P"`, one: `"Q"`, other: `"R"`},
				"params":          {with: task, one: `{"a": 1}`, other: `{"a": 2}`},
				"conversation_id": {with: task, one: `"talk-a"`, other: `"talk-b"`},
			},
		},
		shared: map[string]proof{
			"timeout":         {with: asks, one: `1`, other: `2`, scene: "slow"},
			"max_retries":     {with: `"profile_id": "$P", "stream": false, "user_prompt": "Say hi."`, one: `0`, other: `1`, scene: "flaky"},
			"on_error":        {with: asks, one: `"fail"`, other: `"continue"`, scene: "refuses"},
			"default_output":  {with: asks + `, "on_error": "default_output"`, one: `{"a": 1}`, other: `{"a": 2}`, scene: "refuses"},
			"on_unknown":      {with: asks, other: `"fail"`, told: "does nothing here"},
			"enabled":         {with: asks, one: `true`, other: `false`},
			"credential_id":   {with: `"model": "m", "stream": false, "user_prompt": "Say hi."`, one: `"$C"`, other: `"$D"`},
			"template_id":     {with: asks, one: `"one"`, other: `"two"`},
			"enable_filling":  {with: asks + `, "template_id": "fill"`, one: `false`, other: `true`},
			"filling_profile": {with: asks + `, "template_id": "fill", "enable_filling": true`, one: `"$P"`, other: `"$Q"`},
			"to_user":         {with: asks, one: `false`, other: `true`},
			"credit_cost":     {with: asks, one: `1`, other: `2`},
		},
		bench: func(t *testing.T, kind, config string, p proof) string {
			r := benchRun{provider: "openai"}
			if k, ok := theKinds().Get(kind); ok && len(k.About.Needs.Credential) == 1 { // that of a provider has its name
				r.provider = k.About.Needs.Credential[0]
			}
			switch p.scene {
			case "tool":
				r.nodes, r.attached = files, "files"
			case "pair":
				r.nodes, r.attached = calls, "files"
			case "history $P":
				r.before = []string{nodeOf("AI_AGENT.LLM", `{profile_id: $P, user_prompt: Before.}`)}
			}
			return w.run(t, kind, config, p, r)
		},
	}.check(t)
}
