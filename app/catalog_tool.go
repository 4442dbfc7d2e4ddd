package app

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/workflow"
)

// toolCommon is the configuration of every set of tools. tool_name and function_args are for a node that runs alone.
const toolCommon = `available_tools:list; tool_prefix; approval{inherit|never|always}=inherit; tool_name:tmpl; function_args:obj; context:any; call_id:tmpl`

// toolset is what a kind offers to a model: the names of its tools by class.
type toolset struct {
	prefix string
	// safe tools read or may be repeated; the others may not.
	safe, once string
}

func (t toolset) names() (safe, once []string) {
	full := func(names string) []string {
		list := strings.Fields(names)
		for i := range list {
			list[i] = t.prefix + list[i]
		}
		return list
	}
	return full(t.safe), full(t.once)
}

// tools makes a kind of a fixed toolset. The tool is chosen by the input, so the node is as dangerous as the most
// dangerous tool it makes available.
func tools(subtype string, set toolset, notation string) kind {
	safe, once := set.names()
	return kind{subtype: subtype, config: notation,
		effectOf: func(c *config) workflow.Effect {
			available, known := c.listed("available_tools", once...)
			if !known {
				available = once
			}
			if slices.ContainsFunc(available, func(name string) bool { return !slices.Contains(safe, name) }) {
				return workflow.Once
			}
			return workflow.Idempotent
		},
		rules: func(c *config) {
			all := slices.Concat(safe, once)
			for i, item := range c.items("available_tools") {
				if item.Type == gjson.String && !dynamic(item) && !slices.Contains(all, item.Str) {
					c.invalid(fmt.Sprintf("%s[%d]", c.at("available_tools"), i), "is no tool of %s; it has %s%s", c.node.Kind(), strings.Join(all, ", "), suggest(item.Str, all))
				}
			}
		},
	}
}

// toolKinds offer tools to a model when attached, and run one when they stand alone.
func toolKinds() []kind {
	return []kind{
		{subtype: "MCP_TOOL", effect: workflow.Once, rules: mcpToolRules,
			config: `server_id*; call_timeout_seconds=60[1..600]; mcp_server_url:any`},
		tools("GOOGLE_CALENDAR_TOOL", toolset{prefix: "google_calendar_", safe: "events search date_query availability create_event update_event delete_event", once: "quick_add"},
			`default_calendar_id=primary; timezone=UTC; max_results=20[1..250]; cred* google_oauth`),
		tools("OUTLOOK_CALENDAR_TOOL", toolset{prefix: "outlook_calendar_", safe: "events availability create_event update_event delete_event", once: "respond"},
			`calendar_id; timezone=UTC; max_results=20[1..250]; cred* microsoft_oauth`),
		tools("CALENDAR_GENERIC_TOOL", toolset{prefix: "calendar_", safe: "events free_busy create_event update_event delete_event"},
			`calendar_url:tmpl; timezone=UTC; read_only=false; cred* caldav`),
		tools("EMAIL_TOOL", toolset{prefix: "email_", safe: "search read mark", once: "send reply"},
			`allowed_recipients:list; mailbox=INBOX; imap_credential_id; cred* smtp`),
		tools("GMAIL_TOOL", toolset{prefix: "gmail_", safe: "search read label archive", once: "draft send reply"},
			`allowed_recipients:list; cred* google_oauth`),
		{subtype: "HTTP_CLIENT", effectOf: httpClientEffect,
			config: `allowed_domains*:list; allowed_methods:list{GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS}=[GET]; max_bytes=1048576[1..]; cred http_auth`},
		tools("FILE_PROCESSOR", toolset{prefix: "file_", safe: "list read search extract_text write"},
			`root="."; read_only=true; max_bytes=1048576[1..]; formats:list=[txt,md,csv,json,yaml,xml,html,docx,xlsx,pdf]`),
		tools("IMAGE_PROCESSOR", toolset{prefix: "image_", safe: "info describe resize crop rotate convert"},
			`max_pixels=50000000[1..]; output_format{png|jpeg}=png; vision_profile`),
		{subtype: "CODE_TOOL", effect: workflow.Idempotent, rules: codeToolRules,
			config: `language{python|javascript}=python; tool_name=code_run; description; code:code; parameters:obj;
				time_limit_ms=10000[10..120000]; memory_mb=128[16..1024]`},
	}
}

// codeToolRules: parameters are those of a fixed function.
func codeToolRules(c *config) {
	if c.has("parameters") && !c.has("code") && !c.has("template_id") {
		c.warnf(workflow.ProblemConfig, c.at("parameters"), "parameters does nothing without code: a model that writes the code gives it an input of its own; set code, or remove parameters")
	}
}

// mcpToolRules: a server is registered by an administrator; a workflow can only name it.
func mcpToolRules(c *config) {
	if c.has("mcp_server_url") {
		c.warnf(problemDropped, c.at("mcp_server_url"), "a workflow starts no server; have an administrator register it, set server_id and remove %q", "mcp_server_url")
	}
}

// httpClientEffect is that of the most dangerous method allowed.
func httpClientEffect(c *config) workflow.Effect {
	methods, known := c.listed("allowed_methods", "GET")
	if !known || slices.ContainsFunc(methods, func(m string) bool { return byMethod(m) == workflow.Once }) {
		return workflow.Once
	}
	return workflow.Idempotent
}
