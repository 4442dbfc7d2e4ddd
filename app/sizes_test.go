package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"iter"
	"net/http"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"tandem/api"
	"tandem/host"
	"tandem/host/local"
	"tandem/identity"
)

// orders is an input with a list of so many orders, each with a text of so many bytes, and a field beside it.
func orders(count, size int) string {
	var b strings.Builder
	b.WriteString(`{"customer":"ann","orders":[`)
	for i := range count {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":%d,"t":%q}`, i, strings.Repeat("x", size))
	}
	return b.String() + `]}`
}

const listFlow = `
metadata: {id: %[1]s, name: %[1]s, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: each, description: d, type: FLOW, subtype: %[2]s, configurations: %[3]s}
  - {id: look, description: d, type: FLOW, subtype: IF, configurations: {condition_expression: %[5]q}}
  - {id: body, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}, input_params: %[6]s}
connections:
  - {from_node: start, to_node: each}
  - {from_node: each, to_node: look, output_key: %[4]s}
  - {from_node: look, to_node: body, output_key: "true"}
`

// The list that a loop goes through is not part of what an iteration is handed, so nothing of it is copied, kept or handed on once
// more for each; bodies read it by its name all the same.
func TestSizes_IterationsAreNotHandedTheList(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	for _, c := range []struct{ name, kind, config, entry, condition, params string }{
		{"each", "FOR_EACH", `{items_path: orders}`, "iteration", "orders.length == 3 && data.orders[0].id == 0 && input.orders[1].id == 1",
			`{all: "{{orders}}", first: "{{orders[0].id}}"}`},
		{"deep", "FOR_EACH", `{items_path: data.orders, iteration_variable: order}`, "iteration", "data.orders.length == 3 && order.id == index", `{}`},
		{"loop", "LOOP", `{loop_type: for_each, array_path: orders, break_condition: "orders.length < index || input.orders.length != 3"}`, "iteration", "orders.length == 3", `{}`},
		{"index", "FOR_EACH", `{items_path: "boxes[0].orders"}`, "iteration", "boxes[0].orders.length == 3 && input.boxes[0].orders[1].id == 1 && boxes[1] == 7",
			`{all: "{{boxes[0].orders}}", first: "{{boxes.0.orders[0].id}}"}`},
		{"dotted", "LOOP", `{loop_type: for_each, array_path: "boxes.0.orders"}`, "iteration", "boxes[0].orders.length == 3", `{}`},
		{"nested", "FOR_EACH", `{items_path: "lists[1]"}`, "iteration", "lists[1].length == 3 && lists[0].length == 0", `{all: "{{lists[1]}}", first: "{{lists[1][0].id}}"}`},
		{"split", "SPLIT", `{split_mode: items}`, "branch", "orders.length == 3", `{}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			x.save(t, fmt.Sprintf(listFlow, c.name, c.kind, c.config, c.entry, c.condition, c.params))
			input := orders(3, 10)
			switch c.name {
			case "deep":
				input = `{"data":` + input + `}`
			case "index", "dotted":
				input = `{"boxes":[` + input + `,7]}`
			case "nested":
				input = `{"lists":[[],` + strings.TrimSuffix(strings.TrimPrefix(input, `{"customer":"ann","orders":`), "}") + `]}`
			}
			e, _ := ran(t, x, c.name, input)
			if e.Status != "SUCCESS" {
				t.Fatalf("status %s, %+v", e.Status, e.Error)
			}
			if n := e.NodeExecutions["body"].ActivationCount; n != 3 {
				t.Errorf("the body ran %d times", n)
			}
			var got map[string]json.RawMessage
			if err := json.Unmarshal(e.NodeExecutions["body"].OutputData["result"], &got); err != nil {
				t.Fatal(err)
			}
			if _, handed := got["orders"]; handed || strings.Contains(string(got["data"])+string(got["boxes"]), "orders") || strings.Contains(string(got["lists"]), "id") {
				t.Errorf("an iteration was handed the list: %s", e.NodeExecutions["body"].OutputData["result"])
			}
			if _, there := got["item"]; !there || c.params != "{}" && (string(got["first"]) != "0" || strings.Count(string(got["all"]), `"id"`) != 3) {
				t.Errorf("the body got %s", e.NodeExecutions["body"].OutputData["result"])
			}
			if strings.Contains(string(e.NodeExecutions["each"].OutputData["completed"]), `"orders"`) {
				t.Errorf("the results hold the list: %s", e.NodeExecutions["each"].OutputData["completed"])
			}
		})
	}
}

// A conversion into an iteration that reads the list is handed it.
func TestSizes_ConversionsReadTheList(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, `
metadata: {id: converted, name: converted, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: each, description: d, type: FLOW, subtype: FOR_EACH, configurations: {items_path: orders}}
  - {id: a, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
  - {id: b, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
connections:
  - {from_node: start, to_node: each}
  - {from_node: each, to_node: a, output_key: iteration, conversion_function: "{'of': len(orders), 'id': item.id}"}
  - {from_node: each, to_node: b, output_key: iteration, conversion_function: "d => ({of: d.orders.length, id: d.item.id})"}
`)
	e, _ := ran(t, x, "converted", orders(2, 10))
	for _, id := range []string{"a", "b"} {
		if got := string(e.NodeExecutions[id].OutputData["result"]); got != `{"of":2,"id":1}` && got != `{"id":1,"of":2}` {
			t.Errorf("%s got %s", id, got)
		}
	}
}

// An execution that an older version began builds its inputs by the rules of that time: since version 1 an iteration is not handed its list,
// since version 2 neither a list that stands inside another one.
func TestSizes_OlderExecutionsGoOnAsTheyBegan(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	for _, c := range []struct {
		id, list, input string
		handed          []bool // by version
	}{
		{"older", "orders", orders(2, 10), []bool{true, false, false}},
		{"inside", "boxes[0].orders", `{"boxes":[` + orders(2, 10) + `]}`, []bool{true, true, false}},
	} {
		x.save(t, fmt.Sprintf(listFlow, c.id, "FOR_EACH", `{items_path: "`+c.list+`"}`, "iteration", "true", "{}"))
		_, r := ran(t, x, c.id, c.input)
		p := identity.System("default")
		stored, err := x.stores.Executions.Get(t.Context(), p, r.ExecutionID)
		if err != nil {
			t.Fatal(err)
		}
		ready, err := x.revision(t.Context(), p, c.id, stored.RevisionHash)
		if err != nil {
			t.Fatal(err)
		}
		for version, handed := range c.handed {
			journal := host.Journal{Source: dated{x.source, version}, Principal: p, Execution: r.ExecutionID, Graph: ready.Graph, Revision: local.Revision(ready)}
			record, found, err := journal.Activation(t.Context(), "each[1]/look")
			if err != nil || !found {
				t.Fatal(found, err)
			}
			if strings.Contains(string(record.Input), `"orders"`) != handed {
				t.Errorf("%s: by the rules of version %d the input is %s", c.id, version, record.Input)
			}
		}
	}
}

// What a loop hands on unchanged is written once, however often it is handed on: what an iteration writes does not depend on it.
func TestSizes_IterationsWriteWhatIsNew(t *testing.T) {
	t.Parallel()
	dir := ""
	x := openSiteAs(t, func(o *Options, _ string) { dir = o.Dir })
	doc := `"` + strings.Repeat("x", 1<<20) + `"`
	for _, c := range []struct{ name, kind, config string }{
		{"beside", "FOR_EACH", `{items_path: orders}`},
		{"inside", "FOR_EACH", `{items_path: "boxes[0].orders"}`},
		{"range", "LOOP", `{loop_type: for_range, start_value: 1, end_value: %d}`},
		{"turns", "LOOP", `{loop_type: while, loop_condition: "index < %d"}`},
		{"own", "WHILE", `{condition_expression: "index < %d"}`}, // with data of its own
	} {
		t.Run(c.name, func(t *testing.T) { // one after the other: they share a directory
			written := func(count int) int64 {
				config, input := c.config, orders(count, 10)
				if strings.Contains(config, "%d") {
					config = fmt.Sprintf(config, count)
				}
				x.save(t, fmt.Sprintf(listFlow, fmt.Sprint(c.name, count), c.kind, config, "iteration", "index >= 0", "{}"))
				switch c.name {
				case "inside":
					input = `{"boxes":[` + input + `],"doc":` + doc + `}`
				case "own":
					input = `{"data":{"n":1,"doc":` + doc + `}}`
				default:
					input = strings.Replace(input, `"customer"`, `"doc":`+doc+`,"customer"`, 1)
				}
				before := blobBytes(t, dir)
				e, r := ran(t, x, fmt.Sprint(c.name, count), input)
				if e.Status != "SUCCESS" {
					t.Fatalf("status %s, %+v", e.Status, e.Error)
				}
				if n := e.NodeExecutions["body"].ActivationCount; n != int64(count) {
					t.Fatalf("the body ran %d times", n)
				}
				bytes := blobBytes(t, dir) - before
				for row, err := range x.source.Rows(t.Context(), identity.System("default"), r.ExecutionID, 0) {
					if err != nil {
						t.Fatal(err)
					}
					bytes += int64(row.Stored)
				}
				return bytes
			}
			few, many := written(2), written(4)
			if each := (many - few) / 2; each > 20_000 {
				t.Errorf("each iteration wrote %d bytes, with a field of %d bytes beside what it changes", each, len(doc))
			}
		})
	}
}

// An iteration whose nodes do not read a large field of its input is not charged for it: the field is neither copied nor read again. It runs by itself, since it
// counts all that the process allocates.
func TestSizes_IterationsDoNotCopyWhatTheyDoNotRead(t *testing.T) {
	x := openSite(t)
	doc := strings.Repeat("x", 1<<20)
	for _, c := range []struct{ name, kind, config, body, conversion string }{
		{"beside", "FOR_EACH", `{items_path: orders}`, "CALL.EMPTY", ""},
		{"range", "LOOP", `{loop_type: for_range, start_value: 1, end_value: %d, max_iterations: 1000}`, "CALL.EMPTY", ""},
		{"own", "WHILE", `{condition_expression: "index < %d", max_iterations: 1000}`, "CALL.EMPTY", ""},
		{"handed", "FOR_EACH", `{items_path: orders, collect_results: false}`, "CALL.EMPTY {pass_through: true}", ""},
		{"off", "FOR_EACH", `{items_path: orders, collect_results: false}`, "CALL.EMPTY {pass_through: true, enabled: false}", ""},
		{"if", "FOR_EACH", `{items_path: orders, collect_results: false}`, `FLOW.IF {condition_expression: "item.id >= 0"}`, ""},
		{"switch", "FOR_EACH", `{items_path: orders, collect_results: false}`, `FLOW.SWITCH {branches: [{branch_id: old, condition: "item.id < 0"}, {branch_id: rest, is_default: true}]}`, ""},
		{"delay", "FOR_EACH", `{items_path: orders, collect_results: false}`, "FLOW.DELAY {duration_seconds: 0}", ""},
		{"memory", "FOR_EACH", `{items_path: orders}`, `MEMORY.KEY_VALUE_STORE {operation: set, session_id: "s-{{customer}}"}`, ""},
		{"expression", "FOR_EACH", `{items_path: orders, collect_results: false}`, "CALL.EMPTY {pass_through: true}", "{'id': item.id, 'copy': doc, 'n': data.customer}"},
		{"javascript", "FOR_EACH", `{items_path: orders, collect_results: false}`, "CALL.EMPTY {pass_through: true}", "d => ({id: d.item.id})"},
		{"python", "FOR_EACH", `{items_path: orders, collect_results: false}`, "CALL.EMPTY {pass_through: true}", "lambda d: {'id': d['item']['id']}"},
		{"code", "FOR_EACH", `{items_path: orders, collect_results: false}`, `ACTION.RUN_CODE {language: javascript, code: "function main(d) { return d.item.id }"}`, ""},
		{"nested", "FOR_EACH", `{items_path: orders, collect_results: false}`, `FLOW.FOR_EACH {items_path: few, break_condition: "index > 5 && doc == 1", collect_results: false}`, ""},
		{"split", "FOR_EACH", `{items_path: orders, collect_results: false}`, `FLOW.SPLIT {split_mode: items, items_path: few}`, ""},
		{"transform", "FOR_EACH", `{items_path: orders, collect_results: false}`, `ACTION.DATA_TRANSFORMATION {operation: map, field_mapping: {a: "item * 2"}, items_path: few}`, ""},
		{"filter", "FOR_EACH", `{items_path: orders, collect_results: false}`, `FLOW.FILTER {items_path: few, conditions: [{field: ".", operator: greater_than, value: 0}]}`, ""},
		{"sort", "FOR_EACH", `{items_path: orders, collect_results: false}`, `FLOW.SORT {items_path: few, sort_field: "."}`, ""},
		{"merge", "FOR_EACH", `{items_path: orders, collect_results: false}`, `FLOW.MERGE {items_path: few}`, ""},
		{"loop", "FOR_EACH", `{items_path: orders, collect_results: false}`, `FLOW.LOOP {loop_type: for_each, array_path: few, collect_results: false}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			allocated := func(count int) uint64 {
				id, config := fmt.Sprint(c.name, count), c.config
				if strings.Contains(config, "%d") {
					config = fmt.Sprintf(config, count)
				}
				key := map[string]string{"if": ` "true"`, "switch": " rest", "nested": " completed", "loop": " completed"}[c.name]
				links := []string{"start each", "each body iteration", "body next" + key, "next each"}
				if entry := map[string]string{"nested": "iteration", "loop": "iteration", "split": "branch"}[c.name]; entry != "" {
					links = append(links, "body inner "+entry)
				}
				if c.name == "merge" {
					links = []string{"start each", "each inner iteration", "each other iteration", "inner body", "other body", "body next", "next each"}
				}
				// what follows the body's node is handed what it hands on
				flow := guardFlow(id, "", []string{guardStart, "each FLOW." + c.kind + " " + config, "body " + c.body, "inner CALL.EMPTY {pass_through: " + fmt.Sprint(c.name != "split") + "}",
					"other CALL.EMPTY {pass_through: true}",
					"next CALL.EMPTY {pass_through: " + fmt.Sprint(!strings.Contains("beside range own memory", c.name)) + "}"}, links)
				if c.conversion != "" {
					flow = strings.Replace(flow, "output_key: iteration}", fmt.Sprintf("output_key: iteration, conversion_function: %q}", c.conversion), 1)
				}
				x.save(t, flow)
				input := strings.Replace(orders(count, 10), `"customer"`, `"doc":"`+doc+`","few":[1],"key":"k","value":"v","customer"`, 1)
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				id = x.execute(t, id, api.ExecuteRequest{Inputs: json.RawMessage(input), WaitSeconds: 60})
				runtime.ReadMemStats(&after)
				if e := x.read(t, id); e.Status != "SUCCESS" {
					t.Fatalf("status %s", e.Status)
				}
				return after.TotalAlloc - before.TotalAlloc
			}
			allocated(5)
			few, many := allocated(10), allocated(110)
			if each := int64(many-few) / 100; each > 200_000 {
				t.Errorf("each iteration allocated %d bytes, with a field of %d bytes that it does not read", each, len(doc))
			}
		})
	}
}

// What a node that skims its input is not given is read by it all the same, and shown where its input is shown.
func TestSizes_WhatStandsBesideAnInputIsRead(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, `
metadata: {id: beside, name: beside, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: each, description: d, type: FLOW, subtype: FOR_EACH, configurations: {items_path: orders}, input_params: {big: "{{doc}}", replaced: "{{doc}}", key: k, value: v}}
  - {id: keep, description: d, type: MEMORY, subtype: KEY_VALUE_STORE, configurations: {operation: set, session_id: "{{big.id}}-{{replaced}}"}, input_params: {replaced: 7}}
  - {id: value, description: d, type: MEMORY, subtype: KEY_VALUE_STORE, configurations: {operation: set, session_id: s}, input_params: {value: "{{doc}}"}}
  - {id: fails, description: d, type: MEMORY, subtype: KEY_VALUE_STORE, configurations: {operation: set, session_id: s, on_error: continue}, input_params: {key: ""}}
  - {id: failed, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
connections:
  - {from_node: start, to_node: each}
  - {from_node: each, to_node: keep, output_key: iteration}
  - {from_node: each, to_node: value, output_key: iteration}
  - {from_node: each, to_node: fails, output_key: iteration}
  - {from_node: fails, to_node: failed, output_key: error}
`)
	text := strings.Repeat("x", 100_000)
	doc := `{"id":"ann","text":"` + text + `"}`
	e, r := ran(t, x, "beside", `{"doc":`+doc+`,"orders":[1,2]}`)
	if e.Status != "SUCCESS" {
		t.Fatalf("status %s, %+v", e.Status, e.Error)
	}
	if n := e.NodeExecutions["failed"].ActivationCount; n != 2 {
		t.Errorf("the failure was handed on %d times", n)
	}
	shown := func(activation string) string {
		t.Helper()
		a := want[api.NodeExecution](t, x.call(t, "viewer", "GET", "/executions/"+r.ExecutionID+"/activations/"+url.PathEscape("each[1]/"+activation), nil), http.StatusOK)
		return string(a.InputData)
	}
	if got := shown("keep"); !strings.HasPrefix(got, `{"doc":`+doc+`,`) || !strings.HasSuffix(got, `,"big":`+doc+`,"replaced":7,"key":"k","value":"v","item":2,"index":1}`) {
		t.Errorf("the input is shown as %s", strings.ReplaceAll(got, text, "…"))
	}
	if got := shown("failed"); !strings.Contains(got, `"input":{"doc":`+doc+`,`) || !strings.Contains(got, `,"big":`+doc+`,"replaced":`+doc+`,"key":"","value":"v","item":2,"index":1}`) {
		t.Errorf("what goes with the error is %s", strings.ReplaceAll(got, text, "…"))
	}
	if a := x.call(t, "admin", "GET", "/memory", nil); !strings.Contains(string(a.body), "ann-7") {
		t.Errorf("nothing was stored under what the large field says: %.500s", a.body)
	}
}

// What the nodes of a body hand on is shared, and is there for who reads it: a placeholder, a condition, code, a conversion, the person who looks.
func TestSizes_WhatIsHandedOnIsRead(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, `
metadata: {id: handed, name: handed, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: each, description: d, type: FLOW, subtype: FOR_EACH, configurations: {items_path: orders}}
  - {id: check, description: d, type: FLOW, subtype: IF, configurations: {condition_expression: "doc.id == 'ann'"}}
  - {id: pass, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}, input_params: {more: 1}}
  - {id: pick, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}, input_params: {from: "{{pass.doc.id}} {{check.outputs.doc.id}} {{doc.id}} {{item}}"}}
  - {id: last, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
connections:
  - {from_node: start, to_node: each}
  - {from_node: each, to_node: check, output_key: iteration}
  - {from_node: check, to_node: pass, output_key: "true"}
  - {from_node: pass, to_node: pick}
  - {from_node: pick, to_node: last, conversion_function: "{from: from, id: doc.id, length: len(doc.text), order: order}"}
  - {from_node: last, to_node: each}
`)
	text := strings.Repeat("x", 100_000)
	doc := `{"id":"ann","text":"` + text + `"}`
	e, r := ran(t, x, "handed", `{"doc":`+doc+`,"order":3,"orders":[1,2]}`)
	if e.Status != "SUCCESS" {
		t.Fatalf("status %s, %+v", e.Status, e.Error)
	}
	shown := func(activation string) api.NodeExecution {
		t.Helper()
		return want[api.NodeExecution](t, x.call(t, "viewer", "GET", "/executions/"+r.ExecutionID+"/activations/"+url.PathEscape("each[1]/"+activation), nil), http.StatusOK)
	}
	if got := string(shown("last").OutputData["result"]); got != `{"from":"ann ann ann 2","id":"ann","length":100000,"order":3}` {
		t.Errorf("the end of the body has %s", got)
	}
	pass := shown("pass")
	if got := string(pass.InputData); !strings.HasPrefix(got, `{"doc":`+doc+`,"order":3,`) || !strings.HasSuffix(got, `,"item":2,"index":1,"condition_result":true,"more":1}`) {
		t.Errorf("the input of what is handed it is shown as %s", strings.ReplaceAll(got, text, "…"))
	}
	var output struct {
		Doc struct {
			Hash string `json:"$blob"`
			Size int    `json:"size"`
		} `json:"doc"`
		Item, More int
	}
	if err := json.Unmarshal(pass.OutputData["result"], &output); err != nil || output.Item != 2 || output.More != 1 || output.Doc.Size != len(doc) {
		t.Fatalf("what was handed on is shown as %.300s, %v", pass.OutputData["result"], err)
	}
	if a := x.call(t, "viewer", "GET", "/executions/"+r.ExecutionID+"/values/"+output.Doc.Hash, nil); a.status != http.StatusOK || string(a.body) != doc {
		t.Errorf("the large field is answered with %d, %.100s", a.status, a.body)
	}
	context := x.call(t, "viewer", "GET", "/executions/"+r.ExecutionID+"/context", nil)
	if !strings.Contains(string(context.body), text) {
		t.Errorf("the data of the execution lacks the large field: %.300s", context.body)
	}
}

