// Package app puts a Tandem together: which kinds of nodes there are, and how a definition is checked with all of them.
//
// This file holds every registration. A kind is one entry in its family's catalog_*.go file: its name, its
// configuration in the notation of catalog_notation.go, its output keys and its effect class. The catalogue says what a
// workflow may contain; it runs nothing.
//
// The command line and programs that embed Tandem import app; no package below it may.
package app

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"tandem/workflow"
)

// Kinds returns the catalogue of every kind.
func Kinds() workflow.Kinds { return theCatalogue() }

// theCatalogue is made once: it parses all notations. It is read-only.
var theCatalogue = sync.OnceValue(func() *catalogue {
	return newCatalogue(
		family{"TRIGGER", triggerKinds(), triggerCommon},
		family{"AI_AGENT", agentKinds(), ""},
		family{"EXTERNAL_ACTION", externalKinds(), ""},
		family{"ACTION", actionKinds(), ""},
		family{"FLOW", flowKinds(), ""},
		family{"HUMAN_IN_THE_LOOP", humanKinds(), humanCommon},
		family{"TOOL", toolKinds(), toolCommon},
		family{"MEMORY", memoryKinds(), memoryCommon},
		family{"CALL", callKinds(), ""},
	)
})

// commonConfig is what every kind takes. The compiler reads these, so most are fixed.
const commonConfig = `timeout!=420[1..86400]; max_retries!=3[0..10]; retry_attempts -> max_retries;
	on_error!{fail|continue|default_output}=fail; default_output:any; on_unknown!{ask|retry|fail}=ask; enabled!=true;
	credential_id; template_id; enable_filling=false; filling_profile; to_user=false; credit_cost=0[0..]`

// family is a type of node with the kinds of that type.
type family struct {
	typ    string
	kinds  []kind
	common string
}

// kind is one entry of the catalogue.
type kind struct {
	subtype string
	// config is in the notation of catalog_notation.go.
	config string
	// keys are the output keys, "result" when nil.
	keys []string
	// aliases maps accepted spellings of output keys, besides "main", to keys.
	aliases map[string]string
	scope   *workflow.ScopeKeys
	// effect is the class, unless effectOf reads it from the configuration.
	effect   workflow.Effect
	effectOf func(c *config) workflow.Effect
	// rules checks what the notation cannot say and fills the plan with what the configuration decides.
	rules func(c *config)
	// operations are those that action_type chooses from.
	operations *operations
}

// catalogue implements workflow.Kinds. It is not changed after it was made.
type catalogue struct {
	kinds map[string]workflow.Kind
	names []string
}

func newCatalogue(families ...family) *catalogue {
	c := &catalogue{kinds: map[string]workflow.Kind{}}
	for _, f := range families {
		for _, k := range f.kinds {
			c.register(f, k)
		}
	}
	c.names = slices.Sorted(maps.Keys(c.kinds))
	for _, target := range kindAliases() {
		if _, ok := c.kinds[target]; !ok && len(families) > 1 {
			panic(fmt.Sprintf("catalogue: an alias means %q, which is no kind", target))
		}
	}
	return c
}

func (c *catalogue) register(f family, k kind) {
	name := f.typ + "." + k.subtype
	if _, taken := c.kinds[name]; taken {
		panic(fmt.Sprintf("catalogue: kind %q is registered twice", name))
	}
	if k.effect == "" && k.effectOf == nil && k.operations == nil {
		panic(fmt.Sprintf("catalogue: kind %q has no effect class", name))
	}
	s := parseShape(commonConfig, f.common, k.config, k.operations.notation())
	aliases := keyAliases(f.typ, k)
	c.kinds[name] = workflow.Kind{Name: name, Scope: k.scope, Plan: func(n *workflow.Node) (workflow.Plan, []workflow.Problem) {
		cfg := readConfig(n, s)
		k.plan(f.typ, cfg, aliases)
		return cfg.plan, cfg.problems
	}}
}

// plan fills in how the node behaves in a graph.
func (k *kind) plan(typ string, c *config, aliases map[string]string) {
	p := &c.plan
	p.Keys = slices.Clone(k.keys)
	if p.Keys == nil {
		p.Keys = []string{workflow.DefaultKey}
	}
	p.KeyAliases = maps.Clone(aliases)
	p.TimeoutMS = c.milliseconds("timeout")
	retries, _ := c.number("max_retries")
	p.MaxRetries = int(max(0, min(retries, 10)))
	p.Credits, _ = c.number("credit_cost")
	p.OnError = workflow.OnError(c.text("on_error"))
	p.OnUnknown = workflow.OnUnknown(c.text("on_unknown"))
	p.Disabled = c.text("enabled") == "false"
	if p.OnError == workflow.OnErrorDefault && !c.has("default_output") && !c.has("template_id") {
		c.invalid("configurations.default_output", "is required when on_error is %q", workflow.OnErrorDefault)
	}
	if typ == "TRIGGER" || k.scope != nil {
		p.MaxRetries = 0
		if c.has("max_retries") {
			c.idle("max_retries", "a trigger has run when it is asked, and what fails in a body is retried inside of it")
		}
	}
	if k.scope != nil && c.text("enable_filling") == "true" {
		c.warnf(workflow.ProblemConfig, c.at("enable_filling"), "enable_filling does nothing here: a node that runs a body is not filled; set it on the nodes of the body")
	}
	p.SkipDisabled = typ == "HUMAN_IN_THE_LOOP"
	switch {
	case k.operations != nil:
		p.Effect = k.operations.effect(c)
	case k.effectOf != nil:
		p.Effect = k.effectOf(c)
	default:
		p.Effect = k.effect
	}
	if c.has("on_unknown") && p.Effect != workflow.Once && k.operations == nil {
		c.warnf(workflow.ProblemConfig, c.at("on_unknown"), "on_unknown does nothing here: what the node does may be repeated, so nobody is asked whether it was done; remove it")
	}
	if c.has("credential_id") && c.shape.cred == nil && typ != "HUMAN_IN_THE_LOOP" { // a question goes by the channel it names
		c.warnf(workflow.ProblemConfig, c.at("credential_id"), "credential_id does nothing here: %s opens no credential; remove it", c.node.Kind())
	}
	if k.rules != nil {
		k.rules(c)
	}
	c.checkIdle(typ + "." + k.subtype)
	c.checkStandIn(typ)
}

