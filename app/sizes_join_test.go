package app

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"tandem/api"
	"tandem/engine"
)

// padded returns a text of a size, and a function that makes what has such a text the same for every size.
func padded(size int) (text string, short func(string) string) {
	text = strings.Repeat("x", size)
	return text, func(s string) string { return strings.ReplaceAll(s, text, "…") }
}

// inputOf is the input that an activation is shown with.
func inputOf(t *testing.T, x *site, execution, activation string) string {
	t.Helper()
	a := want[api.NodeExecution](t, x.call(t, "viewer", "GET", "/executions/"+execution+"/activations/"+url.PathEscape(activation), nil), http.StatusOK)
	return string(a.InputData)
}

// What several connections bring to a node that has a body, or starts a child, is there in the body and in the child, however large it is.
func TestSizes_JoinedFieldsAreHandedOn(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	const checked = " {input_schema: {type: object, required: [doc], properties: {doc: {type: object, required: [text]}}}}"
	for id, schema := range map[string]string{"open": "", "checked": checked} {
		x.save(t, guardFlow(id, "", []string{guardStart + schema, "end CALL.EMPTY {pass_through: true}"}, []string{"start end"}))
	}
	// a child whose trigger leads to the loop on two ways
	x.save(t, guardFlow("ways", "", []string{guardStart, "a CALL.EMPTY {pass_through: true}", "b CALL.EMPTY {pass_through: true}", "m FLOW.FOR_EACH {items_path: few}",
		"inner CALL.EMPTY {pass_through: true}"}, []string{"start a", "start b", "a m", "b m", "m inner iteration", "inner m"}))
	drop := regexp.MustCompile(`child_[0-9a-f]{32}|20\d\d-[^"]*Z`)
	const entry = "{kept: doc, length: len(doc.text), item: item}"
	cases := []struct {
		name, kind, key, conversion string
		// inside are the activations that are given what the node was given, of a child if the node has one.
		inside []string
	}{
		{name: "for_each", kind: "FLOW.FOR_EACH {items_path: few}", key: "iteration"},
		{name: "break", kind: `FLOW.FOR_EACH {items_path: few, break_condition: "index > 5 || len(doc.text) == 1"}`, key: "iteration"},
		{name: "converted", kind: "FLOW.FOR_EACH {items_path: few}", key: "iteration", conversion: entry},
		{name: "found", kind: "FLOW.FOR_EACH", key: "iteration"},
		{name: "loop", kind: "FLOW.LOOP {loop_type: for_each, array_path: few}", key: "iteration"},
		{name: "loop_range", kind: "FLOW.LOOP {loop_type: for_range, end_value: 2}", key: "iteration"},
		{name: "loop_break", kind: `FLOW.LOOP {loop_type: for_each, array_path: few, break_condition: "index > 5 || len(doc.text) == 1"}`, key: "iteration"},
		{name: "split", kind: "FLOW.SPLIT {items_path: few}", key: "branch"},
		{name: "split_converted", kind: "FLOW.SPLIT {items_path: few}", key: "branch", conversion: entry},
		{name: "child", kind: "FLOW.SUB_WORKFLOW {workflow_id: open, revision: latest}", inside: []string{"start", "end"}},
		{name: "child_checked", kind: "FLOW.SUB_WORKFLOW {workflow_id: checked, revision: latest}", inside: []string{"start", "end"}},
		{name: "child_told", kind: "FLOW.SUB_WORKFLOW {workflow_id: open, revision: latest, to_user: true}", inside: []string{"start", "end"}},
		{name: "child_ways", kind: "FLOW.SUB_WORKFLOW {workflow_id: ways, revision: latest}", inside: []string{"m", "m[0]/inner", "m[1]/inner"}},
	}
	for _, c := range cases {
		for _, ways := range []string{"two", "three"} {
			t.Run(c.name+"_"+ways, func(t *testing.T) {
				t.Parallel()
				id := "join_" + c.name + "_" + ways
				links := []string{"start each", "each a iteration", "each b iteration", "a m", "b m"}
				nodes := []string{guardStart, "each FLOW.FOR_EACH {items_path: orders}", "a CALL.EMPTY {pass_through: true}", "b CALL.EMPTY {pass_through: true}", "m " + c.kind,
					"inner CALL.EMPTY {pass_through: true}"}
				if c.key != "" {
					links = append(links, "m inner "+c.key)
				} else {
					links = append(links, "m inner")
				}
				flow := guardFlow(id, "", append(nodes, "plain CALL.EMPTY"), append(links, map[string][]string{"two": nil, "three": {"a plain", "plain m"}}[ways]...))
				if c.conversion != "" {
					flow = strings.Replace(flow, "to_node: inner, output_key: "+c.key, fmt.Sprintf("to_node: inner, output_key: %s, conversion_function: %q", c.key, c.conversion), 1)
				}
				if ways == "two" {
					flow = strings.Replace(flow, "  - {id: plain, description: d, type: CALL, subtype: EMPTY, configurations: {}}\n", "", 1)
				}
				x.save(t, flow)
				given := func(size int) (inputs []string) {
					text, short := padded(size)
					e, r := ran(t, x, id, `{"doc":{"text":"`+text+`"},"orders":[1,2],"few":[3,4]}`)
					if e.Status != "SUCCESS" {
						t.Fatalf("with %d bytes: status %s, %+v", size, e.Status, e.Error)
					}
					if c.inside == nil {
						inputs = append(inputs, inputOf(t, x, r.ExecutionID, "each[1]/m[0]/inner"), inputOf(t, x, r.ExecutionID, "each[1]/m[1]/inner"))
					}
					for _, activation := range c.inside {
						inputs = append(inputs, inputOf(t, x, engine.NthChildID(r.ExecutionID, "each[1]/m", 0, 0), activation))
					}
					for i, input := range inputs {
						if inputs[i] = drop.ReplaceAllString(strings.ReplaceAll(short(input), r.ExecutionID, "E"), "T"); !strings.Contains(inputs[i], `{"text":"…"}`) {
							t.Errorf("with %d bytes it was given %s", size, inputs[i])
						}
					}
					return inputs
				}
				if small, large := given(100), given(50_000); strings.Join(small, "\n") != strings.ReplaceAll(strings.Join(large, "\n"), `"length":50000`, `"length":100`) {
					t.Errorf("with a small field it was given\n%s\nand with a large one\n%s", small, large)
				}
			})
		}
	}
}