// blobBytes is the size of all large values.
func blobBytes(t testing.TB, dir string) (size int64) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(dir, "blobs"), func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return size
}

// A value that joins one thing several times is not multiplied: only what joins branches is given them apart.
func TestSizes_JoinsAddNothing(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	const joins = 20
	var b strings.Builder
	b.WriteString("metadata: {id: fan, name: fan, description: d}\nnodes:\n  - {id: j0, description: d, type: TRIGGER, subtype: MANUAL}\n")
	for i := 1; i <= joins; i++ {
		for _, side := range []string{"a", "b", "j"} {
			fmt.Fprintf(&b, "  - {id: %s%d, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}\n", side, i)
		}
	}
	b.WriteString("  - {id: merged, description: d, type: FLOW, subtype: MERGE}\nconnections:\n")
	for i := 1; i <= joins; i++ {
		for _, side := range []string{"a", "b"} {
			fmt.Fprintf(&b, "  - {from_node: j%d, to_node: %s%d}\n  - {from_node: %s%d, to_node: j%d}\n", i-1, side, i, side, i, i)
		}
	}
	fmt.Fprintf(&b, "  - {from_node: a%d, to_node: merged}\n  - {from_node: b%d, to_node: merged}\n", joins, joins)
	x.save(t, b.String())
	e, r := ran(t, x, "fan", `{"text":"`+strings.Repeat("x", 100)+`"}`)
	if e.Status != "SUCCESS" {
		t.Fatalf("status %s, %+v", e.Status, e.Error)
	}
	last := string(e.NodeExecutions[fmt.Sprint("j", joins)].OutputData["result"])
	if len(last) > 1000 || strings.Contains(last, `"inputs"`) {
		t.Errorf("after %d joins the payload has %d bytes: %.300s", joins, len(last), last)
	}
	one := x.call(t, "viewer", "GET", "/executions/"+r.ExecutionID+"/activations/merged", nil)
	if !strings.Contains(string(one.body), `"inputs":{"a20":{`) {
		t.Errorf("the merge was not given its branches: %s", one.body)
	}
}

