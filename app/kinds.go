// Package app puts a Tandem together: which kinds of nodes there are, an instance on a data directory, the server around it, and what the commands
// do.
//
// The command line and programs that embed Tandem import app; no package below it may.
package app

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"tandem/agent"
	"tandem/api"
	"tandem/builtin/models"
	"tandem/fault"
	"tandem/mcp"
	"tandem/memory"
	"tandem/node"
	"tandem/outbound"
	"tandem/plug"
	"tandem/server"
)

// Kinds is every kind that a workflow can name, as definitions are checked against them.
func Kinds() *node.Registry { return theKinds() }

// theKinds are those of this program with nothing to run them with: they answer what there is to know about kinds. read-only
var theKinds = sync.OnceValue(func() *node.Registry {
	var registry node.Registry
	register(&registry, builtIn(outbound.Options{}, kindDeps{Models: &models.Models{}, Memories: memory.New(memory.Options{}), Tools: &mcp.Pool{}, Agents: agents{}}))
	return &registry
})

// builtIn are the parts of this program without an instance: kinds have what they are given here, and nothing else.
func builtIn(reach outbound.Options, k kindDeps) *plug.Set {
	deps := plug.Deps{HTTP: outbound.New(reach), Log: slog.New(slog.DiscardHandler)}
	set, err := gather(deps, families(func(*plug.Set) kindDeps { return k }), nil)
	if err != nil {
		panic(err) // two of our own parts have one name: no program can be made of them
	}
	return set
}

// register fills a registry with the kinds that run, and the names of those that do not yet unless an extension brings them.
func register(registry *node.Registry, set *plug.Set) {
	registry.Register(set.Kinds...)
	for _, about := range reservedKinds() {
		if _, runs := registry.Get(about.Name); !runs {
			registry.Reserve(about)
		}
	}
}

// reservedKinds are the names that the format has for kinds which this version cannot run. Files that have them can be read and drawn; checking
// them says so.
func reservedKinds() []node.About {
	var list []node.About
	for typ, subtypes := range map[string]string{ // order does not matter: a registry has none
		"EXTERNAL_ACTION": "API_CALL WEBHOOK NOTIFICATION SLACK DISCORD_ACTION TELEGRAM_ACTION EMAIL GITHUB GITLAB_ACTION JIRA_ACTION GOOGLE_CALENDAR TRELLO NOTION " +
			"AWS_ACTION GCP_ACTION AZURE_ACTION",
		"TOOL": "GOOGLE_CALENDAR_TOOL OUTLOOK_CALENDAR_TOOL CALENDAR_GENERIC_TOOL EMAIL_TOOL GMAIL_TOOL",
	} {
		for _, subtype := range strings.Fields(subtypes) {
			name := typ + "." + subtype
			list = append(list, node.About{Name: name})
		}
	}
	return list
}

// NodeKinds lists the kinds that this program can run, as a server of it does.
func NodeKinds() []api.NodeKind {
	kinds := theKinds()
	var list []api.NodeKind
	for _, k := range kinds.List() {
		if k.About.Name != agent.TaskKind { // agents are made of it, people are not to
			list = append(list, server.TellKind(kinds, k))
		}
	}
	return list
}

// NodeKind returns one of them.
func NodeKind(name string) (api.NodeKind, error) {
	var names []string
	for _, k := range NodeKinds() {
		if strings.EqualFold(k.Name, name) {
			return k, nil
		}
		names = append(names, k.Name)
	}
	hint := `; "tandem nodes" lists those that can`
	if near := fault.Nearest(strings.ToUpper(name), names); near != "" {
		hint = fmt.Sprintf("; did you mean %q?", near)
	}
	return api.NodeKind{}, fault.Newf(fault.NotFound, "no kind %q can be run here%s", name, hint)
}
