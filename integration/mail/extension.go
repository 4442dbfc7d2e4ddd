package mail

import (
	"maps"

	"tandem/builtin/ask"
	"tandem/human"
	"tandem/node"
	"tandem/plug"
	"tandem/trigger"
)

// Extension is what this package brings.
func Extension(d plug.Deps) plug.Extension {
	network := Network{Dial: d.HTTP.DialContext}
	o := Options{Dial: d.HTTP.DialContext, Log: d.Log}
	services := mailServices{} // known once all extensions are
	return plug.Extension{
		Name:        "mail",
		Kinds:       []node.Kind{triggerEmail(), act(network, d.Files), emailTool(network)},
		Channels:    []human.Channel{Channel(o)},
		Credentials: credentialTypes(network, services),
		SourcesOf: func(all *plug.Set) []trigger.Source {
			maps.Copy(services, all.Mailboxes)
			return []trigger.Source{newEmailSource(o, services)}
		},
		KindsOf: func(all *plug.Set) []node.Kind {
			with := ask.Deps{Users: d.Users, Channels: all.Channels}
			return []node.Kind{gmailInteraction(with), outlookInteraction(with)}
		},
	}
}

// Traits implements [human.Particular].
func (c *channel) Traits() human.Traits {
	return human.Traits{Credentials: []string{typeSMTP, typeGoogle, typeMicrosoft},
		ReadsWith: []string{typeIMAP, typeGoogle, typeMicrosoft}}
}