// dated reads a journal as if an execution had begun with other rules.
type dated struct {
	host.Source
	version int
}

func (d dated) Rows(ctx context.Context, p identity.Principal, execution string, after uint64) iter.Seq2[host.Row, error] {
	return func(yield func(host.Row, error) bool) {
		for row, err := range d.Source.Rows(ctx, p, execution, after) {
			for n := range row.Values {
				row.Values[n] = json.RawMessage(strings.Replace(string(row.Values[n]), `"input_rules":2`, fmt.Sprintf(`"input_rules":%d`, d.version), 1))
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

// BenchmarkForEach_ListSize runs a loop over lists of 100 and of 2,000 items of 3 KB, and over one of 2,000 items of 10 bytes, in
// turns. What an iteration takes must not depend on the length of the list that it is part of, wherever the list stands.
func BenchmarkForEach_ListSize(b *testing.B) {
	x := openSite(b)
	lists := []struct {
		count, size int
		unit        string
	}{{100, 3000, "µs/iteration-of-100x3KB"}, {2000, 3000, "µs/iteration-of-2000x3KB"}, {2000, 10, "µs/iteration-of-2000x10B"}}
	for _, c := range []struct{ name, config string }{
		{"Plain", `{items_path: orders}`}, {"Break", `{items_path: orders, break_condition: "item.id < 0"}`}, {"Inside", `{items_path: "boxes[0].orders"}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			id := strings.ToLower(c.name)
			x.save(b, fmt.Sprintf(listFlow, id, "FOR_EACH", c.config, "iteration", "item.id >= 0", "{id: '{{item.id}}'}"))
			spent := make([]time.Duration, len(lists))
			for b.Loop() {
				for i, list := range lists {
					input := orders(list.count, list.size)
					if c.name == "Inside" {
						input = `{"boxes":[` + input + `]}`
					}
					began := time.Now()
					a := x.call(b, "operator", "POST", "/workflows/"+id+"/execute", api.ExecuteRequest{Inputs: json.RawMessage(input), WaitSeconds: 60})
					if r := want[api.ExecuteResponse](b, a, http.StatusOK); r.Status != "SUCCESS" {
						b.Fatalf("status %s", r.Status)
					}
					spent[i] += time.Since(began)
				}
			}
			each := make([]float64, len(lists))
			for i, list := range lists {
				each[i] = float64(spent[i].Microseconds()) / float64(b.N) / float64(list.count)
				b.ReportMetric(each[i], list.unit)
			}
			b.ReportMetric(each[1]/each[0], "ratio-2000-to-100")
		})
	}
}

// BenchmarkForEach_FieldBeside runs a loop over 10 items with a field of 100 KB and one of 1 MB beside the list, in turns, through a
// body that hands everything on. What an iteration writes does not depend on the field; what it takes is reported for both.
func BenchmarkForEach_FieldBeside(b *testing.B) {
	dir := ""
	x := openSiteAs(b, func(o *Options, _ string) { dir = o.Dir })
	x.save(b, fmt.Sprintf(listFlow, "beside", "FOR_EACH", `{items_path: orders, collect_results: false}`, "iteration", "item.id >= 0", "{}"))
	const count = 10
	sizes := []int{100_000, 1_000_000}
	spent, written := make([]time.Duration, len(sizes)), make([]int64, len(sizes))
	for b.Loop() {
		for i, size := range sizes {
			doc := strings.Repeat("x", size)
			input := strings.Replace(orders(count, 10), `"customer"`, `"doc":"`+doc+`","customer"`, 1)
			before, began := blobBytes(b, dir), time.Now()
			a := x.call(b, "operator", "POST", "/workflows/beside/execute", api.ExecuteRequest{Inputs: json.RawMessage(input), WaitSeconds: 60})
			if r := want[api.ExecuteResponse](b, a, http.StatusOK); r.Status != "SUCCESS" {
				b.Fatalf("status %s", r.Status)
			}
			spent[i] += time.Since(began)
			written[i] += blobBytes(b, dir) - before
		}
	}
	for i, unit := range []string{"100KB", "1MB"} {
		b.ReportMetric(float64(spent[i].Microseconds())/float64(b.N)/count, "µs/iteration-beside-"+unit)
		b.ReportMetric(float64(written[i])/float64(b.N)/count, "B-written/iteration-beside-"+unit)
	}
}

// BenchmarkLoops_PayloadSize runs the loops with a payload of 1 KB, one of 1 MB and one of 3 MB that stays as it is, in turns: a loop with a condition, a
// range, and a list with the payload beside it, each with a body that hands nothing on, and the list with bodies that hand everything on. Reported is what an execution with
// one iteration takes, and for each size what every further iteration takes, with the ratio to the smallest.
func BenchmarkLoops_PayloadSize(b *testing.B) {
	units := []string{"1KB", "1MB", "3MB"}
	const list = `{items_path: orders, collect_results: false}`
	for _, c := range []struct {
		name, kind, config, body, conversion string
		count                                int
	}{
		{"While", "WHILE", `{condition_expression: "index < n", max_iterations: 10000}`, "CALL.EMPTY", "", 2000},
		{"Range", "LOOP", `{loop_type: for_range, start_value: 1, end_value: "{{n}}", max_iterations: 10000}`, "CALL.EMPTY", "", 2000},
		{"Beside", "FOR_EACH", `{items_path: orders}`, "CALL.EMPTY", "", 2000},
		{"Handed", "FOR_EACH", list, "CALL.EMPTY {pass_through: true}", "", 2000},
		{"If", "FOR_EACH", list, `FLOW.IF {condition_expression: "item.id >= 0"}`, "", 2000},
		{"Expression", "FOR_EACH", list, "CALL.EMPTY {pass_through: true}", "{'id': item.id, 'doc': doc}", 500},
		{"JavaScript", "FOR_EACH", list, "CALL.EMPTY {pass_through: true}", "d => ({id: d.item.id})", 200},
		{"Python", "FOR_EACH", list, "CALL.EMPTY {pass_through: true}", "lambda d: {'id': d['item']['id']}", 200},
		{"Code", "FOR_EACH", list, `ACTION.RUN_CODE {language: javascript, code: "function main(d) { return {id: d.item.id} }"}`, "", 200},
		{"Nested", "FOR_EACH", list, `FLOW.FOR_EACH {items_path: few, collect_results: false}`, "", 500},
		{"Transform", "FOR_EACH", list, `ACTION.DATA_TRANSFORMATION {operation: map, items_path: few}`, "", 500},
		{"Merge", "FOR_EACH", list, `FLOW.MERGE {items_path: few}`, "", 200},
		{"Gather", "FOR_EACH", list, "FLOW.MERGE", "", 100},
		{"Child", "FOR_EACH", list, `FLOW.SUB_WORKFLOW {workflow_id: child, revision: latest}`, "", 100},
	} {
		b.Run(c.name, func(b *testing.B) {
			x := openSite(b)
			x.save(b, guardFlow("child", "", []string{guardStart, "body CALL.EMPTY"}, []string{"start body"}))
			links := []string{"start each", "each body iteration", "body each" + map[string]string{"If": ` "true"`, "Nested": " completed"}[c.name]}
			switch c.name {
			case "Nested":
				links = append(links, "body inner iteration")
			case "Merge", "Gather": // two branches with the same payload
				links = []string{"start each", "each inner iteration", "inner body", "each other iteration", "other body", "body each"}
			}
			flow := guardFlow("loops", "", []string{guardStart, "each FLOW." + c.kind + " " + c.config, "body " + c.body, "inner CALL.EMPTY {pass_through: true}", "other CALL.EMPTY {pass_through: true}"}, links)
			if c.conversion != "" {
				flow = strings.Replace(flow, "output_key: iteration}", fmt.Sprintf("output_key: iteration, conversion_function: %q}", c.conversion), 1)
			}
			x.save(b, flow)
			one, each := make([]time.Duration, len(units)), make([]time.Duration, len(units))
			for b.Loop() {
				for i, size := range []int{1_000, 1_000_000, 3_000_000} {
					took := func(count int) time.Duration {
						input := strings.Replace(orders(count, 10), `"customer"`, fmt.Sprintf(`"n":%d,"few":[1],"doc":%q,"customer"`, count, strings.Repeat("x", size)), 1)
						began := time.Now()
						a := x.call(b, "operator", "POST", "/workflows/loops/execute", api.ExecuteRequest{Inputs: json.RawMessage(input), WaitSeconds: 60})
						if r := want[api.ExecuteResponse](b, a, http.StatusOK); r.Status != "SUCCESS" {
							b.Fatalf("status %s", r.Status)
						}
						return time.Since(began)
					}
					first := took(1)
					one[i] += first
					each[i] += (took(c.count+1) - first) / time.Duration(c.count)
				}
			}
			for i, unit := range units {
				b.ReportMetric(float64(one[i].Microseconds())/1000/float64(b.N), "ms/execution-with-"+unit)
				b.ReportMetric(float64(each[i].Nanoseconds())/1000/float64(b.N), "µs/iteration-with-"+unit)
				if i > 0 {
					b.ReportMetric(float64(each[i])/float64(each[0]), "ratio-"+unit+"-to-1KB")
				}
			}
		})
	}
}
