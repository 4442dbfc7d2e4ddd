package app

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"tandem/node"
)

// Whatever is only looked at beside some values of another configuration is warned of beside the other values. That it does something
// beside the right ones is shown by the inventory.
func TestKinds_IdleConfigurations(t *testing.T) {
	t.Parallel()
	tried := 0
	for _, k := range NodeKinds() {
		fields := shapeOfKind(t, k.Name).fields
		for _, f := range fields {
			for _, c := range f.With {
				by := fields[slices.IndexFunc(fields, func(other node.Field) bool { return other.Name == c.Field })]
				value := "false"
				if len(by.Values) > 0 {
					value = fmt.Sprintf("%q", slices.DeleteFunc(slices.Clone(by.Values), func(v string) bool { return slices.Contains(c.Values, v) })[0])
				}
				tried++
				config := fmt.Sprintf(`{%q: %s, %q: "x"}`, c.Field, value, f.Name)
				if told := fieldProblems(t, k.Name, config, f.Name); !strings.Contains(told, f.Name+" does nothing here: it is for "+c.Field) {
					t.Errorf("%s with %s says %q", k.Name, config, told)
				}
				if told := fieldProblems(t, k.Name, strings.Replace(config, "{", `{"template_id": "t", `, 1), f.Name); strings.Contains(told, "does nothing here: it is for") {
					t.Errorf("%s of a template says %q", k.Name, told)
				}
			}
		}
	}
	if tried < 110 {
		t.Errorf("only %d configurations were tried", tried)
	}
	for _, kind := range []string{"FLOW.FOR_EACH", "TRIGGER.MANUAL"} {
		if told := fieldProblems(t, kind, `{"max_retries": 2}`, "max_retries"); !strings.Contains(told, "does nothing here") {
			t.Errorf("%s takes max_retries and says %q", kind, told)
		}
	}
}
