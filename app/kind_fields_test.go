package app

import (
	"net/http"
	"testing"

	"github.com/tidwall/gjson"

	"tandem/api"
)

// What an editor draws a form from: every field says what it takes and whether it can be a placeholder, and has a short name in Chinese,
// and the fields that all kinds have come along once.
func TestKinds_FieldsForAnEditor(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	told := want[api.NodeKinds](t, x.call(t, "viewer", "GET", "/node-kinds", nil), http.StatusOK)
	for path, wanted := range map[string]string{
		"timeout.x-fixed": "true", "timeout.x-takes": `["integer"]`, "timeout.maximum": "86400", "on_error.enum.1": "continue", "on_error.x-fixed": "true", "credential_id.x-fixed": "",
		"credential_id.x-takes": `["text"]`, "max_retries.x-title-zh": "", "enabled.x-title-zh": "\u8282\u70b9\u662f\u5426\u6267\u884c", "default_output.x-takes": `["any"]`,
	} {
		if got := gjson.GetBytes(told.CommonFields, "properties."+path).String(); got != wanted && !(path == "max_retries.x-title-zh" && isChinese(got)) {
			t.Errorf("common field %s: %q, want %q", path, got, wanted)
		}
	}
	fields := 0
	for _, k := range told.NodeKinds {
		gjson.GetBytes(k.ConfigSchema, "properties").ForEach(func(name, property gjson.Result) bool {
			fields++
			if !property.Get("x-takes").IsArray() {
				t.Errorf("%s.%s does not say what it takes: %s", k.Name, name, property.Raw)
			}
			if title := property.Get("x-title-zh").String(); !isChinese(title) {
				t.Errorf("%s.%s has no short name in Chinese: begin its meaning with one, of at most 14 characters, and a colon: %s", k.Name, name, property.Get("x-description-zh"))
			}
			return true
		})
	}
	if fields < 500 {
		t.Errorf("there are only %d fields", fields)
	}
}
