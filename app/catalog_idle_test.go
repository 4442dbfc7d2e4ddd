package app

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Whatever is only looked at beside some values of another configuration is warned of beside the other values. That it does something beside
// the right ones is shown by the inventory.
func TestCatalog_IdleConfigurations(t *testing.T) {
	t.Parallel()
	tried := 0
	for _, k := range NodeKinds() {
		shape := shapeOfKind(t, k.Name)
		for _, f := range idleFields(k.Name) {
			by, ok := shape.field(f.by)
			if !ok {
				t.Fatalf("%s has no field %s", k.Name, f.by)
			}
			values := []string{"false"}
			if len(by.enum) > 0 {
				values = slices.DeleteFunc(quoteAll(by.enum), func(v string) bool { return slices.Contains(quoteAll(f.works), v) })
			}
			for _, name := range f.names {
				tried++
				config := fmt.Sprintf(`{%q: %s, %q: "x"}`, f.by, values[0], name)
				if told := fieldProblems(t, k.Name, config, name); !strings.Contains(told, name+" does nothing here: it is for "+f.by) {
					t.Errorf("%s with %s says %q", k.Name, config, told)
				}
				if told := fieldProblems(t, k.Name, strings.Replace(config, "{", `{"template_id": "t", `, 1), name); strings.Contains(told, "does nothing here: it is for") {
					t.Errorf("%s of a template says %q", k.Name, told)
				}
			}
		}
	}
	if tried < 50 {
		t.Errorf("only %d configurations were tried", tried)
	}
	for _, kind := range []string{"FLOW.FOR_EACH", "TRIGGER.MANUAL"} {
		if told := fieldProblems(t, kind, `{"max_retries": 2}`, "max_retries"); !strings.Contains(told, "does nothing here") {
			t.Errorf("%s takes max_retries and says %q", kind, told)
		}
	}
}
