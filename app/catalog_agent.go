package app

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/workflow"
)

// completionParameters are the parameters of a completion where they stand together, in the present and the older spellings.
const completionParameters = `temperature:num[0..2]; max_tokens:int[1..]; max_output_tokens, max_completion_tokens -> max_tokens; top_p:num[0..1]; top_k:int[1..];
	stop:str/list; stop_sequences -> stop; frequency_penalty, presence_penalty:num[-2..2]; reasoning_effort{low|medium|high}`

// agentCommon is the configuration of a turn with a model, whoever makes it. What generation_config and output_processing have
// beside the fields listed is dropped with a warning.
const agentCommon = `model; profile_id; llm_profile -> profile_id; system_prompt, user_prompt, prompt:tmpl;
	temperature:num[0..2]; max_tokens=8192[1..]; top_p:num[0..1]; response_format{text|json|schema}=text; output_schema:obj;
	max_tool_iterations=10[0..50]; parallel_tool_calls=true; tool_approval:any; history_size=3[0..]; stream=true;
	first_token_timeout_seconds:num=30[1..]; llm_timeout_seconds:num=300[1..]; fallback_profiles:list;
	generation_config:obj(` + completionParameters + `; response_mime_type; response_schema:obj; ...);
	output_processing:obj(format{text|json|schema}; response_format -> format; parse_json=false; output_schema:obj; schema -> output_schema; ...);
	drop provider_config, model_config, openai_config, anthropic_config, gemini_config, claude_config`

// agentKinds are turns with a model. Their tool calls have classes of their own, so a turn itself may be repeated.
func agentKinds() []kind {
	turn := []string{workflow.DefaultKey, "structured_data"}
	return []kind{
		{subtype: "OPENAI_CHATGPT", effect: workflow.Idempotent, keys: turn, rules: agentRules,
			config: agentCommon + `; frequency_penalty, presence_penalty:num=0[-2..2];
				reasoning_effort{low|medium|high}; need model|profile_id; cred openai`},
		{subtype: "ANTHROPIC_CLAUDE", effect: workflow.Idempotent, keys: turn, rules: agentRules,
			config: agentCommon + `; temperature:num[0..1]; top_k:int[1..]; thinking_budget_tokens=0[0..];
				thinking_mode:any; need model|profile_id; cred anthropic`},
		{subtype: "GOOGLE_GEMINI", effect: workflow.Idempotent, keys: turn, rules: agentRules,
			config: agentCommon + `; top_k:int[1..]; safety_settings:obj; need model|profile_id; cred gemini`},
		{subtype: "LLM", effect: workflow.Idempotent, keys: turn, rules: agentRules,
			config: agentCommon + `; profile_id*; messages:list; tools:list; stream=false; need prompt|messages|user_prompt|system_prompt;
				system -> system_prompt; user -> user_prompt;
				parameters:obj(` + completionParameters + `)`},
		{subtype: "MCP_AGENT", effect: workflow.Idempotent, rules: mcpAgentRules,
			config: `agent_id; llm_profile; profile_id -> llm_profile; mcp_servers:list; auto_execute=false; policy, limits:obj;
				language{zh|en}; question:tmpl; params:obj; conversation_id; need agent_id|llm_profile`},
	}
}

func agentRules(c *config) {
	switch format := c.text("response_format"); {
	case format == "schema" && !c.has("output_schema") && !c.has("output_processing") && !c.has("generation_config") && !c.has("template_id"):
		c.invalid("configurations.output_schema", `is required when response_format is "schema"`)
	case format == "text" && c.has("response_format") && (c.has("output_schema") || c.values["output_processing"].Get("output_schema").IsObject()):
		c.warnf(workflow.ProblemConfig, c.at("output_schema"), `output_schema does nothing while response_format is "text"; set response_format to "schema", or leave one of them out`)
	}
	switch v := c.values["tool_approval"]; {
	case !c.has("tool_approval") || c.isDynamic("tool_approval") || v.IsArray():
	default:
		c.checkField(c.at("tool_approval"), &field{types: []string{"str"}, enum: []string{"never", "once", "always"}}, v)
	}
	for _, block := range []string{"generation_config", "output_processing", "parameters"} {
		if f, ok := c.shape.field(block); ok {
			c.checkBlock(block, f.inner)
		}
	}
	if c.has("profile_id") && c.has("credential_id") {
		c.warnf(workflow.ProblemConfig, c.at("credential_id"), "credential_id does nothing beside profile_id: the profile names its credential; remove one of them")
	}
	if _, ok := c.shape.field("tools"); ok {
		c.checkTools()
	}
}

// checkBlock warns of what a block of parameters has and nobody reads, and of what the node says by itself as well.
func (c *config) checkBlock(name string, inner *shape) {
	c.values[name].ForEach(func(key, value gjson.Result) bool {
		at := join(c.at(name), key.Str)
		meant, known := inner.resolve(key.Str)
		switch _, own := c.values[meant]; {
		case !known && inner.open:
			c.warnf(problemDropped, at, "%q is not known here and is ignored; remove it%s", key.Str, c.suggest(key.Str, inner.names()))
		case known && own && value.Type != gjson.Null:
			c.warnf(workflow.ProblemConfig, at, "%q is ignored, since the node sets %q by itself; keep one of them", name+"."+key.Str, meant)
		}
		return true
	})
}

// checkTools checks the tools that a node lists by itself.
func (c *config) checkTools() {
	for i, item := range c.items("tools") {
		at := fmt.Sprintf("%s[%d]", c.at("tools"), i)
		one := item
		if f := item.Get("function"); item.IsObject() && f.IsObject() {
			one = f
		}
		name := one.Get("name")
		switch server, tool, _ := strings.Cut(item.Str, "/"); {
		case dynamic(item) || dynamic(name):
		case item.Type == gjson.String && (server == "" || tool == ""):
			c.invalid(at, `must name a tool of a registered server as "server/tool", not %s; a function is described as {name, description, parameters}`, excerpt(item))
		case item.Type == gjson.String:
		case !item.IsObject():
			c.invalid(at, `must be "server/tool" or {name, description, parameters}, not %s`, excerpt(item))
		case item.Get("type").Exists() && item.Get("type").Str != "function":
			c.invalid(at+".type", `must be "function", not %s`, excerpt(item.Get("type")))
		case name.Type != gjson.String || name.Str == "":
			c.invalid(at+".name", "is required; set it to a text")
		case !strings.Contains(name.Str, "/") && !strings.Contains(name.Str, "{{"):
			c.warnf(problemToolEndsTurn, at, "nothing here runs the function %q: a call of it ends the turn, and the workflow goes on with function_calls; name a tool of a server as \"server/tool\", or attach a TOOL node, for one that runs", name.Str)
		}
	}
}

// mcpAgentRules: a node names a stored agent, or describes one.
func mcpAgentRules(c *config) {
	if !c.has("agent_id") {
		return
	}
	for _, name := range []string{"llm_profile", "mcp_servers", "auto_execute", "policy", "limits"} {
		if c.has(name) {
			c.warnf(workflow.ProblemConfig, c.at(name), "%q does nothing beside agent_id: it is for an agent that the node describes by itself; remove one of them", name)
		}
	}
}
