package settings

import (
	"encoding/json"

	"tandem/api"
	"tandem/credential"
	"tandem/text"
)

// inlineFields refuses secrets that are written out where only references to credentials belong. A value that only may
// be a secret is accepted: no warning can be shown here.
func inlineFields(prefix string, v any, remedy text.Text) []api.FaultField {
	document, err := json.Marshal(v)
	if err != nil {
		return nil // it is refused elsewhere
	}
	var fields []api.FaultField
	for _, found := range credential.FindInline(document) {
		if found.Certain {
			field := api.Wrong(prefix+found.Path, text.Of("%s is a secret that is written out; %s", found.What, remedy))
			field.Code = "inline_secret"
			fields = append(fields, field)
		}
	}
	return fields
}
