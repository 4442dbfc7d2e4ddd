package openai

import (
	"tandem/credential"
	"tandem/plug"
	"tandem/text"
)

// Name is what profiles call this provider.
const Name = "openai"

// Extension is what this package brings.
func Extension(plug.Deps) plug.Extension {
	return plug.Extension{
		Name:      Name,
		Providers: []plug.Provider{{Name: Name, Label: text.Beside("OpenAI, and whatever speaks its API", "OpenAI 及兼容其接口的服务"), New: New, Turns: turns()}},
		Credentials: []credential.Type{{
			Name: Name, Label: text.Beside("OpenAI and compatible services", "OpenAI 及兼容服务"),
			Fields: []credential.Field{credential.APIKey().Needed()}, Check: keyCheck().Check,
		}},
	}
}
