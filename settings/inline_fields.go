package settings

import (
	"encoding/json"

	"tandem/api"
	"tandem/credential"
)

// inlineFields refuses secrets that are written out where only references to credentials belong. A value that only may
// be a secret is accepted: no warning can be shown here.
func inlineFields(prefix string, v any, remedy string) []api.FaultField {
	document, err := json.Marshal(v)
	if err != nil {
		return nil // it is refused elsewhere
	}
	var fields []api.FaultField
	for _, found := range credential.FindInline(document) {
		if found.Certain {
			fields = append(fields, api.FaultField{Path: prefix + found.Path, Code: "inline_secret",
				Message: found.What.String() + " is a secret that is written out; " + remedy})
		}
	}
	return fields
}
