package app

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"tandem/api"
	"tandem/identity"
)

// tinyPNG is a picture of 2 by 2 pixels.
const tinyPNG = `{"base64": "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAEElEQVR4nGP4z8AARAwQCgAf7gP9i18U1AAAAABJRU5ErkJggg==", "name": "a.png"}`

// TestInventory_Tools: see inventory_test.go. In the scene "attached" the node is attached to a model, which is told what it offers; else
// it stands alone.
func TestInventory_Tools(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t, func(o *Options) { // whatever else is written meanwhile, nothing is in there
		if err := os.MkdirAll(filepath.Join(o.Dir, "files", "default", "empty"), 0o700); err != nil {
			t.Fatal(err)
		}
	})
	w.putTemplates(t, "TOOL.HTTP_CLIENT", `{"allowed_domains": ["127.0.0.1"]}`, `{"allowed_domains": ["example.com"]}`)
	over := make(chan struct{})
	box := newToolbox(t, func(c toolCall, gone <-chan struct{}) toolReply {
		if c.Tool == "hang" {
			select {
			case <-gone:
			case <-over:
			case <-time.After(1500 * time.Millisecond): // between the two limits of call_timeout_seconds
			}
		}
		return toolReply{Text: `{"done":true}`}
	}, toolDefinition{Name: "look", Description: "looks", Schema: json.RawMessage(`{"type":"object"}`), ReadOnly: true}, toolDefinition{Name: "hang", Description: "hangs", Schema: json.RawMessage(`{"type":"object"}`), ReadOnly: true})
	t.Cleanup(func() { close(over) })
	if err := w.stores.MCPServers.Put(t.Context(), identity.System("default"), box.server(t, "box").WithDefaults()); err != nil {
		t.Fatal(err)
	}
	if a := w.call(t, "operator", "POST", "/mcp/servers/box/activate", api.MCPActivate{}); a.status >= 300 {
		t.Fatalf("answer %d %s", a.status, a.body)
	}
	// tools completes what a set of tools has with what all have: base are the configurations it must have, first and second two of its
	// tools with arguments that work.
	tools := func(base, first, second, args, others string, own map[string]proof) map[string]proof {
		comma := base
		if base != "" {
			comma += ", "
		}
		run := comma + `"tool_name": "` + first + `", "function_args": ` + args
		all := map[string]proof{
			"available_tools": {with: base, one: `["` + first + `"]`, other: `["` + second + `"]`, scene: "attached"},
			"tool_prefix":     {with: base, one: `"a_"`, other: `"b_"`, scene: "attached"},
			"approval":        {with: run, one: `"never"`, other: `"always"`},
			"tool_name":       {with: comma + `"function_args": ` + args, one: `"` + first + `"`, other: `"` + second + `"`},
			"function_args":   {with: comma + `"tool_name": "` + first + `"`, one: args, other: others},
			"context":         {with: run, one: `"a"`, other: `{"b": 1}`},
			"call_id":         {with: run, one: `"a"`, other: `"b"`},
		}
		maps.Copy(all, own)
		return all
	}
	for _, flow := range workflowToolFlows() {
		w.save(t, flow)
	}
	const page = `{"url": "$U/page"}`
	const note = `{"tool_name": "file_write", "function_args": {"path": "$KEY/a.txt", "content": "some words"}}`
	const jsCode = `"language": "javascript", "code": "function main(i) { return i }"`
	calls := func(args string) string {
		return `"allowed_domains": ["127.0.0.1"], "tool_name": "http_request", "function_args": ` + args
	}
	kinds := map[string]map[string]proof{
		"TOOL.MCP_TOOL": tools(`"server_id": "box"`, "look", "hangs", `{}`, `{"n": 1}`, map[string]proof{
			"server_id":            {with: `"tool_name": "look"`, one: `"box"`, other: `"other"`},
			"call_timeout_seconds": {with: `"server_id": "box", "tool_name": "hang", "max_retries": 0`, one: `1`, other: `30`, scene: "slow"},
			"mcp_server_url":       {with: `"server_id": "box"`, other: `"https://example.com"`, told: "a workflow starts no server"},
			"function_args":        {with: `"server_id": "box", "tool_name": "look", "approval": "always"`, one: `{"n": 1}`, other: `{"n": 2}`},
		}),
		"TOOL.HTTP_CLIENT": tools(`"allowed_domains": ["127.0.0.1"]`, "http_request", "other", page, `{"url": "$U/other"}`, map[string]proof{
			"allowed_domains": {with: `"tool_name": "http_request", "function_args": ` + page, one: `["127.0.0.1"]`, other: `["example.com"]`},
			"allowed_methods": {with: `"allowed_domains": ["127.0.0.1"], "tool_name": "http_request", "function_args": {"url": "$U/page", "method": "PUT"}`, one: `["PUT"]`, other: `["GET"]`},
			"max_bytes":       {with: `"allowed_domains": ["127.0.0.1"], "tool_name": "http_request", "function_args": ` + page, one: `10`, other: `1000`},
			"available_tools": {with: `"allowed_domains": ["127.0.0.1"]`, other: `["other"]`, scene: "attached"},
		}),
		"TOOL.FILE_PROCESSOR": tools("", "file_list", "file_search", `{"path": "empty"}`, `{"path": "none"}`, map[string]proof{
			"root":      {chain: []string{note}, with: `"read_only": false`, input: `{"tool_name": "file_read", "function_args": {"path": "a.txt"}}`, one: `"$KEY"`, other: `"."`},
			"read_only": {one: `true`, other: `false`, scene: "attached"},
			"max_bytes": {chain: []string{note}, with: `"read_only": false`, input: `{"tool_name": "file_read", "function_args": {"path": "$KEY/a.txt"}}`, one: `4`, other: `100`},
			"formats":   {chain: []string{note}, with: `"read_only": false`, input: `{"tool_name": "file_read", "function_args": {"path": "$KEY/a.txt"}}`, one: `["txt"]`, other: `["md"]`},
		}),
		"TOOL.IMAGE_PROCESSOR": tools("", "image_info", "image_convert", `{"file": `+tinyPNG+`}`, `{}`, map[string]proof{
			"max_pixels":     {input: `{"tool_name": "image_info", "function_args": {"file": ` + tinyPNG + `}}`, one: `1`, other: `100`},
			"output_format":  {input: `{"tool_name": "image_resize", "function_args": {"file": ` + tinyPNG + `, "width": 1, "height": 1}}`, one: `"png"`, other: `"jpeg"`},
			"vision_profile": {other: `"$P"`, scene: "attached"},
		}),
		"TOOL.CODE_TOOL": tools(jsCode, "code_run", "other", `{"a": 1}`, `{"a": 2}`, map[string]proof{
			"language":        {one: `"python"`, other: `"javascript"`, scene: "attached"},
			"tool_name":       {with: jsCode, one: `"a"`, other: `"b"`, scene: "attached"},
			"description":     {with: jsCode, one: `"a"`, other: `"b"`, scene: "attached"},
			"code":            {with: `"language": "javascript"`, one: `"function main(i) { return 1 }"`, other: `"function main(i) { return 2 }"`},
			"parameters":      {with: jsCode, one: `{"type": "object"}`, other: `{"type": "object", "required": ["x"]}`},
			"time_limit_ms":   {with: `"language": "javascript", "code": "function main(i) { for (;;) {} }"`, one: `10`, other: `20`},
			"memory_mb":       {with: `"language": "javascript", "code": "function main(i) { let a = []; for (let n = 0; n < 40; n++) { a.push('x'.repeat(1 << 20)) }; return a.length }"`, one: `16`, other: `512`},
			"available_tools": {with: jsCode, other: `["other"]`, scene: "attached"},
		}),
	}
	maps.Copy(kinds, vendorTools())
	maps.Copy(kinds, singleTools())
	fieldInventory{
		family: "TOOL", sample: "TOOL.HTTP_CLIENT", kinds: kinds,
		shared: map[string]proof{
			"timeout":         {with: calls(`{"url": "$U/slow"}`) + `, "max_retries": 0`, one: `1`, other: `2`, scene: "slow"},
			"max_retries":     {with: calls(`{"url": "$U/flaky"}`), one: `0`, other: `1`},
			"template_id":     {with: `"tool_name": "http_request", "function_args": ` + page, one: `"one"`, other: `"two"`},
			"to_user":         {kind: "TOOL.CODE_TOOL", with: `"language": "javascript", "code": "function main(i) { return {text: 'hi'} }"`, one: `false`, other: `true`},
			"credit_cost":     {with: calls(page), one: `1`, other: `2`},
			"default_output":  {with: `"allowed_domains": ["127.0.0.1"], "on_error": "default_output"`, one: `{"a": 1}`, other: `{"a": 2}`},
			"on_error":        {with: `"allowed_domains": ["127.0.0.1"]`, one: `"fail"`, other: `"continue"`},
			"on_unknown":      {with: `"allowed_domains": ["127.0.0.1"]`, other: `"fail"`, told: "does nothing here"},
			"enabled":         {with: `"allowed_domains": ["127.0.0.1"], "tool_name": "http_request", "function_args": ` + page, one: `true`, other: `false`},
			"credential_id":   {with: calls(page), one: `"$AUTH_A"`, other: `"$AUTH_B"`},
			"enable_filling":  {with: calls(page) + `, "template_id": "fill"`, one: `false`, other: `true`},
			"filling_profile": {with: calls(page) + `, "template_id": "fill", "enable_filling": true`, one: `"$P"`, other: `"$Q"`},
		},
		bench: func(t *testing.T, kind, config string, p proof) string {
			r := benchRun{provider: "openai", params: true}
			if p.scene == "attached" {
				r.nodes, r.attached = "  - {id: tools, name: tools, description: d, "+nodeOf(kind, config)+"}\n", "tools"
				return w.run(t, "AI_AGENT.LLM", `{"profile_id": "$P", "user_prompt": "Say hi."}`, p, r)
			}
			for _, input := range p.chain {
				r.before = append(r.before, nodeOf(kind, "{"+p.with+"}")+", input_params: "+input)
			}
			return w.run(t, kind, config, p, r)
		},
	}.check(t)
}
