package nodetest

import (
	"encoding/json"
	"strings"
	"testing"

	"tandem/fault"
)

// Conform checks what every kind must do: it has a schema of its configuration and texts in both languages, and it refuses a configuration
// that it does not know. Registering the kinds has refused missing texts and duplicates already.
func Conform(t *testing.T, k Kinds) {
	t.Helper()
	if len(k.registry.Names()) == 0 {
		t.Fatal("there are no kinds to look at")
	}
	for _, one := range k.registry.List() {
		var schema struct {
			Type       string         `json:"type"`
			Properties map[string]any `json:"properties"`
		}
		if err := json.Unmarshal(one.ConfigSchema.JSON(), &schema); err != nil || schema.Type != "object" || len(schema.Properties) == 0 {
			t.Errorf("%s: schema %s: %v", one.About.Name, one.ConfigSchema.JSON(), err)
		}
		if !strings.ContainsFunc(one.About.Title.Words("zh")+one.About.Description.Words("zh"),
			func(r rune) bool { return r >= 0x4e00 && r <= 0x9fff }) {
			t.Errorf("%s: the Chinese texts have no Chinese in them", one.About.Name)
		}
		if one.Run == nil && one.Scope == nil {
			continue // a program leads it
		}
		_, err := k.Run(t, one.About.Name, NewCall(t, `{"no_such_field": 1}`, `{"data": []}`))
		WantError(t, err, fault.InvalidConfig, "no_such_field")
	}
}
