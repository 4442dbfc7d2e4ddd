package settings

import (
	"encoding/json"

	"tandem/api"
	"tandem/credential"
)

// inlineFields refuses secrets that are written out where only references to credentials belong. What may be one is let
// pass: here is nobody to warn.
func inlineFields(prefix string, v any, remedy string) []api.FaultField {
	document, err := json.Marshal(v)
	if err != nil {
		return nil // it is refused as unreadable elsewhere
	}
	var fields []api.FaultField
	for _, found := range credential.FindInline(document) {
		if found.Certain {
			fields = append(fields, api.FaultField{Path: prefix + found.Path, Code: "inline_secret", Message: found.What.String() + " is a secret that is written out; " + remedy})
		}
	}
	return fields
}
