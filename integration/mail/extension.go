package mail

import (
	"tandem/builtin/ask"
	"tandem/human"
	"tandem/node"
	"tandem/plug"
)

// Extension is what this package brings.
func Extension(d plug.Deps) plug.Extension {
	return plug.Extension{
		Name:        "mail",
		Channels:    []human.Channel{Channel(Options{Dial: d.HTTP.DialContext, Log: d.Log})},
		Credentials: credentialTypes(),
		KindsOf: func(all *plug.Set) []node.Kind {
			with := ask.Deps{Users: d.Users, Channels: all.Channels}
			return []node.Kind{gmailInteraction(with), outlookInteraction(with)}
		},
	}
}

// Traits implements [human.Particular].
func (c *channel) Traits() human.Traits {
	return human.Traits{Credentials: []string{typeSMTP, typeGoogle, typeMicrosoft}}
}
