package node_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"tandem/dataflow"
	"tandem/node"
	"tandem/text"
	"tandem/workflow"
)

func TestRegistry(t *testing.T) {
	t.Parallel()
	var r node.Registry
	if names := r.Names(); len(names) != 0 {
		t.Errorf("an empty registry has %v", names)
	}
	second := adder()
	second.About.Name = "ANOTHER.KIND"
	r.Register(adder(), second)
	if got := r.Names(); !slices.Equal(got, []string{"ANOTHER.KIND", "TEST.KIND"}) {
		t.Errorf("names %v", got)
	}
	if list := r.List(); len(list) != 2 || list[0].About.Name != "ANOTHER.KIND" {
		t.Errorf("list %v", list)
	}
	if k, ok := r.Get("TEST.KIND"); !ok || k.Run == nil {
		t.Error("a kind that was registered is not there")
	}
	if _, ok := r.Get("NO.KIND"); ok {
		t.Error("a kind that was not registered is there")
	}
}

func TestRegistry_RefusesDefects(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(k *node.Kind)
		part   string
	}{
		"Twice":        {func(*node.Kind) {}, "twice"},
		"Name":         {func(k *node.Kind) { k.About.Name = "test" }, "TYPE.SUBTYPE"},
		"ChineseTitle": {func(k *node.Kind) { k.About.Name, k.About.Title = "A.B", text.Beside("x", "") }, "title in zh"},
		"EnglishTitle": {func(k *node.Kind) { k.About.Name, k.About.Title = "A.B", text.Beside("", "x") }, "title in en"},
		"ChineseText":  {func(k *node.Kind) { k.About.Name, k.About.Description = "A.B", text.Beside("x", "") }, "description in zh"},
		"EnglishText":  {func(k *node.Kind) { k.About.Name, k.About.Description = "A.B", text.Beside("", "x") }, "description in en"},
		"Neither":      {func(k *node.Kind) { k.About.Name, k.Run = "A.B", nil }, "neither"},
		"Both":         {func(k *node.Kind) { k.About.Name, k.Scope = "A.B", &node.Scope{} }, "more than one"},
		"EmptyScope":   {func(k *node.Kind) { k.About.Name, k.Run, k.Scope = "A.B", nil, &node.Scope{} }, "lacks"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r node.Registry
			r.Register(adder())
			k := adder()
			c.change(&k)
			defer func() {
				if p := fmt.Sprint(recover()); !strings.Contains(p, c.part) {
					t.Errorf("panics with %q, want %q", p, c.part)
				}
			}()
			r.Register(k)
		})
	}
}

// TestTriggerPrefix compares what dataflow and workflow, which do not know each other, say of triggers.
func TestTriggerPrefix(t *testing.T) {
	t.Parallel()
	if want := workflow.TypeTrigger + "."; dataflow.TriggerPrefix != want {
		t.Errorf("{{trigger.…}} reads results of kinds that begin with %q, and triggers begin with %q", dataflow.TriggerPrefix, want)
	}
}
