package anthropic

import (
	"tandem/credential"
	"tandem/plug"
	"tandem/text"
)

// Extension is what this package brings.
func Extension(plug.Deps) plug.Extension {
	return plug.Extension{
		Name:      Name,
		Providers: []plug.Provider{{Name: Name, Label: text.Beside("Anthropic", "Anthropic"), New: New, Turns: turns()}},
		Credentials: []credential.Type{{
			Name: Name, Label: text.Beside("Anthropic", "Anthropic"),
			Fields: []credential.Field{credential.APIKey().Needed()}, Check: keyCheck().Check,
		}},
	}
}
