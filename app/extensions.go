package app

import (
	"slices"

	"tandem/builtin"
	"tandem/credential"
	"tandem/database"
	"tandem/human"
	"tandem/integration/aws"
	"tandem/integration/azure"
	"tandem/integration/discord"
	"tandem/integration/gcp"
	"tandem/integration/mail"
	"tandem/integration/slack"
	"tandem/integration/teams"
	"tandem/integration/telegram"
	"tandem/llm/anthropic"
	"tandem/llm/gemini"
	"tandem/llm/openai"
	"tandem/llm/scripted"
	"tandem/mcp"
	"tandem/node"
	"tandem/plug"
)

// vendors are the extensions of this program. A vendor is a package, and a line here.
func vendors() []plug.Maker {
	return []plug.Maker{
		anthropic.Extension,
		aws.Extension,
		azure.Extension,
		discord.Extension,
		gcp.Extension,
		gemini.Extension,
		mail.Extension,
		openai.Extension,
		scripted.Extension,
		slack.Extension,
		teams.Extension,
		telegram.Extension,
	}
}

// families are the extensions with the kinds that need no vendor, and with the credentials that they need. What the kinds work with is known when
// everything else was gathered.
func families(options func(set *plug.Set) builtin.Options) []plug.Maker {
	return []plug.Maker{
		func(d plug.Deps) plug.Extension {
			return plug.Extension{Name: "builtin", Credentials: builtin.HTTPCredentials(), KindsOf: func(set *plug.Set) []node.Kind {
				o := options(set)
				o.HTTP, o.Users, o.ObjectStores = d.HTTP, d.Users, set.ObjectStores
				return builtin.Kinds(o)
			}}
		},
		func(plug.Deps) plug.Extension {
			return plug.Extension{Name: "database", Credentials: []credential.Type{database.Credential()}}
		},
		func(plug.Deps) plug.Extension { return plug.Extension{Name: "mcp", Credentials: mcp.Credentials()} },
		func(d plug.Deps) plug.Extension {
			return plug.Extension{Name: "webhook", Credentials: []credential.Type{human.WebhookCredential()}, Channels: []human.Channel{human.NewWebhook(d.HTTP)}}
		},
	}
}

// gather puts the parts of a program together: its families, the vendors, and what whoever embeds it brings.
func gather(d plug.Deps, own, more []plug.Maker) (*plug.Set, error) {
	var list []plug.Extension
	for _, make := range slices.Concat(own, vendors(), more) {
		list = append(list, make(d))
	}
	return plug.Gather(list...)
}