// A kind that works on a list finds it at the path that it is told, however that is written and whatever is large; and where there is nothing, it names what is near.
func TestSizes_ListsAreFoundAtEveryPath(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	nodes, links := []string{guardStart, "each FLOW.FOR_EACH {items_path: rounds}"}, []string{"start each"}
	paths := []string{`orders`, ` orders `, `["orders"]`, `data.orders`, `data["orders"]`, `["data"].orders`, `data.data.orders`, `order list`, `["order list"]`, `data["order list"]`,
		`data.order list`, `box.orders`, `data.box.orders`, `orderz`, `data`, `box`}
	kinds := []struct{ kind, config, body string }{
		{"FLOW.FILTER", `{filter_type: exists_filter, conditions: [{field: id}], items_path: %s}`, ""},
		{"FLOW.MERGE", `{items_path: %s}`, ""},
		{"FLOW.SORT", `{sort_field: id, items_path: %s}`, ""},
		{"FLOW.FOR_EACH", `{items_path: %s}`, "iteration"},
		{"FLOW.LOOP", `{loop_type: for_each, array_path: %s}`, "iteration"},
		{"FLOW.SPLIT", `{items_path: %s}`, "branch"},
		{"ACTION.DATA_TRANSFORMATION", `{operation: sort, sort_config: {field: id}, items_path: %s}`, ""},
		{"ACTION.DATA_TRANSFORMATION", `{operation: join, items_path: left, join_config: {left_key: id, right_key: id, right_path: %s}}`, ""},
		{"ACTION.EDIT_FIELDS", `{each: true, set: {more: 1}, items_path: %s}`, ""},
	}
	asked := map[string]string{}
	for i, k := range kinds {
		for n, path := range paths {
			id := fmt.Sprintf("n%d_%d", i, n)
			asked[id] = fmt.Sprintf("%s "+k.config, k.kind, fmt.Sprintf("%q", path))
			nodes, links = append(nodes, id+" "+k.kind+" "+fmt.Sprintf(k.config, fmt.Sprintf("%q", path))), append(links, "each "+id+" iteration")
			if k.body != "" {
				nodes, links = append(nodes, "b"+id+" CALL.EMPTY"), append(links, id+" b"+id+" "+k.body)
			}
		}
	}
	x.save(t, guardFlow("paths", "", nodes, links))
	for name, input := range map[string]string{
		"bare": `"orders":%s`, "inside": `"data":{"orders":%s}`, "twice": `"data":{"data":{"orders":%s}}`, "blank": `"order list":%s`, "blank_inside": `"data":{"order list":%s}`,
		"box": `"box":{"orders":%s}`, "box_inside": `"data":{"box":{"orders":%s}}`, "both": `"orders":%s,"data":{"orders":[{"id":7}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			came := func(size int) map[string]string {
				text, short := padded(size)
				list := `[{"id":2,"text":"` + text + `"},{"id":1}]`
				e, r := ran(t, x, "paths", `{"rounds":[1],"left":[{"id":1}],`+fmt.Sprintf(input, list)+`}`)
				out := map[string]string{}
				for id := range asked {
					one := e.NodeExecutions[id]
					out[id] = strings.ReplaceAll(short(fmt.Sprintf("%s %s %+v %+v", one.Status, one.OutputData, one.Error, one.Warnings)), r.ExecutionID, "E")
				}
				return out
			}
			small, large := came(100), came(5_000)
			for id, kind := range asked {
				if small[id] != large[id] {
					t.Errorf("%s came with a small list to\n%s\nand with a large one to\n%s", kind, small[id], large[id])
				}
			}
		})
	}
}
