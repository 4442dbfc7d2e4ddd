package toolset

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/node"
	"tandem/payload"
)

// toolsNamed are the tools that a configuration names, without patterns and what only a run can know.
func toolsNamed(config json.RawMessage) (server string, tools []node.Mention) {
	root := gjson.ParseBytes(config)
	server, prefix := root.Get("server_id").Str, root.Get("tool_prefix").Str
	add := func(name gjson.Result, path, before string) {
		if name.Type == gjson.String && name.Str != "" && !isPattern(name.Str) && !node.Dynamic(name) {
			tools = append(tools, node.Mention{Text: strings.TrimPrefix(strings.TrimPrefix(name.Str, before), server+"/"), Path: path})
		}
	}
	for i, name := range root.Get("available_tools").Array() {
		add(name, payload.JoinIndex("available_tools", i), "")
	}
	if !strings.Contains(prefix, "{{") && !strings.Contains(prefix, "${") {
		add(root.Get("tool_name"), "tool_name", prefix)
	}
	return server, tools
}
