package app

import "tandem/workflow"

// callKinds are the small calls that other parts are made of.
func callKinds() []kind {
	return []kind{
		{subtype: "EMPTY", effect: workflow.Pure, config: `pass_through=false`},
		{subtype: "SUMMARY", effect: workflow.Idempotent, config: `profile_id; llm_profile -> profile_id; max_chars=2000[1..]; history_size=10[0..]; language{zh|en}`},
		{subtype: "FACTS", effect: workflow.Idempotent, config: `profile_id; llm_profile -> profile_id; max_facts=20[1..]`},
		{subtype: "SLOT", effect: workflow.Idempotent, config: `schema*:obj; profile_id; llm_profile -> profile_id; override_input:obj; ask=true`},
		{subtype: "TASK", effect: workflow.Idempotent, rules: func(c *config) {
			c.plan.Whole = true
			// What an agent is called and is for are its author's words, and braces in them are braces.
			c.plan.Shielded = append(c.plan.Shielded, c.at("name"), c.at("description"))
		},
			config: `llm_profile*; name; description; mcp_servers:list; auto_execute=false; policy, limits:obj; language{zh|en}`},
	}
}
