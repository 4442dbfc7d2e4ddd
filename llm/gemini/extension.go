package gemini

import (
	"tandem/credential"
	"tandem/plug"
	"tandem/text"
)

// Extension is what this package brings.
func Extension(plug.Deps) plug.Extension {
	return plug.Extension{
		Name:      Name,
		Providers: []plug.Provider{{Name: Name, Label: text.Beside("Google Gemini", "Google Gemini"), New: New, Turns: turns()}},
		Credentials: []credential.Type{{
			Name: Name, Label: text.Beside("Google Gemini", "Google Gemini"),
			Fields: []credential.Field{credential.APIKey().Needed()}, Check: keyCheck().Check,
		}},
	}
}
