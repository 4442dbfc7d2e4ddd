package ai

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/builtin/early"
	"tandem/builtin/turn"
	"tandem/node"
	"tandem/workflow"
)

func turnKeys() []node.Key {
	return []node.Key{
		{Name: "result", Meaning: node.Says("The answer as text and, if it is JSON, as a value; the calls of tools and the tokens used.", "回答文本（为 JSON 时含其值）、工具调用和所用的令牌。"), Fields: node.ValuesOf[agentOutput]()},
		{Name: "structured_data", Meaning: node.Says("The same, if JSON was asked for.", "要求 JSON 时的同一输出。"),
			Fields: node.ValuesOf[agentOutput]()},
	}
}

// planTurn checks what the configuration of a turn with a model says together.
func planTurn(p *node.Planning, c turn.Common) {
	switch {
	case c.ResponseFormat == "schema" && !p.Has("output_schema") && !p.Has("output_processing") &&
		!p.Has("generation_config") && !p.Templated():
		p.Invalid("configurations.output_schema", `is required when response_format is "schema"`)
	case c.ResponseFormat == "text" && p.Has("response_format") &&
		(p.Has("output_schema") || p.Value("output_processing").Get("output_schema").IsObject()):
		p.Warn(workflow.ProblemConfig, p.At("output_schema"), `output_schema does nothing while response_format is "text"; set response_format to "schema", or leave one of them out`)
	}
	if v := p.Value("tool_approval"); p.Has("tool_approval") && !p.Dynamic("tool_approval") && !v.IsArray() {
		words := []string{"never", "once", "always"}
		if v.Type != gjson.String || !slices.Contains(words, strings.ToLower(v.Str)) {
			p.Invalid(p.At("tool_approval"), `must be one of "never", "once", "always", not %s%s`, node.Excerpt(v), p.Suggest(v.String(), words))
		}
	}
	if p.Value("tool_approval").IsArray() {
		early.Read(p, "tool_approval", func(raw json.RawMessage) error {
			_, err := readApproval(raw)
			return err
		})
	}
	planBlock(p, "generation_config")
	p.Saving(func() { planStop(p, "generation_config") })
	planBlock(p, "output_processing")
	if p.Has("profile_id") && p.Has("credential_id") {
		p.Warn(workflow.ProblemConfig, p.At("credential_id"), "credential_id does nothing beside profile_id: the profile names its credential; remove one of them")
	}
	if p.Kind() == anyModel {
		planBlock(p, "parameters")
		p.Saving(func() { planStop(p, "parameters") })
		planTools(p)
		early.Read(p, "messages", func(raw json.RawMessage) error {
			_, err := givenMessages(raw)
			return err
		})
	}
}

// planBlock warns of what a block of parameters has and the node says by itself as well.
func planBlock(p *node.Planning, name string) {
	p.Inside(name, func(field, key string, value gjson.Result) {
		if p.Written(field) && value.Type != gjson.Null {
			p.Warn(workflow.ProblemConfig, node.Under(p.At(name), key), "%q is ignored, since the node sets %q by itself; keep one of them", name+"."+key, field)
		}
	})
}

// planStop checks the texts at which an answer ends, in a block of parameters.
func planStop(p *node.Planning, name string) {
	p.Inside(name, func(field, key string, value gjson.Result) {
		if field != "stop" || node.Dynamic(value) {
			return
		}
		for i, item := range value.Array() {
			if value.IsArray() && item.Type != gjson.String {
				p.Invalid(fmt.Sprintf("%s[%d]", node.Under(p.At(name), key), i), "must be a text, not %s", node.Excerpt(item))
			}
		}
	})
}

// planTools checks the tools that a node lists by itself.
func planTools(p *node.Planning) {
	wrong := p.Failed()
	planListed(p)
	if !wrong && !p.Failed() {
		early.Read(p, "tools", func(raw json.RawMessage) error {
			_, err := listedTools(raw)
			return err
		})
	}
}

// planFunction refuses what a description of a function has and nothing reads. It stands in the item, or in its field "function".
func planFunction(p *node.Planning, at string, item gjson.Result) {
	described := []string{"name", "description", "parameters"}
	if f := item.Get("function"); f.IsObject() {
		planMembers(p, at, item, []string{"type", "function"})
		planMembers(p, at+".function", f, described)
		return
	}
	planMembers(p, at, item, append([]string{"type"}, described...))
}

func planMembers(p *node.Planning, at string, object gjson.Result, known []string) {
	object.ForEach(func(key, _ gjson.Result) bool {
		switch {
		case key.Str == "strict": // of OpenAI's interface; arguments are always checked
			p.Warn(node.ProblemDropped, at+".strict", "%q is not known here and is ignored; remove it%s", key.Str, "")
		case !slices.Contains(known, key.Str):
			p.Refuse(node.ProblemUnknownConfiguration, node.Under(at, key.Str), "a function has no %q%s",
				key.Str, p.Suggest(key.Str, known))
		}
		return true
	})
}

func planListed(p *node.Planning) {
	for i, item := range p.Items("tools") {
		at := fmt.Sprintf("%s[%d]", p.At("tools"), i)
		one := item
		if f := item.Get("function"); item.IsObject() && f.IsObject() {
			one = f
		}
		name := one.Get("name")
		if item.IsObject() {
			p.Saving(func() { planFunction(p, at, item) })
		}
		switch server, tool, _ := strings.Cut(item.Str, "/"); {
		case node.Dynamic(item) || node.Dynamic(name):
		case item.Type == gjson.String && (server == "" || tool == ""):
			p.Invalid(at, `must name a tool of a registered server as "server/tool", not %s; a function is described as {name, description, parameters}`, node.Excerpt(item))
		case item.Type == gjson.String:
		case !item.IsObject():
			p.Invalid(at, `must be "server/tool" or {name, description, parameters}, not %s`, node.Excerpt(item))
		case item.Get("type").Exists() && item.Get("type").Str != "function":
			p.Invalid(at+".type", `must be "function", not %s`, node.Excerpt(item.Get("type")))
		case name.Type != gjson.String || name.Str == "":
			p.Invalid(at+".name", "is required; set it to a text")
		case !strings.Contains(name.Str, "/") && !strings.Contains(name.Str, "{{"):
			p.Warn(node.ProblemToolEndsTurn, at, "nothing here runs the function %q: a call of it ends the turn, and the workflow goes on with function_calls; name a tool of a server as \"server/tool\", or attach a TOOL node, for one that runs", name.Str)
		}
	}
}
