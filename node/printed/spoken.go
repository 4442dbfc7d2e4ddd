package printed

import (
	"encoding/json"

	"github.com/tidwall/gjson"
)

// Spoken is the text of an output: the output itself, or the field of it that has what was said.
func Spoken(output json.RawMessage) string {
	value := gjson.ParseBytes(output)
	if value.Type == gjson.String {
		return value.Str
	}
	for _, name := range []string{"response", "text", "content", "summary", "message", "formatted"} {
		if field := value.Get(name); field.Type == gjson.String && field.Str != "" {
			return field.Str
		}
	}
	if result := value.Get("result"); result.Exists() { // of a tool, or of code
		return Spoken(json.RawMessage(result.Raw))
	}
	return ""
}
