package mail

import (
	"tandem/human"
	"tandem/plug"
)

// Extension is what this package brings.
func Extension(d plug.Deps) plug.Extension {
	return plug.Extension{
		Name:        "mail",
		Channels:    []human.Channel{Channel(Options{Dial: d.HTTP.DialContext, Client: d.HTTP, Log: d.Log})},
		Credentials: credentialTypes(),
	}
}

// Traits implements [human.Particular].
func (c *channel) Traits() human.Traits {
	return human.Traits{Credentials: []string{typeSMTP, typeGoogle, typeMicrosoft}}
}
