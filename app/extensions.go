package app

import (
	"context"
	"maps"
	"slices"

	"tandem/agent"
	"tandem/builtin/ai"
	"tandem/builtin/ask"
	"tandem/builtin/code"
	"tandem/builtin/data"
	"tandem/builtin/file"
	"tandem/builtin/flow"
	remember "tandem/builtin/memory"
	"tandem/builtin/models"
	"tandem/builtin/notify"
	services "tandem/builtin/service"
	"tandem/builtin/start"
	"tandem/builtin/task"
	"tandem/builtin/toolset"
	"tandem/builtin/web"
	"tandem/credential"
	"tandem/database"
	"tandem/engine"
	"tandem/files"
	"tandem/integration/airtable"
	"tandem/integration/aws"
	"tandem/integration/azure"
	"tandem/integration/caldav"
	"tandem/integration/discord"
	"tandem/integration/gcp"
	"tandem/integration/github"
	"tandem/integration/gitlab"
	"tandem/integration/google"
	"tandem/integration/jira"
	"tandem/integration/mail"
	"tandem/integration/microsoft"
	"tandem/integration/notion"
	"tandem/integration/slack"
	"tandem/integration/teams"
	"tandem/integration/telegram"
	"tandem/integration/trello"
	"tandem/integration/webhook"
	"tandem/llm/anthropic"
	"tandem/llm/gemini"
	"tandem/llm/openai"
	"tandem/llm/scripted"
	"tandem/mcp"
	"tandem/memory"
	"tandem/node"
	"tandem/plug"
)

// vendors are the extensions of this program. A vendor is a package, and a line here. Channels are offered to people in this order.
func vendors() []plug.Maker {
	return []plug.Maker{
		webhook.Extension,
		mail.Extension,
		slack.Extension,
		discord.Extension,
		telegram.Extension,
		teams.Extension,

		github.Extension,
		google.Extension,
		microsoft.Extension,
		gitlab.Extension,
		jira.Extension,
		trello.Extension,
		airtable.Extension,
		caldav.Extension,
		notion.Extension,

		openai.Extension,
		anthropic.Extension,
		gemini.Extension,
		scripted.Extension,

		aws.Extension,
		azure.Extension,
		gcp.Extension,
	}
}

// kindDeps are what the families of kinds need from the program. The Deps of each family say which of it may be missing.
type kindDeps struct {
	Files     *files.Store
	Databases *database.Pools
	Models    *models.Models
	Scripts   *code.Scripts
	Callbacks web.Callbacks
	Memories  *memory.Store
	Tools     *mcp.Pool
	Agents    task.Agents
	Respond   flow.Respond
	Offers    flow.Offers
	Tell      func(ctx context.Context, n notify.Notice) (id string, err error)
}

// families are the extensions that need no vendor: the families of kinds, and the credentials that they need. A family is a package below
// builtin, and a line here. What the kinds work with is known when everything else was gathered.
func families(with func(set *plug.Set) kindDeps) []plug.Maker {
	var known *kindDeps
	family := func(name string, kinds func(d plug.Deps, set *plug.Set, k kindDeps) []node.Kind, credentials ...credential.Type) plug.Maker {
		return func(d plug.Deps) plug.Extension {
			return plug.Extension{Name: name, Credentials: credentials, KindsOf: func(set *plug.Set) []node.Kind {
				if known == nil {
					made := with(set)
					known = &made
				}
				return kinds(d, set, *known)
			}}
		}
	}
	return []plug.Maker{
		family("builtin/ai", func(_ plug.Deps, set *plug.Set, k kindDeps) []node.Kind {
			return ai.Kinds(ai.Deps{Models: k.Models, Files: k.Files, Tools: k.Tools, Turns: set.Turns()})
		}),
		family("builtin/ask", func(d plug.Deps, set *plug.Set, _ kindDeps) []node.Kind {
			return ask.Kinds(ask.Deps{Users: d.Users, Channels: set.Channels})
		}),
		family("builtin/code", func(_ plug.Deps, _ *plug.Set, k kindDeps) []node.Kind {
			return code.Kinds(code.Deps{Scripts: k.Scripts})
		}),
		family("builtin/data", func(_ plug.Deps, _ *plug.Set, k kindDeps) []node.Kind {
			return data.Kinds(data.Deps{Databases: k.Databases, Models: k.Models})
		}, database.Credential()),
		family("builtin/file", func(d plug.Deps, set *plug.Set, k kindDeps) []node.Kind {
			return file.Kinds(file.Deps{HTTP: d.HTTP, Files: k.Files, ObjectStores: set.ObjectStores, Models: k.Models})
		}),
		family("builtin/flow", func(d plug.Deps, _ *plug.Set, k kindDeps) []node.Kind {
			return flow.Kinds(flow.Deps{Models: k.Models, HTTP: d.HTTP, Files: k.Files, Databases: k.Databases, Listens: k.Callbacks != nil,
				Respond: k.Respond, Offers: k.Offers})
		}),
		family("builtin/memory", func(_ plug.Deps, _ *plug.Set, k kindDeps) []node.Kind {
			return remember.Kinds(remember.Deps{Memories: k.Memories, Models: k.Models, Files: k.Files})
		}),
		family("builtin/notify", func(_ plug.Deps, set *plug.Set, k kindDeps) []node.Kind {
			return notify.Kinds(notify.Deps{Tell: k.Tell, Ways: set.Notices, Kind: set.Kind})
		}),
		func(plug.Deps) plug.Extension {
			return plug.Extension{Name: "builtin/start", Kinds: start.Kinds(), Sources: start.Sources()}
		},
		family("builtin/task", func(_ plug.Deps, _ *plug.Set, k kindDeps) []node.Kind {
			return task.Kinds(task.Deps{Models: k.Models, Tools: k.Tools, Agents: k.Agents})
		}),
		family("builtin/toolset", func(_ plug.Deps, _ *plug.Set, k kindDeps) []node.Kind {
			return toolset.Kinds(toolset.Deps{Servers: k.Tools})
		}, mcp.Credentials()...),
		func(d plug.Deps) plug.Extension {
			return family("builtin/service", func(d plug.Deps, _ *plug.Set, _ kindDeps) []node.Kind {
				return services.Kinds(services.Deps{HTTP: d.HTTP})
			}, services.Credentials(d.HTTP)...)(d)
		},
		func(d plug.Deps) plug.Extension {
			return family("builtin/web", func(d plug.Deps, _ *plug.Set, k kindDeps) []node.Kind {
				return web.Kinds(web.Deps{HTTP: d.HTTP, Callbacks: k.Callbacks})
			}, web.Credentials(d.HTTP)...)(d)
		},
	}
}

// programs are those that lead nodes besides the engine's own.
func programs() engine.Programs {
	all := agent.Programs()
	maps.Copy(all, notify.Programs())
	return all
}

// gather puts the parts of a program together: its families, the vendors, and what the program that embeds it brings.
func gather(d plug.Deps, own, more []plug.Maker) (*plug.Set, error) {
	var list []plug.Extension
	for _, make := range slices.Concat(own, vendors(), more) {
		list = append(list, make(d))
	}
	return plug.Gather(list...)
}