// checkStandIn refuses what would stand for the node's work under a key that it does not have.
func (c *config) checkStandIn(typ string) {
	if _, ok := c.plan.MainKey(); ok || len(c.plan.Keys) == 0 {
		return
	}
	keys := strings.Join(quoteAll(c.plan.Keys), ", ")
	if c.plan.Disabled && !c.plan.SkipDisabled && typ != "TRIGGER" {
		c.invalid(c.at("enabled"), "cannot be false here: %s has no key under which its input could be handed on, only %s; remove the node and connect what is around it", c.node.Kind(), keys)
	}
	value, set := c.values["default_output"]
	if c.plan.OnError != workflow.OnErrorDefault || !set || dynamic(value) {
		return
	}
	members := value.Map()
	if !value.IsObject() || len(members) == 0 {
		c.invalid(c.at("default_output"), "must be an object with a payload for one of the keys of %s: %s", c.node.Kind(), keys)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(c.plan.Keys, key) {
			c.invalid(join(c.at("default_output"), key), "is not a key of %s; it has %s", c.node.Kind(), keys)
		}
	}
}

// keyAliases are the accepted spellings of a kind's output keys. "main" is "result" or what the kind has instead of it.
func keyAliases(typ string, k kind) map[string]string {
	aliases := map[string]string{"main": workflow.DefaultKey}
	if slices.Contains([]string{"ACTION", "EXTERNAL_ACTION", "AI_AGENT", "TOOL"}, typ) {
		aliases["success"], aliases["response"] = workflow.DefaultKey, workflow.DefaultKey
	}
	maps.Copy(aliases, k.aliases)
	if key, ok := aliases[workflow.DefaultKey]; ok {
		aliases["main"] = key
	}
	return aliases
}

// Kind implements workflow.Kinds.
func (c *catalogue) Kind(name string) (workflow.Kind, bool) {
	k, ok := c.kinds[name]
	return k, ok
}

// Names implements workflow.Kinds.
func (c *catalogue) Names() []string { return slices.Clone(c.names) }

// Alias implements workflow.Kinds: names in any letter case, step types without a subtype, and renamed subtypes.
func (c *catalogue) Alias(typ, subtype string) (string, bool) {
	name := strings.ToUpper(strings.TrimSpace(typ))
	if subtype = strings.ToUpper(strings.TrimSpace(subtype)); subtype != "" {
		name += "." + subtype
	}
	if _, ok := c.kinds[name]; ok {
		return name, true
	}
	target, ok := kindAliases()[name]
	return target, ok
}

// kindAliases are the names of older files.
func kindAliases() map[string]string {
	return map[string]string{
		"START":   "TRIGGER.MANUAL",
		"END":     "CALL.EMPTY",
		"LLM":     "AI_AGENT.LLM",
		"API":     "EXTERNAL_ACTION.API_CALL",
		"SQL":     "ACTION.DATABASE_QUERY",
		"CHOICE":  "FLOW.SWITCH",
		"LOOP":    "FLOW.LOOP",
		"AGENT":   "AI_AGENT.MCP_AGENT",
		"EMPTY":   "CALL.EMPTY",
		"SUMMARY": "CALL.SUMMARY",
		"FACTS":   "CALL.FACTS",
		"SLOT":    "CALL.SLOT",

		"TOOL.SLACK_MCP_TOOL":           "TOOL.MCP_TOOL",
		"TOOL.DISCORD_MCP_TOOL":         "TOOL.MCP_TOOL",
		"TOOL.NOTION_MCP_TOOL":          "TOOL.MCP_TOOL",
		"TOOL.GOOGLE_CALENDAR_MCP_TOOL": "TOOL.MCP_TOOL",
		"TOOL.FIRECRAWL_MCP_TOOL":       "TOOL.MCP_TOOL",
		"TOOL.GOOGLE_CALENDAR":          "TOOL.GOOGLE_CALENDAR_TOOL",
		"TOOL.OUTLOOK_CALENDAR":         "TOOL.OUTLOOK_CALENDAR_TOOL",
		"TOOL.CALENDAR_GENERIC":         "TOOL.CALENDAR_GENERIC_TOOL",
	}
}

// byMethod is the class of an HTTP call whose method is in a field: what is repeatable by the protocol is idempotent.
func byMethod(method string) workflow.Effect {
	switch strings.ToUpper(method) {
	case "GET", "HEAD", "OPTIONS", "PUT", "DELETE":
		return workflow.Idempotent
	}
	return workflow.Once // also when the method is only known at run time
}
