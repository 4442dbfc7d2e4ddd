package dataflow_test

import (
	"encoding/json"
	"testing"

	"tandem/dataflow"
	"tandem/text"
)

// TestResolve_Words: why a placeholder has no value is told in the language of the reader, with all that it is made of.
func TestResolve_Words(t *testing.T) {
	t.Parallel()
	l := newLayers(t, dataflow.Start{Initial: json.RawMessage(`{"user":{"name":1}}`)})
	for name, c := range map[string]struct{ given, en, zh string }{
		"Inside": {`{"a":"{{user.nam}}"}`, `nothing is called "nam" in "user" for the placeholder "{{user.nam}}"; the nearest name is "user.name"; available: name (at a)`,
			`没有名为 "nam" 的内容（在 "user" 中，占位符 "{{user.nam}}"）；最接近的名称是 "user.name"；可用的有 name（位于 a）`},
		"Several": {`{"a":"{{uzer}}","b":"{{other}}"}`,
			`nothing is called "uzer" for the placeholder "{{uzer}}"; the nearest name is "user"; available: execution, trigger, user, workflow (at a); 1 more placeholders are unresolved`,
			`没有名为 "uzer" 的内容（占位符 "{{uzer}}"）；最接近的名称是 "user"；可用的有 execution, trigger, user, workflow（位于 a）；另有 1 个占位符无法解析`},
		"Steps": {`"{{x.outputs.y}}"`, `nothing is called "x" among the steps that have a result for the placeholder "{{x.outputs.y}}"; nothing is available there`,
			`在已有结果的步骤中没有名为 "x" 的（占位符 "{{x.outputs.y}}"）；那里没有可用的内容`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := resolveErr(t, l, c.given, asOf(1))
			if en, zh := text.ErrorIn(text.English, e), text.ErrorIn(text.Chinese, e); en != c.en || zh != c.zh {
				t.Errorf("it says %s and %s, want %s and %s", en, zh, c.en, c.zh)
			}
		})
	}
}
