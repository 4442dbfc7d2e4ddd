package app

import "tandem/workflow"

// agentCommon is the configuration of a turn with a model, whoever makes it.
const agentCommon = `model; profile_id; llm_profile -> profile_id; system_prompt, user_prompt, prompt:tmpl;
	temperature:num[0..2]; max_tokens=8192[1..]; top_p:num[0..1]; response_format{text|json|schema}=text; output_schema:obj;
	max_tool_iterations=10[0..50]; parallel_tool_calls=true; tool_approval:any=never; history_size=3[0..]; stream=true;
	first_token_timeout_seconds:num=30[1..]; llm_timeout_seconds:num=300[1..]; fallback_profiles:list;
	generation_config, output_processing:obj;
	drop provider_config, model_config, openai_config, anthropic_config, gemini_config, claude_config`

// agentKinds are turns with a model. Their tool calls have classes of their own, so a turn itself may be repeated.
func agentKinds() []kind {
	turn := []string{workflow.DefaultKey, "structured_data"}
	return []kind{
		{subtype: "OPENAI_CHATGPT", effect: workflow.Idempotent, keys: turn, rules: agentRules,
			config: agentCommon + `; temperature:num=0.7[0..2]; top_p:num=1[0..1]; frequency_penalty, presence_penalty:num=0[-2..2];
				reasoning_effort{low|medium|high}; need model|profile_id; cred openai`},
		{subtype: "ANTHROPIC_CLAUDE", effect: workflow.Idempotent, keys: turn, rules: agentRules,
			config: agentCommon + `; temperature:num=0.7[0..1]; top_p:num=0.9[0..1]; top_k:int[1..]; thinking_budget_tokens=0[0..];
				thinking_mode:any; need model|profile_id; cred anthropic`},
		{subtype: "GOOGLE_GEMINI", effect: workflow.Idempotent, keys: turn, rules: agentRules,
			config: agentCommon + `; temperature:num=0.7[0..2]; top_p:num=0.9[0..1]; top_k:int[1..]; safety_settings:obj; need model|profile_id; cred gemini`},
		{subtype: "LLM", effect: workflow.Idempotent, keys: turn, rules: agentRules,
			config: agentCommon + `; profile_id*; messages:list; tools:list; stream=false; need prompt|messages|user_prompt|system_prompt;
				system -> system_prompt; user -> user_prompt;
				parameters:obj(temperature:num[0..2]; max_tokens:int[1..]; top_p:num[0..1]; ...)`},
		{subtype: "MCP_AGENT", effect: workflow.Idempotent,
			config: `agent_id; llm_profile; profile_id -> llm_profile; mcp_servers:list; auto_execute=false; policy, limits:obj;
				language{zh|en}; question:tmpl; params:obj; conversation_id; need agent_id|llm_profile`},
	}
}

func agentRules(c *config) {
	if c.text("response_format") == "schema" && !c.has("output_schema") && !c.has("template_id") {
		c.invalid("configurations.output_schema", `is required when response_format is "schema"`)
	}
	switch v := c.values["tool_approval"]; {
	case !c.has("tool_approval") || c.isDynamic("tool_approval") || v.IsArray():
	default:
		c.checkField(c.at("tool_approval"), &field{types: []string{"str"}, enum: []string{"never", "once", "always"}}, v)
	}
}
